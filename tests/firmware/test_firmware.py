"""The same plan on the host and on an emulated Cortex-M4: the same bytes, without a libc."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import numpy as np
import pytest

from flaot.plan.read import read_plan
from flaot.runtime.session import Session
from tests.plan.programs import plan_of, softmax_of_constant, two_softmaxes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(importlib.util.find_spec, ("ziglang", "unicorn"))), reason="needs ziglang and unicorn"),
]

GENERATED = {"fl_kernels", "fl_kernel_count"}
"""What the runtime needs from the firmware; besides it only the compiler's own helpers (``__aeabi_*``) are missing."""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The runtime core and the portable kernels, compiled once."""
    from tests.firmware.build import compile_all, portable_sources

    return compile_all(portable_sources(), tmp_path_factory.mktemp("objects"), [])


def run_on_cortex_m4(data: bytes, feeds: dict[str, np.ndarray], objects: list[Path], folder: Path) -> tuple[list[np.ndarray], int]:
    """Outputs, and bytes of stack used; fails unless the program exits with status 0."""
    from tests.firmware.build import build
    from tests.firmware.emulator import CortexM4

    plan = read_plan(data)
    room = [-(-p.type.nbytes // 8) * 8 for p in (*plan.inputs, *plan.outputs)]
    chip = CortexM4(build(plan, objects, folder, sum(room)))
    start = np.cumsum([0, *room])
    for port, at in zip(plan.inputs, start, strict=False):
        chip.write("ports", feeds[port.name].tobytes(), int(at))
    assert chip.run() == 0
    found = []
    for port, at in zip(plan.outputs, start[len(plan.inputs) :], strict=False):
        found.append(np.frombuffer(chip.read("ports", port.type.nbytes, int(at)), port.dtype).reshape(port.shape))
    return found, chip.stack_used()


@pytest.mark.parametrize("make", [two_softmaxes, softmax_of_constant])
def test_same_bytes_as_the_host(make, objects: list[Path], tmp_path: Path) -> None:
    data = plan_of(make())
    session = Session(data)
    rng = np.random.default_rng(1)
    feeds = {p.name: rng.standard_normal(p.shape).astype(p.dtype) for p in session.get_inputs()}
    found, stack = run_on_cortex_m4(data, feeds, objects, tmp_path)
    for got, want in zip(found, session.run(None, feeds), strict=True):
        assert got.tobytes() == want.tobytes()
    assert stack < 4096


def test_digit_classifier(objects: list[Path], tmp_path: Path) -> None:
    """The MNIST-sized sample reads a handwritten digit on the chip, with the scores the host computes."""
    from flaot.pipeline import compile_model

    samples = Path(__file__).parents[2] / "samples" / "mnist"
    data = compile_model(samples / "digits.onnx", "generic_cpu").plan
    images, labels = runpy.run_path(str(samples / "digits.py"))["load"]()
    image = images[-1:]
    (scores,), stack = run_on_cortex_m4(data, {"image": image}, objects, tmp_path)
    assert scores.tobytes() == Session(data).run(None, {"image": image})[0].tobytes()
    assert scores.argmax() == labels[-1]
    assert stack < 4096


def test_objects_need_nothing_but_the_runtime(objects: list[Path]) -> None:
    from tests.firmware.emulator import symbols

    defined, needed = set(), {}
    for path in objects:
        own, undefined = symbols(path)
        defined |= own
        needed |= {name: path.name for name in undefined}
    foreign = {n: o for n, o in needed.items() if n not in defined | GENERATED and not n.startswith("__aeabi_")}
    assert not foreign

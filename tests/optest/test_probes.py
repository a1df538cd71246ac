"""Probes name each lie with its line, what is measured, and the way out; honest chips are left in peace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flaot.hcd import load_hcd
from flaot.ir.types import DType, Rounding
from flaot.optest.probes import run_probes
from flaot.optest.probes.bench import Answer, Bench
from flaot.optest.probes.finding import Finding
from flaot.optest.probes.values import decode, encode, rounded
from flaot.plan.program import Chip


@pytest.mark.parametrize("name", ["npu_v2", "npu_v3", "edge_dsp"])
def test_honest_chips(name: str) -> None:
    found = run_probes(load_hcd(name))
    assert {f.probe for f in found} == {
        "alignment", "on-chip memory", "element types", "rounding", "denormals", "accumulators", "layouts", "rank",
    }  # fmt: skip
    assert [f.sentence for f in found if f.verdict == "lies"] == []
    assert {f.key for f in found if f.verdict == "not measured"} <= {
        "tensor.supported_dtypes", "compute_units.int8.supported_layouts", "compute_units.int16.supported_layouts",
    }  # fmt: skip


def test_a_cpu_is_not_probed() -> None:
    assert run_probes(load_hcd("generic_cpu")) == []


def lies(alter: Callable[[Chip], Chip], name: str = "npu_v3") -> list[Finding]:
    """What is found of a device whose chip is not the one that is described to flaot."""
    hcd = load_hcd(name)
    return [f for f in run_probes(hcd, bench=Bench(hcd, None, alter)) if f.verdict == "lies"]


@pytest.mark.parametrize(
    ("alter", "key", "origin", "declared", "measured"),
    [
        (lambda c: replace(c, alignment=max(c.alignment, 512)), "constraints.memory_alignment_bytes", "npu_v3.hcd:10", "256", "512"),
        (lambda c: replace(c, layouts=((0, 1, 2, 3), (0, 2, 1, 3))), "compute_units.fp16.supported_layouts", "npu_v3.hcd:3",
         "NHCW, NCHW, NHWC", "NHCW, NCHW"),
        (lambda c: replace(c, max_rank=5), "tensor.max_rank", "npu_v3.hcd:9", "6", "5"),
        (lambda c: replace(c, rounding=Rounding.toward_zero), "numerics.rounding", "npu_v3.hcd:1", "half_to_even", "toward_zero"),
        (lambda c: replace(c, rounding=Rounding.half_up), "numerics.rounding", "npu_v3.hcd:1", "half_to_even", "half_up"),
        (lambda c: replace(c, flush_denormals=True), "numerics.denormals", "npu_v3.hcd:1", "keep", "flush"),
    ],
)  # fmt: skip
def test_a_lie_is_named_alone(alter: Callable[[Chip], Chip], key: str, origin: str, declared: str, measured: str) -> None:
    (found,) = lies(alter)
    assert (found.key, found.origin, found.declared, found.measured) == (key, origin, declared, measured)
    assert found.sentence.startswith(f"{key} ({origin}): declared {declared}, measured {measured}") and "; state " in found.sentence


class Forgetful(Bench):
    """A device with half the on-chip memory: what is taken beyond it is refused."""

    def run(self, inputs, steps, outputs, on_chip=0):  # type: ignore[no-untyped-def]
        half = self.chip.machine.on_chip // 2
        return Answer(problem="no such memory") if on_chip > half else super().run(inputs, steps, outputs, on_chip)


class Wrapping(Bench):
    """A device where tensors beyond half the on-chip memory lie over those before: nothing is refused, but bytes are lost."""

    def run(self, inputs, steps, outputs, on_chip=0):  # type: ignore[no-untyped-def]
        half = self.chip.machine.on_chip // 2
        moved = [[replace(o, offset=o.offset % half) for o in group] for group in (inputs, outputs)]
        return super().run(moved[0], steps, moved[1], on_chip)


@pytest.mark.parametrize("device", [Forgetful, Wrapping])
def test_half_the_memory(device: type[Bench]) -> None:
    hcd = load_hcd("npu_v3")
    (found,) = [f for f in run_probes(hcd, bench=device(hcd)) if f.verdict == "lies"]
    assert (found.key, found.declared, found.origin) == ("memory.on_chip_cache.size_kb", "8192", "npu_v3.hcd:7")
    measured = int(found.measured)
    assert 4096 <= measured <= (4096 if device is Forgetful else 4096 * 16 // 15 + 16)  # so far a last tensor may reach
    assert found.hint == f"state on_chip_cache.size_kb: {measured}"


def test_a_float16_that_is_bfloat16() -> None:
    hcd = load_hcd("npu_v3")

    class Coarse(Bench):
        def run(self, inputs, steps, outputs, on_chip=0):  # type: ignore[no-untyped-def]
            answer = super().run(inputs, steps, outputs, on_chip)
            floats = [i for i, o in enumerate(outputs) if o.dtype is DType.float16]
            coarse = [decode(encode(a.astype(float), DType.bfloat16), DType.bfloat16).astype(np.float16) if i in floats else a
                      for i, a in enumerate(answer.arrays)]  # fmt: skip
            return Answer(tuple(coarse), answer.problem)

    found = next(f for f in run_probes(hcd, bench=Coarse(hcd)) if f.key == "tensor.supported_dtypes")
    assert (found.verdict, found.declared, found.measured) == ("lies", "float16", "bfloat16")


def test_rounding_by_definition() -> None:
    ties = {mode: [rounded(v, DType.float16, mode) for v in (2049.0, 2051.0, -2049.0, 2048.5, -2049.5)] for mode in Rounding}
    assert ties == {
        Rounding.half_to_even: [2048, 2052, -2048, 2048, -2050],
        Rounding.half_away_from_zero: [2050, 2052, -2050, 2048, -2050],
        Rounding.half_up: [2050, 2052, -2048, 2048, -2050],
        Rounding.floor: [2048, 2050, -2050, 2048, -2050],
        Rounding.toward_zero: [2048, 2050, -2048, 2048, -2048],
    }


def test_every_probe_fits_one_line() -> None:
    for found in [*run_probes(load_hcd("npu_v3")), *lies(lambda c: replace(c, max_rank=5))]:
        assert "\n" not in found.sentence and found.key in found.sentence and found.origin in found.sentence


def test_a_device_that_computes_nothing_right_says_so_once() -> None:
    hcd = load_hcd("npu_v3")

    class Noise(Bench):
        def run(self, inputs, steps, outputs, on_chip=0):  # type: ignore[no-untyped-def]
            answer = super().run(inputs, steps, outputs, on_chip)
            return Answer(tuple(a + 1 for a in answer.arrays), answer.problem) if steps else answer

    broken, memory = run_probes(hcd, bench=Noise(hcd))
    assert (broken.key, broken.verdict, broken.declared) == ("compute_units.fp16", "lies", "Add in float16")
    assert broken.sentence.endswith("measured wrong at every alignment: element 0 is wrong; the other probes need it")
    assert (memory.probe, memory.verdict) == ("on-chip memory", "holds")

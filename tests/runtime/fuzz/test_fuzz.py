"""Damaged plans under AddressSanitizer and UBSan: refused, or run without touching memory outside plan, arena and ports."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flaot.pipeline import compile_model
from flaot.plan.program import Command, Launch, Program
from tests.plan.devices import DMA, IMAGE, conv_on_chip, conv_through_scratchpad, copy, on_chip
from tests.plan.programs import plan_of, softmax_of_constant, two_softmaxes
from tests.plan.queues import softmax_on_chip
from tests.runtime.fuzz.models import convolutions, sequences

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc with AddressSanitizer"),
    pytest.mark.skipif(shutil.which("ninja") is None or shutil.which("cmake") is None, reason="needs cmake and ninja"),
]


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time: with pytest -n every worker has fixtures of its own, and they share the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def build() -> Path:
    build = ROOT / "build" / "fuzz"
    with alone(build):
        subprocess.run(["cmake", "-S", HERE, "-B", build, "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc"], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    return build


@pytest.fixture(scope="module")
def driver(build: Path) -> Path:
    return build / "fuzz"


def fuzz(driver: Path, *arguments: object) -> dict[str, int]:
    """Counts by outcome; fails with the driver's report when it was stopped."""
    done = subprocess.run([driver, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    words = done.stdout.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def with_bias() -> Program:
    """A convolution on a chip, with two constants there."""
    return conv_on_chip(bias=np.ones(1, np.float16))


def with_move() -> Program:
    """x copied on a DMA channel before it is loaded and convolved."""
    program = conv_through_scratchpad()
    first, load, *rest = program.steps
    far, other = first.outputs[0], on_chip(2048, IMAGE)
    move = replace(copy(far, other), device=1, launch=Launch("vector"), command=Command(DMA[1], (0,)))
    program.steps = [first, move, replace(load, inputs=(other,), command=Command(DMA[0], (1,))), *rest]
    waits = {4: (2, 3), 5: (4,), 6: (5,)}
    commands = [replace(s.command, waits=waits.get(i, s.command.waits)) if s.command else None for i, s in enumerate(program.steps)]
    program.steps = [replace(s, command=c) for s, c in zip(program.steps, commands, strict=True)]
    return program


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("plans")
    hand_made = {
        "threads": two_softmaxes, "strides": softmax_of_constant, "chip": with_bias, "channels": conv_through_scratchpad,
        "queues": softmax_on_chip, "moves": with_move,
    }
    for name, make in hand_made.items():
        (folder / f"{name}.flp").write_bytes(plan_of(make()))
    for name, model in (("convolutions", convolutions()), ("sequences", sequences())):
        (folder / f"{name}.flp").write_bytes(compile_model(model, "x86_64_avx2").plan)
    (folder / "npu.flp").write_bytes(compile_model(convolutions(), "npu_v3").plan)
    return sorted(folder.glob("*.flp"))


def test_every_truncation_and_every_bit(driver: Path, plans: list[Path]) -> None:
    counts = fuzz(driver, "bits", *plans)
    tried = sum(18 * p.stat().st_size + 1 for p in plans)
    assert sum(counts.values()) == tried
    assert counts["ran"] > len(plans) and counts["refused"] > tried // 2


def test_random_changes(driver: Path, plans: list[Path]) -> None:
    """FLAOT_FUZZ_ROUNDS raises the number of changes per plan here and below, FLAOT_FUZZ_SEED draws others."""
    rounds, seed = os.environ.get("FLAOT_FUZZ_ROUNDS", "5000"), os.environ.get("FLAOT_FUZZ_SEED", "1")
    assert fuzz(driver, "random", rounds, seed, *plans)["ran"] > 0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One-step plans of the kernels' own tests, recorded once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "recorded"
    with alone(folder):
        if not any(folder.glob("*.flp")):
            command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.runtime.fuzz.corpus", "tests/kernels"]
            subprocess.run(command, cwd=ROOT, env=os.environ | {"FLAOT_CORPUS": str(folder), "PYTHONPATH": str(ROOT)}, capture_output=True)
    corpus = sorted(folder.glob("*.flp"))
    assert len({p.name.split(".")[0] for p in corpus}) > 8
    return corpus


def test_random_changes_of_every_kernel_s_operands(driver: Path, recorded: list[Path]) -> None:
    corpus = [p for p in recorded if ".avx512." not in p.name]
    fuzz(driver, "random", os.environ.get("FLAOT_FUZZ_ROUNDS", "60"), os.environ.get("FLAOT_FUZZ_SEED", "1"), *corpus)


def test_changed_calls_of_every_kernel(build: Path, recorded: list[Path]) -> None:
    """What check accepts, run part by part on guarded memory."""
    rounds = os.environ.get("FLAOT_FUZZ_ROUNDS", "300")
    assert fuzz(build / "calls", rounds, os.environ.get("FLAOT_FUZZ_SEED", "1"), *recorded)["ran"] > len(recorded)

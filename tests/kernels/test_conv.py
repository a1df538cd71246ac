"""Every way of computing Conv and FusedConv against onnxruntime on random shapes, with strided tensors between guards."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.ops.conv import Act, FusedConv
from flaot.kernels.base import IMPLEMENTATIONS, Implementation, load_all
from flaot.targets.cpu import Cpu
from tests.kernels.conv_cases import Case, case, random_case, reference
from tests.kernels.conv_run import node_of, run

load_all()
CHIPS = {"generic": Cpu(), "avx2": Cpu(variants=("generic", "avx2")), "avx512": Cpu(variants=("generic", "avx2", "avx512"))}


def ways(c: Case, chip: Cpu) -> list[Implementation]:
    """Those that fit the case and whose fastest variant is the chip's."""
    from flaot.ir.ops.conv import Conv

    all_ways = [w for cls in (Conv, FusedConv) for w in IMPLEMENTATIONS.get(cls, ())]
    wanted = "generic" if chip.variants == ("generic",) else "avx2"
    node = node_of(c)
    return [w for w in all_ways if w.requires == wanted and w.reject(node, chip) is None]


def agree(c: Case, chip: Cpu, parts: int = 1, gaps: tuple[int, int] = (0, 0), in_place: bool = False) -> None:
    want = reference(c)
    for way in ways(c, chip):
        got = run(c, way, chip, parts, gaps, in_place)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=3e-5, err_msg=f"{type(way).__name__}: {c}")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("seed", range(10))
def test_random_shapes(chip: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        gaps = (int(rng.integers(0, 9)), int(rng.integers(0, 3)))
        agree(random_case(rng), CHIPS[chip], int(rng.integers(1, 4)), gaps, bool(rng.random() < 0.5))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("act", Act)
def test_activations(chip: str, act: Act) -> None:
    rng = np.random.default_rng(int(act))
    op = FusedConv((1, 1), (1, 1, 1, 1), (1, 1), 1, act)
    for residual in (False, True):
        agree(case(rng, (1, 16, 9, 11), (35, 16, 3, 3), op, residual=residual), CHIPS[chip])


@pytest.mark.parametrize("chip", ["avx2", "avx512"])
@pytest.mark.parametrize("seed", range(8))
def test_three_by_three(chip: str, seed: int) -> None:
    """Shapes Winograd takes."""
    rng = np.random.default_rng(100 + seed)
    for _ in range(6):
        pads = tuple(int(v) for v in rng.integers(0, 4, 4))
        size = tuple(int(v) for v in rng.integers(3, 21, 2))
        op = FusedConv((1, 1), pads, (1, 1), 1, Act(int(rng.integers(len(Act)))))
        ic, oc = (int(v) for v in rng.integers(16, 80, 2))
        c = case(rng, (int(rng.integers(1, 3)), ic, *size), (oc, ic, 3, 3), op, residual=bool(rng.random() < 0.5))
        agree(c, CHIPS[chip], int(rng.integers(1, 4)), (int(rng.integers(0, 5)), int(rng.integers(0, 3))), bool(rng.random() < 0.5))


@pytest.mark.parametrize("chip", ["avx2", "avx512"])
@pytest.mark.parametrize("seed", range(4))
def test_few_channels(chip: str, seed: int) -> None:
    """Shapes the first-layer kernel takes."""
    rng = np.random.default_rng(200 + seed)
    for _ in range(10):
        c = random_case(rng, ranks=(1, 2, 2))
        n, op = len(c.op.strides), c.op
        ic, oc = int(rng.integers(1, 5)), int(rng.integers(1, 70))
        op = FusedConv(op.strides, op.pads, (*op.dilations[:-1], 1), 1, op.act)
        x, w = c.inputs[0], c.inputs[1]
        assert x is not None and w is not None
        size = tuple(max(s, (k - 1) * d + 1) for s, k, d in zip(x.shape[2:], w.shape[2:], op.dilations, strict=True))
        small = case(rng, (x.shape[0], ic, *size), (oc, ic, *w.shape[2:]), op)
        agree(small, CHIPS[chip], int(rng.integers(1, 4)), (int(rng.integers(0, 5)), int(rng.integers(0, 3)) if n > 1 else 0))

"""Every way of computing Conv and FusedConv against onnxruntime on random shapes."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.ops.conv import Act, FusedConv
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import Cpu
from tests.kernels.conv_cases import Case, case, random_case, reference

load_all()
CHIPS = {"generic": Cpu()}


def agree(c: Case, chip: Cpu, parts: int = 1) -> None:
    want = reference(c)
    (got,) = evaluate(c.op, c.inputs, chip, constant=(1, 2, 4), parts=parts)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=3e-5, err_msg=str(c))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("seed", range(10))
def test_random_shapes(chip: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        agree(random_case(rng), CHIPS[chip], parts=int(rng.integers(1, 4)))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("act", Act)
def test_activations(chip: str, act: Act) -> None:
    rng = np.random.default_rng(int(act))
    op = FusedConv((1, 1), (1, 1, 1, 1), (1, 1), 1, act)
    for residual in (False, True):
        agree(case(rng, (1, 16, 9, 11), (35, 16, 3, 3), op, residual=residual), CHIPS[chip])

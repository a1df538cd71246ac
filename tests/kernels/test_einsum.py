"""Einsum against numpy (which takes what onnxruntime does not: repeated labels, integers)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.one_node import agree

CASES = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("ii->i", (4, 4)),
    ("ii", (4, 4)),
    ("i,j->ij", (3,), (4,)),
    ("bij->b", (2, 3, 4)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    ("b...->...", (3, 2, 4)),
    ("ij->ji", (3, 4)),
    ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("nc,nchw->nhw", (2, 3), (2, 3, 4, 5)),
    ("ij,jk->", (3, 4), (4, 5)),
    ("abc,cd->dab", (2, 3, 4), (4, 5)),
    ("ij,ij->ij", (3, 4), (1, 4)),
    ("biib,bi->i", (2, 3, 3, 2), (2, 3)),
]


@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_equations(case: tuple, dtype: type) -> None:
    equation, *shapes = case
    rng = np.random.default_rng(0)
    inputs = [(rng.standard_normal(s) * 9).astype(dtype) for s in shapes]
    want = np.asarray(np.einsum(equation, *inputs), dtype)
    agree("Einsum", inputs, equation=equation, want=[want], storages=(False,))

"""Compiling, running and comparing whole models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import flaot
from flaot.pipeline import Options, compile_model

RTOL, ATOL = 1e-4, 1e-5
"""float32 plans: |got - want| <= ATOL * scale + RTOL * |want|, the scale being the largest |want| of the output, 1 at least.
ATOL grows with the depth of the sums, for which 10 stands: a whole model has many."""
DEPTH = 10
HALF_RTOL, HALF_ATOL = 2**-9, 2**-10
"""float16 outputs, which onnxruntime rounds after every node and flaot once: two units in the last place, and one of the largest."""


def compiled(path: Path, hcd: str, shapes: Mapping[str, Any]) -> bytes:
    """The plan of a model for a bundled descriptor."""
    return compile_model(path, hcd, Options(shapes=shapes)).plan


def run(plan: bytes, feeds: Mapping[str, np.ndarray], threads: int = 1) -> dict[str, np.ndarray]:
    """All outputs by name."""
    with flaot.Session(plan, threads=threads) as session:
        names = [o.name for o in session.get_outputs()]
        return dict(zip(names, session.run(None, feeds), strict=True))


def reference(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What onnxruntime computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def agree(path: Path, plan: bytes, feeds: Mapping[str, np.ndarray], step: float = 0.0) -> None:
    """Asserts that the plan computes what onnxruntime computes from the model; ``step`` is allowed on top."""
    got, want = run(plan, feeds), reference(path, feeds)
    assert list(got) == list(want)
    for name, expected in want.items():
        assert got[name].dtype == expected.dtype, name
        assert got[name].shape == expected.shape, name
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(got[name], expected, name)
            continue
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        rtol, atol = (HALF_RTOL, HALF_ATOL) if expected.dtype == np.float16 else (RTOL, ATOL * DEPTH)
        np.testing.assert_allclose(got[name], expected, rtol=rtol, atol=atol * scale + step, err_msg=name)

"""A step may overwrite an input only where it reads that memory element by element."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnxruntime as ort
import pytest

from flaot.pipeline import compile_model
from flaot.runtime.session import Session
from tests.runtime.fuzz.models import convolutions, sequences


@pytest.mark.parametrize("chip", ["generic_cpu", "x86_64_avx2"])
@pytest.mark.parametrize("make", [partial(convolutions, 40), sequences], ids=["convolutions", "sequences"])
def test_residual_that_is_the_convolution_s_own_input(make, chip: str) -> None:
    """``b + conv(b)``: the fused step reads b as the image, with neighbours, and as the residual."""
    model = make()
    session = Session(compile_model(model, chip).plan)
    rng = np.random.default_rng(3)
    feeds = {
        p.name: rng.standard_normal(p.shape).astype(np.float32) if p.dtype.kind == "f" else rng.integers(0, 5, p.shape)
        for p in session.get_inputs()
    }
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

"""The cases that pass on the host, on the bundled NPUs with fallback allowed: none crashes, and results hold at float16's tolerance."""

from __future__ import annotations

import json

import numpy as np
import pytest

from flaot.errors import FlaotError
from flaot.hcd import load_hcd
from flaot.mapping.policy import policy_of
from flaot.pipeline import Options, compile_model
from flaot.runtime.session import Session
from tests.cases.run import folder, names, ratchet

pytestmark = [pytest.mark.slow, pytest.mark.skipif(folder() is None, reason="FLAOT_CASES is not set")]

ULPS = 4 * 2.0**-10
"""Of the largest number: a few roundings to float16."""

TINY = 2.0**-24
"""Smallest denormal of float16."""


@pytest.mark.parametrize("chip", ["npu_v2", "npu_v3"])
@pytest.mark.parametrize("name", names())
def test_case(name: str, chip: str) -> None:
    place, hcd = folder(), load_hcd(chip)
    assert place is not None
    case = place / name
    spec = json.loads((case / "case.json").read_text())
    try:
        plan = compile_model(case / "model.onnx", hcd, Options(policy=policy_of(hcd, fallback="allow"))).plan
        with np.load(case / "inputs.npz") as held:
            session = Session(plan)
            got = dict(zip([p.name for p in session.get_outputs()], session.run(None, dict(held)), strict=True))
    except FlaotError:
        assert spec["must"] == "refuse" or ratchet()[name].word != "pass"
        return
    if spec["must"] == "refuse" or ratchet()[name].word != "pass":
        return
    with np.load(case / "outputs.npz") as want:
        for output in want.files:
            agrees(got[output], want[output], spec)


def agrees(got: np.ndarray, want: np.ndarray, spec: dict[str, float]) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    g, w = got.astype(np.float64), want.astype(np.float64)
    scale = float(np.abs(w[np.isfinite(w)]).max(initial=0))
    np.testing.assert_allclose(g, w, rtol=spec["rtol"] + ULPS, atol=spec["atol"] + ULPS * scale + TINY)

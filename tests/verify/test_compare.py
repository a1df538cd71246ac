"""The comparison itself: what passes, what does not, and that the bound is not wider than stated."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.graph import Graph
from flaot.ir.ops.softmax import Softmax
from flaot.ir.types import DType, TensorType
from flaot.verify.bounds import Bound, bounds_of
from flaot.verify.compare import compare, out_of_range

WANT = np.array([1.0, -2.0, 0.0, 100.0], np.float32)


def verdict(got, want=WANT, bound=Bound()):  # noqa: B008
    return compare("v", np.asarray(got, want.dtype), want, bound)


def test_equal_arrays_have_no_noise():
    assert verdict(WANT).ok
    assert verdict(WANT).snr_db is None


@pytest.mark.parametrize(("at", "error", "ok"), [(2, 0.9e-3, True), (2, 1.1e-3, False), (3, 1.09e-2, True), (3, 1.2e-2, False)])
def test_the_bound_is_atol_of_the_scale_plus_rtol(at, error, ok):
    got = WANT.astype(np.float64)
    got[at] += error
    found = compare("v", got, WANT.astype(np.float64), Bound())
    assert found.ok is ok
    assert found.max_abs == pytest.approx(error)
    assert found.worst == (at,) or ok


def test_numbers_lost_in_a_half_type_are_told_from_mistakes():
    want = np.array([1e5, 1e-9, 3.0], np.float32)
    got = np.array([np.inf, np.nan, 3.0], np.float32)
    found = verdict(got, want)
    told = out_of_range(found, got, want, [np.array([np.inf, 0, 3], np.float32), np.array([1e5, np.nan, 3], np.float32)], "float16")
    assert told.note == f"{found.note}; onnxruntime has no number at 2 of them either once it stores values in float16, " + (
        "whose range (6e-8 to 65504) they leave"
    )
    assert told.beyond == "float16" and not told.ok
    assert out_of_range(found, got, want, [np.array([1e5, 0, 3], np.float32)], "float16") is found
    assert out_of_range(found, got, want, [np.array([1e5, 0, np.inf], np.float32)], "float16") is found


def test_nan_and_infinity_must_be_at_the_same_places():
    special = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert verdict(special, special).ok
    assert not verdict([np.nan, np.inf, np.inf, 1.0], special).ok
    assert not verdict([0, np.inf, -np.inf, 1.0], special).ok
    assert not verdict([np.nan, 1, 1, 1], WANT).ok


def test_integers_are_exact():
    want = np.arange(4)
    assert not verdict([0, 1, 2, 4], want).ok
    assert "1 of 4 elements" in verdict([0, 1, 2, 4], want).sentence


def test_shape_and_dtype_must_match():
    assert not compare("v", WANT[None], WANT, Bound()).ok
    assert not compare("v", WANT.astype(np.float64), WANT, Bound()).ok


def test_zero_reference():
    zero = np.zeros(3, np.float32)
    assert verdict(zero, zero).ok
    assert not verdict([1e-3, 0, 0], zero).ok


def test_bounds_grow_with_the_accumulated_length():
    graph = Graph()
    value = graph.add_input("x", TensorType(DType.float32, (1, 100_000)))
    for i in range(2):
        value = graph.add_node(Softmax(1), [value], names=[f"v{i}"]).outputs[0]
    graph.set_output("y", value)
    bounds = bounds_of(graph)
    assert bounds["v0"].atol < bounds["v1"].atol == bounds["y"].atol
    assert bounds["v1"].atol == pytest.approx(bounds["v0"].atol * 2**0.5)

"""What may share memory within a step: nothing, or the whole view."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flaot.errors import PlanError
from flaot.ir.types import DType, TensorType
from flaot.plan.program import Buffer, Program, Space, View
from flaot.runtime.session import Session
from tests.plan.programs import arena, plan_of, port, softmax, softmax_step

F32 = DType.float32


def accepted(x: View, y: View, scratch: int = 0, scratch_offset: int = 0) -> bool:
    """Whether the verifier takes a step from x to y in an arena of 4096 bytes."""
    inputs = [] if x.buffer.space is not Space.input else [port(Space.input, 0, "x", TensorType(x.dtype, x.dims))]
    outputs = [] if y.buffer.space is not Space.output else [port(Space.output, 0, "y", TensorType(y.dtype, y.dims))]
    step = softmax_step(x, y, axis=0, scratch=scratch, scratch_offset=scratch_offset)
    try:
        Session(plan_of(Program(inputs, outputs, [step], arena=4096)))
    except PlanError as e:
        assert "bad step record" in str(e)
        return False
    return True


def whole(*dims: int) -> View:
    return arena(256, TensorType(F32, dims))


def touched(v: View) -> set[int]:
    """Bytes of the arena a view touches, the slow and certain way."""
    start = v.offset + (v.buffer.offset or 0)
    return {
        start + v.dtype.size * sum(i * s for i, s in zip(index, v.strides, strict=True)) + k
        for index in itertools.product(*map(range, v.dims)) for k in range(v.dtype.size)
    }


def test_in_place_and_shifted() -> None:
    v = whole(4, 8)
    assert accepted(v, v)
    assert not accepted(v, View(v.buffer, F32, v.dims, v.strides, 4))
    assert not accepted(v, View(v.buffer, F32, v.dims, (8, -1), 28))
    assert accepted(v, View(v.buffer, F32, v.dims, v.strides, 128))


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_slices_of_one_buffer(axis: int) -> None:
    v = whole(2, 6, 4, 8)
    half = v.dims[axis] // 2
    assert accepted(v.slice(axis, 0, half), v.slice(axis, half, half))
    assert accepted(v.slice(axis, half, half), v.slice(axis, half - 1, half, -1))
    if half > 1:
        assert not accepted(v.slice(axis, 0, half), v.slice(axis, 1, half))
        assert accepted(v.slice(axis, 0, half, 2), v.slice(axis, 1, half, 2))


def test_random_views_against_sets_of_bytes() -> None:
    rng = np.random.default_rng(7)
    passed = 0
    for _ in range(400):
        dims = tuple(int(d) for d in rng.integers(1, 5, 3))
        buffer = Buffer(Space.arena, 4096, offset=1024)
        views = [View(buffer, F32, dims, tuple(rng.integers(-9, 10, 3).tolist()), 4 * int(rng.integers(40))) for _ in range(2)]
        if accepted(*views):
            passed += 1
            assert views[0] == views[1] or not touched(views[0]) & touched(views[1])
    assert passed > 20


def test_spaces_that_are_read_only() -> None:
    type = TensorType(F32, (4, 8))
    x, v = port(Space.input, 0, "x", type), whole(4, 8)
    constant = View.dense(Buffer(Space.constant, 128, data=np.zeros(32, np.float32)), type)
    assert not accepted(v, constant)
    with pytest.raises(PlanError, match="bad step record"):
        Session(plan_of(Program([x], [], [softmax_step(v, x.view)], arena=4096)))


def test_scratch_is_apart_from_operands_and_inside_the_arena() -> None:
    x, y = whole(4, 8), arena(512, TensorType(F32, (4, 8)))
    assert accepted(x, y, 256, 0) and accepted(x, y, 128, 384) and accepted(x, y, 64, 640)
    for size, offset in ((257, 0), (129, 384), (1, 576), (64, 32)):
        assert not accepted(x, y, size, offset)


def test_in_place_runs() -> None:
    type = TensorType(F32, (4, 8))
    x, y, v = port(Space.input, 0, "x", type), port(Space.output, 0, "y", type), whole(4, 8)
    session = Session(plan_of(Program([x], [y], [softmax_step(x.view, v), softmax_step(v, v), softmax_step(v, y.view)], arena=4096)))
    data = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    np.testing.assert_allclose(session.run({"x": data})[0], softmax(softmax(softmax(data))), rtol=1e-5)


def test_an_output_that_reaches_a_byte_twice() -> None:
    x = arena(1024, TensorType(F32, (4, 8)))
    y = whole(64)
    apart_ones, others = [(8, 1), (1, 4), (16, -2)], [(7, 1), (0, 1), (8, 0), (2, 1)]
    for strides, apart in [*((s, True) for s in apart_ones), *((s, False) for s in others)]:
        out = View(y.buffer, F32, (4, 8), strides, 64 if strides[1] < 0 else 0)
        assert accepted(x, out) == apart, strides
    one = View(y.buffer, F32, (1, 8), (0, 1), 0)
    assert accepted(arena(1024, TensorType(F32, (1, 8))), one)

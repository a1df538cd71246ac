"""Which elements a part takes, and that no geometry makes a part compute anything else than the whole."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flaot.ir.ops.attention import Attention
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.ops.matmul import MatMul
from flaot.ir.ops.pool import AveragePool
from flaot.kernels.base import KERNELS
from flaot.kernels.tiling import Cut, Part, Reach, part_of
from flaot.plan.program import Step
from tests.kernels.conv_cases import normal
from tests.kernels.parts import check_op, lowered

QUICK = settings(max_examples=40, deadline=None, derandomize=True)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def step_of(op: object, *shapes: tuple[int, ...]) -> Step:
    (step,), _ = lowered(op, [normal(rng(), s) for s in shapes], ("generic",), False)  # type: ignore[arg-type]
    return step


def cut_of(step: Step, name: str) -> Cut:
    return next(c for c in KERNELS[step.kernel].cuts(step) if c.name == name)


def one_part(step: Step, name: str, begin: int, end: int) -> tuple[Step, dict[str, object]]:
    """Part [begin, end) of a cut, and its parameters."""
    kernel = KERNELS[step.kernel]
    part = part_of(step, kernel, [Part(cut_of(step, name), begin, end)])
    return part, kernel.unpack(part.params)


def test_rows_of_a_convolution_bring_their_halo() -> None:
    step = step_of(Conv((2, 1), (1, 0, 1, 0), (1, 1), 1), (1, 2, 9, 5), (4, 2, 3, 1))
    first, top = one_part(step, "height", 0, 2)
    assert (first.inputs[0].dims, first.outputs[0].dims, top["pads"]) == ((1, 2, 4, 5), (1, 4, 2, 5), (0, 1, 0))
    last, bottom = one_part(step, "height", 2, 5)
    assert (last.inputs[0].dims, last.inputs[0].offset, bottom["pads"]) == ((1, 2, 6, 5), 3 * 5 * 4, (0, 0, 0))


def test_a_window_in_the_padding_takes_nothing() -> None:
    step = step_of(Conv((1, 1), (4, 0, 0, 0), (1, 1), 1), (1, 1, 3, 3), (1, 1, 2, 1))
    part, parameters = one_part(step, "height", 0, 2)
    assert (part.inputs[0].dims, parameters["pads"]) == ((1, 1, 0, 3), (0, 4, 0))


def test_groups_take_their_channels() -> None:
    step = step_of(Conv((1,), (0, 0), (1,), 3), (1, 6, 4), (9, 2, 2))
    part, parameters = one_part(step, "groups", 1, 3)
    assert [v.dims for v in (*part.inputs, *part.outputs)] == [(1, 4, 4), (6, 2, 2), (1, 6, 3)]
    assert parameters["group"] == 2


def test_a_mean_counts_the_padding_it_would_count() -> None:
    step = step_of(AveragePool((3,), (1,), (1, 1), (1,), False, count_include_pad=True), (1, 1, 6))
    part, parameters = one_part(step, "width", 2, 4)
    assert (part.inputs[0].dims, parameters["begin"], parameters["end"]) == ((1, 1, 4), (0, 0, 0), (0, 0, 2))


def test_columns_of_a_transposed_convolution() -> None:
    """Results 4 and 5 of stride 2 and a kernel of 3 taps come from inputs 1 and 2."""
    step = step_of(ConvTranspose((2,), (0,), (1,), (9,)), (1, 1, 4), (1, 1, 3))
    part, parameters = one_part(step, "width", 4, 6)
    assert (part.inputs[0].dims, part.inputs[0].offset, parameters["begins"]) == ((1, 1, 2), 4, (0, 0, 2))


def test_queries_know_how_far_they_see() -> None:
    step = step_of(Attention(2, 2, 1.0, causal=True, offset=3), (1, 2, 8, 4), (1, 2, 9, 4), (1, 2, 9, 4))
    part, parameters = one_part(step, "queries", 5, 8)
    assert (part.inputs[0].dims, part.inputs[1].dims, parameters["offset"]) == ((1, 2, 3, 4), (1, 2, 9, 4), 8)


def test_reach_beyond_the_end_is_clipped() -> None:
    assert Reach(0, stride=2, before=1, extent=5).span(0, 2, 9) == (0, 6)
    assert Reach(0, stride=2, before=1, extent=5).span(3, 5, 9) == (5, 9)
    assert Reach(0, stride=2, before=1, extent=5).span(6, 7, 9) == (9, 9)
    assert Reach(0, extent=2, per=3).span(4, 6, 9) == (1, 3)


@st.composite
def axes(draw: st.DrawFn, inside: bool = False) -> dict[str, tuple[int, ...]]:
    """Sizes, kernels, strides, dilations and pads of two spatial axes with at least one result; ``inside`` keeps
    pads narrower than kernels."""
    rows = []
    for _ in range(2):
        kernel, stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
        begin, end = draw(st.integers(0, 5)), draw(st.integers(0, 5))
        begin, end = (min(begin, kernel - 1), min(end, kernel - 1)) if inside else (begin, end)
        rows.append((max(draw(st.integers(1, 10)), (kernel - 1) * dilation + 1 - begin - end), kernel, stride, dilation, begin, end))
    return dict(zip(("size", "kernel", "stride", "dilation", "begin", "end"), zip(*rows, strict=True), strict=True))


@QUICK
@given(axes(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_any_convolution(a: dict[str, tuple[int, ...]], group: int, inside: int, outside: int, last: bool) -> None:
    x, w = normal(rng(), (2, group * inside, *a["size"])), normal(rng(), (group * outside, inside, *a["kernel"]))
    check_op(Conv(a["stride"], a["begin"] + a["end"], a["dilation"], group), [x, w], last=last)


@QUICK
@given(axes(), st.integers(1, 2), st.integers(1, 3))
def test_any_transposed_convolution(a: dict[str, tuple[int, ...]], group: int, outside: int) -> None:
    x, w = normal(rng(), (1, group * 2, *a["size"])), normal(rng(), (group * 2, outside, *a["kernel"]))
    check_op(ConvTranspose(a["stride"], a["begin"], a["dilation"], (11, 7), group), [x, w])


@QUICK
@given(axes(inside=True), st.booleans(), st.booleans(), st.booleans())
def test_any_pool(a: dict[str, tuple[int, ...]], ceil: bool, include: bool, last: bool) -> None:
    op = AveragePool(a["kernel"], a["stride"], a["begin"] + a["end"], a["dilation"], ceil, count_include_pad=include)
    check_op(op, [normal(rng(), (1, 2, *a["size"]))], last=last)


@QUICK
@given(st.lists(st.sampled_from([(1, 1), (1, 2), (3, 1), (2, 2)]), max_size=2), st.tuples(*[st.integers(1, 40)] * 3))
def test_any_product(batch: list[tuple[int, int]], sizes: tuple[int, int, int]) -> None:
    (m, k, n), left, right = sizes, tuple(b[0] for b in batch), tuple(b[1] for b in batch)
    check_op(MatMul(), [normal(rng(), (*left, m, k)), normal(rng(), (*right, k, n))])

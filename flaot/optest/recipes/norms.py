"""Normalisations, softmax and reductions: operators that sum over axes."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe
from flaot.optest.recipes.shapes import Shape, filling, shapes

SUMS = ("ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare")
POSITIVE = ("ReduceLogSum", "ReduceLogSumExp", "ReduceProd")


@recipe("Softmax", "LogSoftmax")
def softmax(op: str, limits: Limits) -> Iterator[Case]:
    """Over the last axis and others; scores that are far apart."""
    for s in shapes(op, limits, 2):
        yield Case(s.name, op, (Tensor(s.dims, -4, 4),), {"axis": -1}, layout=s.layout, slow=s.slow)
    yield Case("boundary/first_axis", op, (Tensor((6, 5, 4)),), {"axis": 0})
    yield Case("boundary/channels", op, (Tensor((2, 6, 3, 4)),), {"axis": 1})
    yield Case("precision/far_apart", op, (Tensor((3, 16), values=(-100.0, 0.0, 90.0, 89.0, 100.0)),), {"axis": -1})
    yield Case("precision/equal", op, (Tensor((2, 1000), values=(5.0,)),), {"axis": -1})
    for stored in limits.floats[1:]:
        yield Case(f"precision/in_{stored}", op, (Tensor((4, 20)),), {"axis": -1}, stored=stored)


@recipe("LayerNormalization", "RMSNormalization")
def layer_norm(op: str, limits: Limits) -> Iterator[Case]:
    """Over the last axis, at the longest sequence and the largest batch."""
    def case(name: str, dims: tuple[int, ...], stored: str = "", slow: bool = False, low: float = -2.0, high: float = 2.0) -> Case:
        last = dims[-1:]
        scale, bias = Tensor(last, 0.5, 1.5, constant=True), Tensor(last, constant=True)
        root = op == "RMSNormalization"
        inputs = (Tensor(dims, low, high), scale) if root else (Tensor(dims, low, high), scale, bias)
        return Case(name, op, inputs, {"axis": -1}, opset=23 if root else 18, stored=stored, slow=slow)

    yield case("typical/tokens", (2, 12, 32))
    yield case("boundary/odd_sizes", (3, 5, 7))
    yield case("boundary/unaligned", (2, 3, limits.awkward))
    yield case(f"boundary/batch_{limits.max_batch}", (limits.max_batch, 2, 4))
    yield case(f"boundary/sequence_{limits.max_sequence}", (1, limits.max_sequence, 4))
    yield case(f"boundary/rank_{limits.max_rank}", (2, 3, 2, 3, 2, 3, 2, 3)[: limits.max_rank])
    yield case("precision/small", (2, 3, 32), low=-0.01, high=0.01)
    yield case("precision/shifted", (2, 3, 32), low=7.0, high=9.0)
    for s in filling(op, limits, 2, limits.max_batch):
        yield case(s.name, s.dims, slow=s.slow)
    for stored in limits.floats[1:]:
        yield case(f"precision/in_{stored}", (2, 4, 16), stored)


@recipe("InstanceNormalization", "GroupNormalization", "BatchNormalization")
def image_norm(op: str, limits: Limits) -> Iterator[Case]:
    """Per channel or group of channels."""
    def case(name: str, dims: tuple[int, ...], layout: str = "", stored: str = "") -> Case:
        channels = dims[1:2]
        scale, bias = Tensor(channels, 0.5, 1.5, constant=True), Tensor(channels, constant=True)
        inputs: tuple[Tensor, ...] = (Tensor(dims), scale, bias)
        if op == "BatchNormalization":
            inputs = (*inputs, Tensor(channels, -0.5, 0.5, constant=True), Tensor(channels, 0.5, 2, constant=True))
        group = op == "GroupNormalization"
        return Case(name, op, inputs, {"num_groups": 2} if group else {}, opset=21 if group else 18, layout=layout, stored=stored)

    yield case("typical/image", (1, 8, 6, 7))
    yield case("boundary/odd_sizes", (3, 6, 5, 11))
    yield case("boundary/signal", (2, 4, 9))
    yield case(f"boundary/batch_{limits.max_batch}", (limits.max_batch, 2, 2, 3))
    for layout in limits.layouts:
        yield case(f"boundary/layout_{layout}", (2, 6, 3, 4), layout)
    for stored in limits.floats[1:]:
        yield case(f"precision/in_{stored}", (1, 4, 5, 5), stored=stored)


@recipe("MeanVarianceNormalization", "LpNormalization")
def plain_norm(op: str, limits: Limits) -> Iterator[Case]:
    """Without weights."""
    attributes = {"axis": 1, "p": 2} if op == "LpNormalization" else {}
    for s in shapes(op, limits, 4):
        if len(s.dims) >= 4 or op == "LpNormalization":
            dims = s.dims if len(s.dims) > 1 else (2, *s.dims)
            if op != "MeanVarianceNormalization" or len(dims) == 4 and min(dims) > 1:
                yield Case(s.name, op, (Tensor(dims, 0.5, 2),), attributes, layout=s.layout, slow=s.slow)


@recipe(*SUMS, *POSITIVE, "ReduceMax", "ReduceMin")
def reduction(op: str, limits: Limits) -> Iterator[Case]:
    """Over the last axis, the image, and everything; long sums of ones."""
    low, high = (0.95, 1.05) if op in POSITIVE else (-2.0, 2.0)

    def case(name: str, s: Shape, axes: tuple[int, ...], keep: int = 1, values: tuple[float, ...] = (), stored: str = "") -> Case:
        inputs = (Tensor(s.dims, low, high, values=values), Tensor((len(axes),), dtype="int64", values=axes, constant=True))
        return Case(name, op, inputs, {"keepdims": keep}, layout=s.layout, slow=s.slow, stored=stored)

    for s in shapes(op, limits, 2):
        yield case(s.name, s, (-1,))
    for s in filling(op, limits) if op == "ReduceSum" else ():
        yield case(s.name.replace("fills", "sum_fills").replace("beyond", "sum_beyond"), s, (0,))
    yield case("typical/image_axes", Shape("", (2, 4, 5, 6)), (2, 3))
    yield case("boundary/all_axes", Shape("", (3, 4, 2)), (0, 1, 2), 0)
    yield case("boundary/first_axis", Shape("", (7, 3, 5)), (0,), 0)
    if op in SUMS and not limits.half_sums:
        yield case("precision/long_sum", Shape("", (2, 4096)), (1,), values=(1.0,))
    for stored in limits.floats[1:]:
        yield case(f"precision/in_{stored}", Shape("", (4, 24)), (1,), stored=stored)

"""Reshape and the ONNX ops that are reshapes once shapes are static: Squeeze, Unsqueeze, Flatten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_RANK, TensorType


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in row-major order under another shape."""

    shape: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        same = math.prod(self.shape) == x.elements
        require(same, f"{x.elements} elements of shape {list(x.shape)} do not fill shape {list(self.shape)}")
        return (x.with_shape(self.shape),)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost(0, 0)


@reads("Reshape")
def read_reshape(r: NodeReader) -> None:
    x = r.input(0)
    wanted = [int(d) for d in (r.constant(1, "the shape") if r.opset >= 5 else r.ints("shape"))]
    keep_zero = r.int("allowzero", 0) == 1
    if wanted.count(-1) > 1:
        r.fail(f"shape {wanted} has more than one -1")
    if any(d < -1 for d in wanted):
        r.fail(f"shape {wanted} has a dimension below -1")
    if keep_zero and 0 in wanted and -1 in wanted:
        r.fail(f"shape {wanted} has both 0 and -1 under allowzero")
    if not keep_zero and any(d == 0 and i >= x.type.rank for i, d in enumerate(wanted)):
        r.fail(f"shape {wanted} copies a dimension that the input {list(x.type.shape)} does not have")
    shape = [x.type.shape[i] if d == 0 and not keep_zero else d for i, d in enumerate(wanted)]
    if -1 in shape:
        rest = math.prod(d for d in shape if d != -1)
        if rest == 0 or x.type.elements % rest:
            r.fail(f"{x.type.elements} elements of shape {list(x.type.shape)} do not fill shape {wanted}")
        shape[shape.index(-1)] = x.type.elements // rest
    if len(shape) > MAX_RANK:
        r.unsupported(f"rank {len(shape)}; the highest supported rank is {MAX_RANK}")
    r.result(r.emit(Reshape(tuple(shape)), [x]))


def _axes(r: NodeReader, rank: int, what: str) -> list[int] | None:
    """Normalised axes from the attribute (opset < 13) or the second input."""
    if r.opset >= 13:
        given = r.optional_constant(1, what)
        axes = None if given is None else [int(a) for a in given.reshape(-1)]
    else:
        axes = list(r.ints("axes")) if r.has("axes") else None
    if axes is None:
        return None
    for a in axes:
        if not -rank <= a < rank:
            r.fail(f"axis {a} is outside a rank {rank} tensor")
    normal = [a % rank for a in axes]
    if len(set(normal)) != len(normal):
        r.fail(f"axes {axes} name an axis twice")
    return normal


@reads("Squeeze")
def read_squeeze(r: NodeReader) -> None:
    x = r.input(0)
    shape = x.type.shape
    axes = _axes(r, x.type.rank, "the axes")
    drop = [i for i, d in enumerate(shape) if d == 1] if axes is None else axes
    for a in drop:
        if shape[a] != 1:
            r.fail(f"axis {a} of shape {list(shape)} has size {shape[a]}; only size 1 can be squeezed")
    r.result(r.emit(Reshape(tuple(d for i, d in enumerate(shape) if i not in drop)), [x]))


@reads("Unsqueeze")
def read_unsqueeze(r: NodeReader) -> None:
    x = r.input(0)
    count = len(r.constant(1, "the axes").reshape(-1)) if r.opset >= 13 else len(r.ints("axes"))
    rank = x.type.rank + count
    axes = _axes(r, rank, "the axes") or []
    if rank > MAX_RANK:
        r.unsupported(f"rank {rank}; the highest supported rank is {MAX_RANK}")
    rest = iter(x.type.shape)
    r.result(r.emit(Reshape(tuple(1 if i in axes else next(rest) for i in range(rank))), [x]))


@reads("Flatten")
def read_flatten(r: NodeReader) -> None:
    x = r.input(0)
    axis, rank = r.int("axis", 1), x.type.rank
    if not -rank <= axis <= rank:
        r.fail(f"axis {axis} is outside a rank {rank} tensor")
    axis += rank if axis < 0 else 0
    r.result(r.emit(Reshape((math.prod(x.type.shape[:axis]), math.prod(x.type.shape[axis:]))), [x]))

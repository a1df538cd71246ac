"""How many heads lie in the batch axis of [batch * heads, length, depth].

The value is followed back through Reshape, Transpose and what works element by element. Its axes are cut into factors wherever a Reshape
cuts them. Where the depth and some factors of the batch axis come from one axis (the model's width), those factors are the heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.graph import Node, Value
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Slice, Split
from flaot.ir.ops.transpose import Transpose

FARTHEST = 16
"""Nodes a value is followed back through."""


@dataclass(frozen=True)
class Factor:
    """A part of axis ``axis`` of the value asked about; parts of one axis are ordered by ``place``."""

    size: int
    axis: int
    place: tuple[int, ...] = ()


Axes = list[list[Factor]]
BATCH, DEPTH, OTHER = 0, 2, -1


def heads_in_batch(value: Value) -> int | None:
    """None where nothing tells."""
    axes: Axes | None = [[Factor(d, i)] if d != 1 else [] for i, d in enumerate(value.type.shape)]
    for _ in range(FARTHEST):
        node = value.producer
        source = _source(node) if node is not None else None
        if node is None or source is None or axes is None:
            return None
        axes = _before(node, source, axes)
        found = _heads(axes, value.type.shape) if axes is not None else None
        if found is not None:
            return found
        value = source
    return None


def _source(node: Node) -> Value | None:
    """The one run-time input that the node's result follows place by place."""
    if isinstance(node.op, Reshape | Transpose | Slice | Split):
        return node.inputs[0]
    if not isinstance(node.op, _Elementwise):
        return None
    given = [v for v in node.inputs if v is not None and not v.is_constant]
    return given[0] if len(given) == 1 and given[0].type.shape == node.outputs[0].type.shape else None


def _before(node: Node, source: Value, axes: Axes) -> Axes | None:
    """The factors as they lie in the node's input; None where it mixes them."""
    op, shape = node.op, source.type.shape
    if isinstance(op, Transpose):
        return [axes[op.perm.index(i)] for i in range(len(shape))]
    if isinstance(op, Reshape):
        return _regrouped([f for axis in axes for f in axis], shape)
    result = node.outputs[0].type.shape
    if any(a != b and b != 1 for a, b in zip(shape, result, strict=True)):
        return None
    return [[Factor(a, OTHER)] if a != b else axis for a, b, axis in zip(shape, result, axes, strict=True)]


def _regrouped(factors: Sequence[Factor], shape: tuple[int, ...]) -> Axes | None:
    todo, axes = list(factors), []
    for size in shape:
        axis: list[Factor] = []
        while size != 1:
            if not todo:
                return None
            first = todo.pop(0)
            part = math.gcd(first.size, size)
            if part != first.size and part != size:
                return None
            if part != first.size:
                todo.insert(0, Factor(first.size // part, first.axis, (*first.place, 1)))
                first = Factor(part, first.axis, (*first.place, 0))
            axis.append(first)
            size //= part
        axes.append(axis)
    return axes


def _heads(axes: Axes, shape: tuple[int, ...]) -> int | None:
    batch = [f for axis in axes for f in axis if f.axis == BATCH]
    for axis in axes:
        inner = [f for f in axis if f.axis == BATCH]
        depth = [f for f in axis if f.axis == DEPTH]
        if not inner or not depth or len(inner) + len(depth) != len(axis) or depth != [f for a in axes for f in a if f.axis == DEPTH]:
            continue
        outer = [f for f in batch if f not in inner]
        if all(o.place < i.place for o in outer for i in inner):
            return math.prod(f.size for f in inner)
    return None

"""Chains of Reshape, Transpose and Slice that only pick evenly spaced elements along the axes of a tensor.

    Slice_k(Reshape(Transpose(Reshape(x)))) = x[:, k::2]    the halves of a channel shuffle, and their like

The chain is followed as strides on the elements of x. When each axis of the result runs along one axis of x, a Slice and a Transpose
say the same; the rule fires only where that is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Slice
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import dense_strides
from flaot.rewrite import Rule
from flaot.rules.match import made_by, operand

LONGEST = 8
"""Nodes a chain may have."""


@dataclass(frozen=True)
class Walk:
    """Element (i, j, ...) of a view is element ``offset + i * strides[0] + ...`` of the source."""

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def through(self, op: Op) -> Walk | None:
        """The view after one more op; None when strides cannot express it."""
        if isinstance(op, Transpose):
            return Walk(tuple(self.dims[p] for p in op.perm), tuple(self.strides[p] for p in op.perm), self.offset)
        if isinstance(op, Reshape):
            strides = regrouped(self.dims, self.strides, op.shape)
            return None if strides is None else Walk(op.shape, strides, self.offset)
        assert isinstance(op, Slice)
        dims, steps, offset = list(self.dims), list(self.strides), self.offset
        for axis, start, step, size in zip(op.axes, op.starts, op.steps, op.sizes, strict=True):
            offset += start * steps[axis]
            dims[axis], steps[axis] = size, steps[axis] * step
        return Walk(tuple(dims), tuple(steps), offset)


def regrouped(dims: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of the same walk under other dims; None when a new axis would not run evenly."""
    if 0 in dims:
        return None
    old = [(d, s) for d, s in zip(dims, strides, strict=True) if d != 1]
    result = [0] * len(wanted)
    todo = [i for i, d in enumerate(wanted) if d != 1]
    while todo:
        group, axes = [old.pop(0)], [todo.pop(0)]
        while (have := math.prod(d for d, _ in group)) != (need := math.prod(wanted[a] for a in axes)):
            if have < need:
                group.append(old.pop(0))
            else:
                axes.append(todo.pop(0))
        if any(a[1] != b[0] * b[1] for a, b in zip(group, group[1:], strict=False)):
            return None
        step = group[-1][1]
        for a in reversed(axes):
            result[a] = step
            step *= wanted[a]
    return tuple(result)


def along_axes(walk: Walk, shape: tuple[int, ...]) -> tuple[Slice, tuple[int, ...]] | None:
    """The walk as a Slice of a dense tensor and the order of its axes in the result; None when an axis is mixed."""
    steps = dense_strides(shape)
    starts, rest = [0] * len(shape), walk.offset
    for a, s in enumerate(steps):
        if s:
            starts[a], rest = divmod(rest, s)
    order, sizes, strides = [], [1] * len(shape), [1] * len(shape)
    for d, s in zip(walk.dims, walk.strides, strict=True):
        if d == 1:
            continue
        fits = [a for a, t in enumerate(steps) if t and s > 0 and s % t == 0 and starts[a] + s // t * (d - 1) < shape[a]]
        if not fits or fits[0] in order:
            return None
        order.append(fits[0])
        sizes[fits[0]], strides[fits[0]] = d, s // steps[fits[0]]
    cut = [a for a in range(len(shape)) if (starts[a], strides[a], sizes[a]) != (0, 1, shape[a])]
    picked = Slice(tuple(cut), tuple(starts[a] for a in cut), tuple(strides[a] for a in cut), tuple(sizes[a] for a in cut))
    return picked, tuple(order)


class EvenWindow(Rule):
    """Anchored at the last node of a chain; the longest chain that can be said shorter is replaced."""

    anchors = (Slice, Transpose, Reshape)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        chain: list[Node] = []
        at: Node | None = node
        while at is not None and len(chain) < LONGEST:
            chain.insert(0, at)
            at = made_by(at.inputs[0], Slice, Transpose, Reshape)
        for first in range(len(chain) - 2):
            ops = shorter(operand(chain[first], 0), chain[first:])
            if ops is not None:
                return self._replaced(graph, chain[first:], ops)
        return None

    def _replaced(self, graph: Graph, chain: list[Node], ops: list[Op]) -> Patch:
        patch = self.patch(graph, *chain)
        value = operand(chain[0], 0)
        for op in ops:
            value = patch.node(op, [value])
        patch.replace(chain[-1].outputs[0], value)
        return patch


def shorter(source: Value, chain: Sequence[Node]) -> list[Op] | None:
    """Fewer ops that do what the chain does to ``source``."""
    walk: Walk | None = Walk(source.type.shape, dense_strides(source.type.shape))
    for node in chain:
        walk = walk.through(node.op) if walk is not None else None
    found = along_axes(walk, source.type.shape) if walk is not None else None
    if walk is None or found is None or 0 in walk.dims:
        return None
    picked, order = found
    ops: list[Op] = [picked] if picked.axes else []
    shape = [picked.sizes[picked.axes.index(a)] if a in picked.axes else d for a, d in enumerate(source.type.shape)]
    if list(order) != sorted(order):
        perm = (*(a for a, d in enumerate(shape) if d == 1), *order)
        ops.append(Transpose(perm))
        shape = [shape[p] for p in perm]
    if tuple(shape) != walk.dims:
        ops.append(Reshape(walk.dims))
    return ops if ops and len(ops) < len(chain) else None

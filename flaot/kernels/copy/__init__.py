"""Strided copy: transposes, slices, concatenations and broadcasts are all this one kernel."""

from __future__ import annotations

from flaot.ir.graph import Node, Value
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.expand import Expand
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Slice, Split
from flaot.ir.ops.transpose import Transpose
from flaot.kernels.base import Builder, Implementation, Kernel, Storage
from flaot.kernels.common.strides import collapse, same_place
from flaot.plan.program import View

COPY = Kernel("copy", variants=("generic",))
PARALLEL = 50_000
"""Elements from which splitting over threads pays."""


def copy(b: Builder, source: View, target: View) -> None:
    """Appends a copy of ``source`` to ``target`` unless they are the same memory. Dims and dtypes are equal."""
    if target.elements == 0 or same_place(source, target):
        return
    x, y = collapse([source, target])
    b.step(COPY, [x], [y], parallel=target.elements > PARALLEL)


class _Way(Implementation):
    """Movement ops, any storage: views are in logical axes."""

    def storage(self, node: Node) -> Storage:
        return Storage.either


class TransposeWay(_Way):
    op = Transpose

    def lower(self, node: Node, b: Builder) -> None:
        assert isinstance(node.op, Transpose)
        copy(b, b.view(_input(node)).permute(node.op.perm), b.view(node.outputs[0]))


class SliceWay(_Way):
    op = Slice

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, Slice)
        x = b.view(_input(node))
        for axis, start, step, size in zip(op.axes, op.starts, op.steps, op.sizes, strict=True):
            x = x.slice(axis, start, size, step)
        copy(b, x, b.view(node.outputs[0]))


class SplitWay(_Way):
    op = Split

    def lower(self, node: Node, b: Builder) -> None:
        op, start = node.op, 0
        assert isinstance(op, Split)
        x = b.view(_input(node))
        for size, out in zip(op.sizes, node.outputs, strict=True):
            copy(b, x.slice(op.axis, start, size), b.view(out))
            start += size


class ConcatWay(_Way):
    op = Concat

    def lower(self, node: Node, b: Builder) -> None:
        op, start = node.op, 0
        assert isinstance(op, Concat)
        y = b.view(node.outputs[0])
        for part in node.inputs:
            assert part is not None
            size = part.type.shape[op.axis]
            copy(b, b.view(part), y.slice(op.axis, start, size))
            start += size


class ExpandWay(_Way):
    op = Expand

    def lower(self, node: Node, b: Builder) -> None:
        y = b.view(node.outputs[0])
        copy(b, b.view(_input(node)).broadcast(y.dims), y)


class ReshapeWay(Implementation):
    """Row-major in, row-major out: a copy only where the scheduler could not let both share memory."""

    op = Reshape

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (0,)

    def lower(self, node: Node, b: Builder) -> None:
        y = b.view(node.outputs[0])
        copy(b, b.dense(b.view(_input(node))).reshape(y.dims), y)


def _input(node: Node) -> Value:
    x = node.inputs[0]
    assert x is not None
    return x

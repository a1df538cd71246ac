"""Strided copy: transposes, slices, concatenations and broadcasts are all this one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from flaot.ir.graph import Node
from flaot.ir.op import Op
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.expand import Expand
from flaot.ir.ops.pad import Pad
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Slice, Split
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import channels_last
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Storage
from flaot.kernels.common.cuts import every_axis
from flaot.kernels.common.strides import collapse
from flaot.plan.program import Buffer, Space, View

COPY = Kernel("copy", variants=("generic", "avx2"), cuts=every_axis, moves=True)
PARALLEL = 50_000
"""Elements from which splitting over threads pays."""


def copy(b: Builder, source: View, target: View) -> None:
    """Appends a copy of ``source`` to ``target`` unless they are the same memory. Dims and dtypes are equal."""
    if target.elements == 0 or source.same_memory(target):
        return
    x, y = collapse([source, target])
    b.step(COPY, [x], [y], parallel=target.elements > PARALLEL)


class _Window(Implementation):
    """An op whose outputs are views of its input, in any storage. A copy only where the views cannot be shared."""

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def windows(self, node: Node, x: View) -> list[View]:
        """The outputs as views of ``x``."""
        raise NotImplementedError

    def alias(self, node: Node, inputs: Sequence[View | None]) -> Sequence[View] | None:
        return None if inputs[0] is None else self.windows(node, inputs[0])

    def lower(self, node: Node, b: Builder) -> None:
        for window, out in zip(self.windows(node, b.view(node.inputs[0])), node.outputs, strict=True):
            b.copy(window, b.view(out))


class TransposeWay(_Window):
    op = Transpose

    def storage(self, node: Node) -> Storage:
        return Storage.plain

    def input_storage(self, node: Node, slot: int) -> Storage:
        return Storage.either

    def windows(self, node: Node, x: View) -> list[View]:
        assert isinstance(node.op, Transpose)
        return [x.permute(node.op.perm)]


class SliceWay(_Window):
    op = Slice

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return "kernels of channels-last tensors take neighbouring channels" if _spreads(node) else None

    def windows(self, node: Node, x: View) -> list[View]:
        return [_window(node.op, x)]


class SpreadSliceWay(Implementation):
    """Every other channel is copied: as a view it would suit no kernel."""

    op = Slice

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return None if _spreads(node) else "the slice is a view"

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def lower(self, node: Node, b: Builder) -> None:
        b.copy(_window(node.op, b.view(node.inputs[0])), b.view(node.outputs[0]))


def _spreads(node: Node) -> bool:
    op = node.op
    assert isinstance(op, Slice)
    return node.outputs[0].type.rank > 2 and any(a == 1 and s != 1 for a, s in zip(op.axes, op.steps, strict=True))


def _window(op: Op, x: View) -> View:
    assert isinstance(op, Slice)
    for axis, start, step, size in zip(op.axes, op.starts, op.steps, op.sizes, strict=True):
        x = x.slice(axis, start, size, step)
    return x


class SplitWay(_Window):
    op = Split

    def windows(self, node: Node, x: View) -> list[View]:
        op = node.op
        assert isinstance(op, Split)
        starts = accumulate((0, *op.sizes[:-1]))
        return [x.slice(op.axis, start, size) for start, size in zip(starts, op.sizes, strict=True)]


class ExpandWay(_Window):
    op = Expand

    def storage(self, node: Node) -> Storage:
        return Storage.plain

    def windows(self, node: Node, x: View) -> list[View]:
        return [x.broadcast(node.outputs[0].type.shape)]


class ReshapeWay(Implementation):
    """Another view of the same memory wherever strides can express it, else a copy in row-major order."""

    op = Reshape

    def input_storage(self, node: Node, slot: int) -> Storage:
        x = node.inputs[0]
        assert x is not None
        probe = View.dense(Buffer(Space.arena, 0), x.type, channels_last(x.type.rank)) if x.type.rank > 1 else None
        shown = probe is not None and probe.reshaped(node.outputs[0].type.shape) is not None
        return Storage.any if shown else Storage.plain

    def alias(self, node: Node, inputs: Sequence[View | None]) -> Sequence[View] | None:
        view = inputs[0].reshaped(node.outputs[0].type.shape) if inputs[0] is not None else None
        return None if view is None else [view]

    def lower(self, node: Node, b: Builder) -> None:
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        target = y.reshaped(x.dims)
        if target is not None:
            b.copy(x, target)
        else:
            b.copy(b.dense(x).reshape(y.dims), y)


class ConcatWay(Implementation):
    """Every input into its part of the output; producers may write there themselves."""

    op = Concat

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def parts(self, node: Node, output: View) -> dict[int, View]:
        op = node.op
        assert isinstance(op, Concat)
        sizes = [t.shape[op.axis] for t in node.input_types if t is not None]
        starts = accumulate((0, *sizes[:-1]))
        return {i: output.slice(op.axis, start, size) for i, (start, size) in enumerate(zip(starts, sizes, strict=True))}

    def lower(self, node: Node, b: Builder) -> None:
        for slot, part in self.parts(node, b.view(node.outputs[0])).items():
            b.copy(b.view(node.inputs[slot]), part)


class PadWay(Implementation):
    """The inside is a copy (or written by the producer), the border copies of the fill value: two slabs for each axis."""

    op = Pad

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def input_storage(self, node: Node, slot: int) -> Storage:
        return Storage.either if slot == 0 else Storage.plain

    def parts(self, node: Node, output: View) -> dict[int, View]:
        assert isinstance(node.op, Pad)
        for axis, (before, after) in enumerate(zip(node.op.before, node.op.after, strict=True)):
            output = output.slice(axis, before, output.dims[axis] - before - after)
        return {0: output}

    def lower(self, node: Node, b: Builder) -> None:
        op, rest, fill = node.op, b.view(node.outputs[0]), b.view(node.inputs[1])
        assert isinstance(op, Pad)
        for axis, (before, after) in enumerate(zip(op.before, op.after, strict=True)):
            size = rest.dims[axis]
            for slab in (rest.slice(axis, 0, before), rest.slice(axis, size - after, after)):
                b.copy(fill.broadcast(slab.dims), slab)
            rest = rest.slice(axis, before, size - before - after)
        b.copy(b.view(node.inputs[0]), rest)

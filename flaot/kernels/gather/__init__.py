"""Gather, GatherElements and GatherND; indices are checked as they are read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.gather import Gather, GatherElements, GatherND
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param
from flaot.kernels.common.cuts import cut, leads, record, worth
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step, View


def _rows(step: Step) -> Sequence[Cut]:
    outer, picked, inner = step.outputs[0].dims
    return worth([cut("outer", outer, {0: 0, 2: 0}), cut("indices", picked, {1: 0, 2: 1}), cut("inner", inner, {0: 2, 2: 2})])


def _tuples(step: Step) -> Sequence[Cut]:
    batch, picked, inner = step.outputs[0].dims
    last = len(step.inputs[0].dims) - 1
    return worth([
        cut("batch", batch, {0: 0, 1: 0, 2: 0}),
        *([cut("indices", picked, {1: 1, 2: 1})] if leads(step.inputs[1], 1) else []),
        cut("inner", inner, {0: last, 2: 2}),
    ])


def _elements(step: Step) -> Sequence[Cut]:
    """Only axes along which parts of the indices are dense, as the kernel takes them."""
    axis, (_, indices) = record(step)["axis"], step.inputs
    axes = [a for a in range(len(indices.dims)) if leads(indices, a)]
    return worth(cut(f"axis {a}", indices.dims[a], {1: a, 2: a} if a == axis else {0: a, 1: a, 2: a}) for a in axes)


GATHER = Kernel("gather", cuts=_rows, moves=True)
GATHER_ND = Kernel("gather_nd", cuts=_tuples, moves=True)
GATHER_ELEMENTS = Kernel("gather_elements", params=(Param("axis"),), cuts=_elements, moves=True)
PARALLEL = 50_000
"""Elements from which splitting over threads pays."""


def dense_output(b: Builder, y: View) -> View:
    """Where to write ``y`` row-major: itself, or a temporary that :func:`Builder.copy` then moves."""
    return y if y.is_dense else b.temp(y.dtype, y.dims)


class GatherWay(Implementation):
    op = Gather

    def axes(self, node: Node) -> int:
        return 3

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, Gather)
        x, indices, y = b.dense(b.view(node.inputs[0])), b.dense(b.view(node.inputs[1])), b.view(node.outputs[0])
        out = dense_output(b, y)
        outer, inner = math.prod(x.dims[: op.axis]), math.prod(x.dims[op.axis + 1 :])
        cube = x.reshape((outer, x.dims[op.axis], inner))
        flat = out.reshape((outer, indices.elements, inner))
        b.step(GATHER, [cube, indices.reshape((indices.elements,))], [flat], parallel=y.elements > PARALLEL)
        b.copy(out, y)


class GatherElementsWay(Implementation):
    op = GatherElements

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, GatherElements)
        x, indices, y = b.view(node.inputs[0]), b.dense(b.view(node.inputs[1])), b.view(node.outputs[0])
        b.step(GATHER_ELEMENTS, [x, indices], [y], parallel=y.elements > PARALLEL, axis=op.axis)


class GatherNDWay(Implementation):
    op = GatherND

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        indices = node.inputs[1]
        assert indices is not None
        return f"index tuples of {indices.type.shape[-1]}; the CPU kernel takes up to 6" if indices.type.shape[-1] > 6 else None

    def axes(self, node: Node) -> int:
        indices = node.inputs[1]
        assert indices is not None
        return max(3, indices.type.shape[-1] + 2)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, GatherND)
        x, indices, y = b.dense(b.view(node.inputs[0])), b.dense(b.view(node.inputs[1])), b.view(node.outputs[0])
        out, first, length = dense_output(b, y), op.batch_dims, indices.dims[-1]
        batch, inner = math.prod(x.dims[:first]), math.prod(x.dims[first + length :])
        count = math.prod(indices.dims[first:-1])
        cube = x.reshape((batch, *x.dims[first : first + length], inner))
        b.step(
            GATHER_ND, [cube, indices.reshape((batch, count, length))], [out.reshape((batch, count, inner))],
            parallel=y.elements > PARALLEL,
        )
        b.copy(out, y)

"""Gather, GatherElements and GatherND; indices are checked as they are read."""

from __future__ import annotations

import math

from flaot.ir.graph import Node
from flaot.ir.ops.gather import Gather, GatherElements, GatherND
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param
from flaot.plan.program import View

GATHER = Kernel("gather")
GATHER_ND = Kernel("gather_nd")
GATHER_ELEMENTS = Kernel("gather_elements", params=(Param("axis"),))
PARALLEL = 50_000
"""Elements from which splitting over threads pays."""


def dense_output(b: Builder, y: View) -> View:
    """Where to write ``y`` row-major: itself, or a temporary that :func:`Builder.copy` then moves."""
    return y if y.is_dense else b.temp(y.dtype, y.dims)


class GatherWay(Implementation):
    op = Gather

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

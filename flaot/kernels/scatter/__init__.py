"""ScatterElements and ScatterND: the data is copied (or taken over), then updated in order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.scatter import Reduction, ScatterElements, ScatterND
from flaot.ir.types import DType
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param
from flaot.kernels.common.cuts import cut, leads, record, worth
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step


def cuts(step: Step) -> Sequence[Cut]:
    """The axes but the one scattered along where parts of indices and updates are dense. Of the result only the elements that updates
    may meet."""
    indices, axis = step.inputs[0], record(step)["axis"]
    axes = [a for a in range(len(indices.dims)) if a != axis and leads(indices, a)]
    return worth(cut(f"axis {a}", indices.dims[a], {0: a, 1: a, 2: a}) for a in axes)


SCATTER_ND = Kernel("scatter_nd", params=(Param("reduction"),), updates=True)
SCATTER_ELEMENTS = Kernel("scatter_elements", params=(Param("axis"), Param("reduction")), cuts=cuts, updates=True)


class _Way(Implementation):
    def reject(self, node: Node, chip: CpuChip) -> str | None:
        assert isinstance(node.op, ScatterElements | ScatterND)
        dtype = node.outputs[0].type.dtype
        plain = node.op.reduction is Reduction.none or dtype not in (DType.bool, DType.float16, DType.bfloat16)
        if not plain:
            return f"{node.op.name} that combines {dtype.name}"
        indices = node.inputs[1]
        assert indices is not None
        wide = isinstance(node.op, ScatterND) and indices.type.shape[-1] > 7
        return "index tuples of 8; the CPU kernel takes up to 7" if wide else None

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (0,)


class ScatterElementsWay(_Way):
    op = ScatterElements

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, ScatterElements)
        y = b.view(node.outputs[0])
        b.copy(b.view(node.inputs[0]), y)
        indices, updates = (b.dense(b.view(v)) for v in node.inputs[1:3])
        b.step(SCATTER_ELEMENTS, [indices, updates], [y], axis=op.axis, reduction=int(op.reduction))


class ScatterNDWay(_Way):
    op = ScatterND

    def axes(self, node: Node) -> int:
        indices = node.inputs[1]
        assert indices is not None
        return max(2, indices.type.shape[-1] + 1)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, ScatterND)
        y = b.view(node.outputs[0])
        out = y if y.is_dense else b.temp(y.dtype, y.dims)
        b.copy(b.view(node.inputs[0]), out)
        indices, updates = (b.dense(b.view(v)) for v in node.inputs[1:3])
        length, inner = indices.dims[-1], math.prod(y.dims[indices.dims[-1] :])
        count = math.prod(indices.dims[:-1])
        flat = out.reshape((*y.dims[:length], inner))
        b.step(
            SCATTER_ND, [indices.reshape((count, length)), updates.reshape((count, inner))], [flat], reduction=int(op.reduction)
        )
        b.copy(out, y)


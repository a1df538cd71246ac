"""Normalisations: one kernel, any strides; what differs is over which axes statistics run and how scale and bias lie."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.norm import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    MeanVarianceNormalization,
    RMSNormalization,
    _Norm,
)
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.plan.program import View

NORM = Kernel(
    "norm_f32", params=(Param("axes", "u32"), Param("mode"), Param("has"), Param("epsilon", "f32")),
    variants=("generic", "avx2", "avx512"),
)
"""``axes`` is a bit set; ``mode`` as in the C source; ``has`` flags scale (1) and bias (2)."""

VARIANCE, RMS, DEVIATION, LP1, LP2 = range(5)


def grouped(view: View, groups: int) -> View:
    """The channel axis split into groups and channels of a group."""
    c, s = view.dims[1], view.strides[1]
    dims = (view.dims[0], groups, c // groups, *view.dims[2:])
    return View(view.buffer, view.dtype, dims, (view.strides[0], s * (c // groups), s, *view.strides[2:]), view.offset)


def along(view: View, axis: int, rank: int) -> View:
    """A vector laid along one axis of a tensor of ``rank`` axes."""
    return View(view.buffer, view.dtype, (*[1] * axis, *view.dims, *[1] * (rank - axis - 1)),
                (*[0] * axis, *view.strides, *[0] * (rank - axis - 1)), view.offset)


class Normalise(Implementation):
    op = _Norm

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        rank = node.outputs[0].type.rank
        if isinstance(node.op, GroupNormalization) and rank > 7:
            return float32_only(node) or f"GroupNormalization of rank {rank}; the CPU kernels take up to 7"
        return float32_only(node)

    def storage(self, node: Node) -> Storage:
        return Storage.plain if isinstance(node.op, LayerNormalization) else Storage.either

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (0,)

    def mode(self, op: _Norm) -> tuple[int, float]:
        """Mode and epsilon."""
        match op:
            case RMSNormalization():
                return RMS, op.epsilon
            case MeanVarianceNormalization():
                return DEVIATION, 1e-9
            case LpNormalization():
                return (LP1 if op.p == 1 else LP2), 0.0
            case LayerNormalization() | InstanceNormalization() | GroupNormalization():
                return VARIANCE, op.epsilon
        raise TypeError(op.name)

    def lower(self, node: Node, b: Builder) -> None:
        op, x_type = node.op, node.outputs[0].type
        assert isinstance(op, _Norm)
        x, outputs = b.view(node.inputs[0]), [b.view(v) for v in node.outputs]
        affine = [None if v is None else b.view(v) for v in node.inputs[1:]]
        over = op.over(x_type)
        if isinstance(op, InstanceNormalization | GroupNormalization):
            affine = [None if v is None else along(v, 1, len(x.dims)).broadcast(x.dims) for v in affine]
        else:
            affine = [None if v is None else v.broadcast(x.dims) for v in affine]
        if isinstance(op, GroupNormalization):
            x, *outputs = (grouped(v, op.groups) for v in (x, *outputs))
            affine = [None if v is None else grouped(v, op.groups) for v in affine]
            over = tuple(range(2, len(x.dims)))
        mode, epsilon = self.mode(op)
        b.step(
            NORM, [x, *(v for v in affine if v is not None)], outputs, parallel=x.elements > 20_000,
            axes=sum(1 << a for a in over), mode=mode, has=sum(1 << i for i, v in enumerate(affine) if v is not None), epsilon=epsilon,
        )

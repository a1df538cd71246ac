"""Normalisations: one kernel, any strides; what differs is over which axes statistics run and how scale and bias lie."""

from __future__ import annotations

import enum
from collections.abc import Sequence

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
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.kernels.common.cuts import record, shared
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step, View


class Mode(enum.IntEnum):
    """What x less its mean (in ``variance`` and ``deviation``) is divided by."""

    variance = 0
    """sqrt(variance + epsilon)"""
    rms = 1
    deviation = 2
    """sqrt(variance) + epsilon"""
    lp1 = 3
    lp2 = 4


def cuts(step: Step) -> Sequence[Cut]:
    axes = record(step)["axes"]
    return shared(step, [a for a in range(len(step.outputs[0].dims)) if axes >> a & 1])


NORM = Kernel(
    "norm_f32", params=(Param("axes", "u32"), Param("mode"), Param("has"), Param("epsilon", "f32")),
    variants=(*PORTABLE, "avx2", "avx512"), enums={"norm": Mode}, cuts=cuts,
)
"""``axes`` is a bit set; ``has`` flags scale (1) and bias (2)."""


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

    def axes(self, node: Node) -> int:
        return node.outputs[0].type.rank + isinstance(node.op, GroupNormalization)

    def mode(self, op: _Norm) -> tuple[Mode, float]:
        """Mode and epsilon."""
        match op:
            case RMSNormalization():
                return Mode.rms, op.epsilon
            case MeanVarianceNormalization():
                return Mode.deviation, 1e-9
            case LpNormalization():
                return (Mode.lp1 if op.p == 1 else Mode.lp2), 0.0
            case LayerNormalization() | InstanceNormalization() | GroupNormalization():
                return Mode.variance, op.epsilon
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

"""Pooling. ``pool_f32`` does maximum, mean and p-norm for any strides, fast where channels or the last axis are contiguous;
``maxpool`` does the other dtypes and the indices."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

from flaot.ir.graph import Node
from flaot.ir.ops.pool import AveragePool, LpPool, MaxPool, _Pool
from flaot.ir.types import DType
from flaot.kernels.base import PORTABLE, VARIANTS, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.common.axes import three
from flaot.kernels.common.cuts import cut, record, windows, worth
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step


class Mode(enum.IntEnum):
    """What pool_f32 takes of a window."""

    max = 0
    mean = 1
    norm = 2


def cuts(step: Step) -> Sequence[Cut]:
    p, y = record(step), step.outputs[0]
    return worth([
        cut("batch", y.dims[0], {0: 0, 1: 0}),
        cut("channels", y.dims[1], {0: 1, 1: 1}),
        *windows(step, [1], p["window"], p["stride"], p["dilation"], p["begin"], "begin", "end"),
    ])


def cuts_of_max(step: Step) -> Sequence[Cut]:
    """Indices count elements of the whole input, which parts do not know."""
    return cuts(step) if len(step.outputs) == 1 else ()


_WINDOW = tuple(Param(name, count=3) for name in ("window", "stride", "dilation", "begin", "end"))
POOL = Kernel(
    "pool_f32", params=(Param("mode"), Param("include"), Param("p"), *_WINDOW), variants=(*PORTABLE, "avx2", "avx512"),
    enums={"pool": Mode}, cuts=cuts,
)
MAXPOOL = Kernel("maxpool", params=(Param("column_major"), *_WINDOW), variants=VARIANTS, cuts=cuts_of_max)


def _window(op: _Pool) -> dict[str, Any]:
    """The window as the kernels take it: three axes, outer ones of one element added."""
    n = len(op.kernel)
    return {
        "window": three(op.kernel, 1), "stride": three(op.strides, 1), "dilation": three(op.dilations, 1),
        "begin": three(op.pads[:n], 0), "end": three(op.pads[n:], 0),
    }


class PoolWay(Implementation):
    op = _Pool

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        dtype = node.outputs[0].type.dtype
        allowed = (DType.float32, DType.int8, DType.uint8) if isinstance(node.op, MaxPool) else (DType.float32,)
        names = ", ".join(d.name for d in allowed)
        return None if dtype in allowed else f"{node.op.name} of {dtype.name}; the CPU kernels take {names}"

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, MaxPool | AveragePool | LpPool)
        x, outs = b.view(node.inputs[0]), [b.view(v) for v in node.outputs]
        parallel = outs[0].elements * math.prod(op.kernel) > 50_000
        if isinstance(op, MaxPool) and (op.indices or not x.dtype.is_float):
            b.step(MAXPOOL, [x], outs, parallel=parallel, column_major=int(op.column_major), **_window(op))
            return
        mode = Mode.max if isinstance(op, MaxPool) else Mode.mean if isinstance(op, AveragePool) else Mode.norm
        include = int(isinstance(op, AveragePool) and op.count_include_pad)
        p = op.p if isinstance(op, LpPool) else 0
        used = (outs[0].dims[-1] - 1) * op.strides[-1] + (op.kernel[-1] - 1) * op.dilations[-1] + 1
        row = max(x.dims[-1] + op.pads[len(op.kernel) - 1], used)
        b.step(POOL, [x], outs, scratch=4 * row, parallel=parallel, mode=mode, include=include, p=p, **_window(op))

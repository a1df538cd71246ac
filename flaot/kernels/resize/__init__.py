"""Resize: tables made at compile time, two axes per kernel call. ``resize_f32`` blends, ``resize_nearest`` picks (any dtype)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.resize import Resize
from flaot.ir.types import DType
from flaot.kernels.base import VARIANTS, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.common.cuts import record, shared, worth
from flaot.kernels.resize.tables import Table, table
from flaot.kernels.tiling import Cut, Listed, Patch, Reach
from flaot.plan.program import Step, View


def cuts(step: Step) -> Sequence[Cut]:
    """Along resized axes parts take the elements that their entries of the table name."""
    p, blends = record(step), step.kernel == BLEND.name
    found = shared(step, (p["rows"], p["columns"]))
    for axis, taps in ((p["rows"], p["row_taps"] if blends else 1), (p["columns"], p["column_taps"] if blends else 1)):
        if axis >= 0:
            found.append(_resized(step, axis, taps, 2 * taps if blends else taps, axis == p["columns"], p["table"]))
    return worth(found)


def _resized(step: Step, axis: int, taps: int, rows: int, last: bool, table: tuple[int, ...]) -> Cut:
    """The cut along an axis with so many rows of entries, of which the first ``taps`` are indices, at the beginning or end of the table."""
    size = step.outputs[0].dims[axis]
    first = len(table) - rows * size if last else 0
    named = [[i for i in table[first + o : first + taps * size : size] if i >= 0] for o in range(size)]
    lows, highs = tuple(min(n, default=0) for n in named), tuple(max(n, default=-1) + 1 for n in named)
    patch = Patch("table", "table", first - len(table) if last else 0, rows=rows, indices=taps)
    return Cut(f"axis {axis}", size, {0: Listed(axis, lows=lows, highs=highs), 1: Reach(axis)}, (patch,))


_AXES = (Param("rows"), Param("columns"), Param("inner"))
_TABLE = Param("table", count=0)
BLEND = Kernel(
    "resize_f32", params=(*_AXES, Param("row_taps"), Param("column_taps"), Param("fill", "f32"), _TABLE), variants=VARIANTS, cuts=cuts,
)
NEAREST = Kernel("resize_nearest", params=(*_AXES, Param("fill", count=2), _TABLE), variants=VARIANTS, cuts=cuts)


class ResizeWay(Implementation):
    op = Resize

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        op, dtype = node.op, node.outputs[0].type.dtype
        assert isinstance(op, Resize)
        if dtype is DType.float32 or op.mode == "nearest":
            return None
        return f"{op.mode} Resize of {dtype.name}; the CPU kernels take float32"

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, Resize)
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        tables = {axis: table(op, axis, size) for axis, size in enumerate(x.dims)}
        axes = [axis for axis, t in tables.items() if not t.is_identity]
        if not axes:
            b.copy(x, y)
            return
        groups = [axes[i : i + 2] for i in range(len(axes) % 2, len(axes), 2)]
        groups = [axes[:1], *groups] if len(axes) % 2 else groups
        for i, group in enumerate(groups):
            dims = [op.sizes[a] if a in group else d for a, d in enumerate(x.dims)]
            out = y if i == len(groups) - 1 else b.temp(x.dtype, dims)
            _step(b, op, x, out, group, tables)
            x = out


def _step(b: Builder, op: Resize, x: View, y: View, axes: list[int], tables: dict[int, Table]) -> None:
    """Resizes one or two axes; rows is -1 when only columns change, inner the contiguous axis where that is another one."""
    columns, rows = axes[-1], axes[0] if len(axes) == 2 else -1
    inner = next((a for a, s in enumerate(x.strides) if a not in axes and s == 1 == y.strides[a] and x.dims[a] > 1), -1)
    parts = [tables[a] for a in axes]
    common: dict[str, Any] = {"parallel": y.elements > 50_000, "rows": rows, "columns": columns, "inner": inner}
    if op.mode == "nearest":
        flat = np.concatenate([t.indices[0] for t in parts])
        b.step(NEAREST, [x], [y], fill=_fill(op, x.dtype), table=flat.tolist(), **common)
        return
    flat = np.concatenate([v.reshape(-1) for t in parts for v in (t.indices, t.weights.view(np.int32))])
    width = x.dims[columns] * (x.dims[inner] if inner >= 0 else 1)
    b.step(
        BLEND, [x], [y], scratch=4 * width, row_taps=parts[0].taps if rows >= 0 else 0, column_taps=parts[-1].taps,
        fill=op.extrapolation, table=flat.tolist(), **common,
    )


def _fill(op: Resize, dtype: DType) -> list[int]:
    """The extrapolation value in the tensor's own bits, low word first."""
    value = np.float32(op.extrapolation)
    bits = value.view(np.uint32) >> 16 if dtype is DType.bfloat16 else value
    raw = bits.astype(dtype.numpy).tobytes()
    low, high = struct.unpack("<2i", raw.ljust(8, b"\0"))
    return [low, high]

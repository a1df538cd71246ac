"""Clip to fixed bounds; bounds known only at run time, and integers, become Max and Min."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import reads
from flaot.ir.ops.arithmetic import Max, Min
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType


@dataclass(frozen=True)
class Clip(_Elementwise):
    """min(max(x, low), high), so ``high`` where the bounds cross; NaN stays NaN."""

    low: float
    high: float
    code, work, exact = "clip", 2, True

    @property
    def arguments(self) -> tuple[float, ...]:
        return (self.low, self.high)


@reads("Clip")
def read_clip(r: NodeReader) -> None:
    x = r.input(0)
    if r.opset < 11:
        r.result(clip(r, x, r.float("min", -math.inf), r.float("max", math.inf)))
        return
    low, high = r.optional(1), r.optional(2)
    known = all(v is None or (v.data is not None and v.type.elements == 1) for v in (low, high))
    if known and x.type.dtype in (DType.float32, DType.float16):
        r.result(clip(r, x, _number(low, -math.inf), _number(high, math.inf)))
        return
    for bound, op in ((low, Max()), (high, Min())):
        if bound is None:
            continue
        if bound.type.elements != 1:
            r.fail(f"a bound has shape {list(bound.type.shape)}; it must be one number")
        x = r.emit(op, [x, bound])
    r.result(x)


def clip(r: NodeReader, x: Value, low: float, high: float) -> Value:
    """``x`` itself when there are no bounds."""
    return x if low == -math.inf and high == math.inf else r.emit(Clip(low, high), [x])


def _number(bound: Value | None, absent: float) -> float:
    return absent if bound is None or bound.data is None else float(np.float32(bound.data.reshape(-1)[0]))

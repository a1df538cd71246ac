"""CumSum, and Trilu, which keeps a triangle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.op import Op, reads, require
from flaot.ir.ops.arithmetic import scalar
from flaot.ir.ops.compare import Where
from flaot.ir.ops.elementwise import NUMBERS, names
from flaot.ir.ops.slice import normal_axes
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class CumSum(Op):
    """Running sums along ``axis``, from the end when ``reverse``, without the element itself when ``exclusive``."""

    axis: int
    exclusive: bool
    reverse: bool

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor")
        require(x.dtype in NUMBERS, f"CumSum of {x.dtype.name}; it takes {names(NUMBERS)}")
        return (x,)


@reads("CumSum")
def read_cumsum(r: NodeReader) -> None:
    x, axis = r.input(0), r.constant(1, "the axis")
    if axis.size != 1:
        r.fail(f"axis of shape {list(axis.shape)}; it must be one number")
    (a,) = normal_axes(r, [int(axis.reshape(()))], x.type.rank)
    r.result(r.emit(CumSum(a, r.int("exclusive", 0) != 0, r.int("reverse", 0) != 0), [x]))


@reads("Trilu")
def read_trilu(r: NodeReader) -> None:
    x, given = r.input(0), r.optional_constant(1, "the diagonal")
    k = 0 if given is None else int(given.reshape(()))
    if x.type.rank < 2:
        r.fail(f"input of shape {list(x.type.shape)}; Trilu takes matrices")
    r.reserve(x.type.shape[-2] * x.type.shape[-1])
    rows, columns = (np.arange(d) for d in x.type.shape[-2:])
    below = columns[None, :] - rows[:, None]
    keep = below >= k if r.int("upper", 1) else below <= k
    r.result(r.emit(Where(), [r.literal(keep), x, scalar(r, 0, x.type.dtype)]))

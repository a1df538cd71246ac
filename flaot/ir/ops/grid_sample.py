"""GridSample: x read at positions given by a grid, with interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_ELEMENTS, TensorType

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True)
class GridSample(Op):
    """y[n, c, o...] = x[n, c] at the position grid[n, o..., :], whose entries run over -1..1 from the last spatial axis to the first."""

    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, grid = inputs
        assert x is not None and grid is not None
        same = x.dtype.is_float and grid.dtype is x.dtype
        require(same, f"GridSample of {x.dtype.name} at {grid.dtype.name} positions; both must be one float type")
        n = x.rank - 2
        require(n in (2, 3), f"GridSample of {x}; rank 4 or 5 is expected")
        require(n == 2 or self.mode != "cubic", "cubic GridSample takes two spatial axes")
        ok = grid.rank == x.rank and grid.shape[0] == x.shape[0] and grid.shape[-1] == n
        require(ok, f"grid {grid} for {x}; [{x.shape[0]}, sizes..., {n}] of rank {x.rank} is expected")
        require(0 not in x.shape[2:], f"GridSample of {x}")
        shape = (*x.shape[:2], *grid.shape[1:-1])
        require(math.prod(shape) <= MAX_ELEMENTS, f"GridSample gives {list(shape)}, more than {MAX_ELEMENTS} elements")
        return (x.with_shape(shape),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(length=16)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        assert inputs[0] is not None
        taps = {"nearest": 1, "linear": 2, "cubic": 4}[self.mode] ** (inputs[0].rank - 2)
        return Cost(2 * taps * outputs[0].elements, sum(t.nbytes for t in (*inputs, *outputs) if t is not None))


@reads("GridSample")
def read(r: NodeReader) -> None:
    given = r.str("mode", "bilinear" if r.opset < 20 else "linear")
    mode, padding = {"bilinear": "linear", "bicubic": "cubic"}.get(given, given), r.str("padding_mode", "zeros")
    if mode not in MODES:
        r.fail(f"mode {given!r}; allowed are {', '.join(MODES)}")
    if padding not in PADDINGS:
        r.fail(f"padding_mode {padding!r}; allowed are {', '.join(PADDINGS)}")
    r.result(r.emit(GridSample(mode, padding, r.int("align_corners", 0) != 0), [r.input(0), r.input(1)]))

"""RoiAlign: fixed-size samples of rectangles of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType


@dataclass(frozen=True)
class RoiAlign(Op):
    """Inputs x [N, C, H, W], rectangles [R, 4] (x0, y0, x1, y1), image of each [R]; output [R, C, height, width].
    ``sampling`` 0 means ceil(rectangle / output). With ``maximum`` the largest weighted neighbour of all samples, else their mean."""

    height: int
    width: int
    sampling: int
    scale: float
    half_pixel: bool
    maximum: bool

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, rois, batch = inputs
        assert x is not None and rois is not None and batch is not None
        require(x.rank == 4 and 0 not in x.shape, f"RoiAlign of {x}; a non-empty image [N, C, H, W] is expected")
        require(x.dtype.is_float and rois.dtype is x.dtype, f"RoiAlign of {x} with rectangles {rois}; both must be one float type")
        require(rois.rank == 2 and rois.shape[1] == 4, f"rectangles {rois}; [R, 4] is expected")
        require(batch == TensorType(DType.int64, rois.shape[:1]), f"batch indices {batch}; int64[{rois.shape[0]}] is expected")
        ok = self.height > 0 and self.width > 0 and self.sampling >= 0
        require(ok, f"RoiAlign to {self.height}x{self.width}, sampling {self.sampling}")
        return (x.with_shape((rois.shape[0], x.shape[1], self.height, self.width)),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(length=16)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        samples = 8 * max(self.sampling, 2) ** 2
        return Cost(samples * outputs[0].elements, sum(t.nbytes for t in (*inputs, *outputs) if t is not None))


@reads("RoiAlign")
def read(r: NodeReader) -> None:
    mode, coordinates = r.str("mode", "avg"), r.str("coordinate_transformation_mode", "half_pixel")
    if mode not in ("avg", "max"):
        r.fail(f"mode {mode!r}; allowed are avg and max")
    if coordinates not in ("half_pixel", "output_half_pixel"):
        r.fail(f"coordinate_transformation_mode {coordinates!r}; allowed are half_pixel and output_half_pixel")
    op = RoiAlign(
        r.int("output_height", 1), r.int("output_width", 1), r.int("sampling_ratio", 0), r.float("spatial_scale", 1.0),
        r.opset >= 16 and coordinates == "half_pixel", mode == "max",
    )
    r.result(r.emit(op, [r.input(0), r.input(1), r.input(2)]))

"""Sliding windows over spatial axes: ONNX's kernel_shape, strides, pads, auto_pad, dilations and ceil_mode made explicit."""

from __future__ import annotations

from dataclasses import dataclass

from flaot.ir.ops.conv import check_window, same_pads
from flaot.ir.reading import NodeReader

MAX_SPATIAL = 3


@dataclass(frozen=True)
class Window:
    """One entry per spatial axis; ``pads`` are all begins, then all ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]


def reach(kernel: int, dilation: int) -> int:
    """Input positions one window spans."""
    return (kernel - 1) * dilation + 1


def window_count(size: int, kernel: int, stride: int, begin: int, end: int, dilation: int, ceil: bool = False) -> int:
    """Windows along one axis; under ``ceil`` a window may overhang the end but must not start in the end padding."""
    room = size + begin + end - reach(kernel, dilation)
    if room < 0:
        return 0
    count = (-(-room // stride) if ceil else room // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + begin else count


def read_window(r: NodeReader, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    """The window attributes of the node for these spatial sizes."""
    rank = len(spatial)
    if not 1 <= rank <= MAX_SPATIAL:
        r.unsupported(f"{r.op_type} over {rank} spatial axes; supported are 1 to {MAX_SPATIAL}")
    strides, dilations = r.ints("strides", (1,) * rank), r.ints("dilations", (1,) * rank)
    check_window(r, rank, strides, dilations)
    if len(kernel) != rank or any(k < 1 for k in kernel):
        r.fail(f"kernel_shape {list(kernel)} for {rank} spatial axes; {rank} entries of at least 1 are expected")
    pads = same_pads(r, kernel, strides, dilations)
    if len(pads) != 2 * rank or any(p < 0 for p in pads):
        r.fail(f"pads {list(pads)} for {rank} spatial axes; {2 * rank} entries of at least 0 are expected")
    return Window(kernel, strides, pads, dilations)

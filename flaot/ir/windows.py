"""Sliding windows over spatial axes: ONNX's kernel_shape, strides, pads, auto_pad, dilations and ceil_mode made explicit."""

from __future__ import annotations

from dataclasses import dataclass

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


def same_pads(size: int, kernel: int, stride: int, dilation: int, lower: bool) -> tuple[int, int]:
    """Begin and end padding for ceil(size / stride) windows; the odd one goes to the end unless ``lower``."""
    total = max(0, (-(-size // stride) - 1) * stride + reach(kernel, dilation) - size)
    small = total // 2
    return (total - small, small) if lower else (small, total - small)


def read_window(r: NodeReader, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    """The window attributes of the node for these spatial sizes."""
    rank = len(spatial)
    if not 1 <= rank <= MAX_SPATIAL:
        r.unsupported(f"{r.op_type} over {rank} spatial axes; supported are 1 to {MAX_SPATIAL}")
    strides, dilations = r.ints("strides", (1,) * rank), r.ints("dilations", (1,) * rank)
    for what, given in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
        if len(given) != rank:
            r.fail(f"{what} {list(given)} for {rank} spatial axes")
        if any(v < 1 for v in given):
            r.fail(f"{what} {list(given)}; every entry must be at least 1")
    return Window(kernel, strides, read_pads(r, spatial, kernel, strides, dilations), dilations)


def read_pads(
    r: NodeReader, spatial: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[int, ...]:
    """The explicit pads of the node's ``pads`` or ``auto_pad``."""
    rank, auto = len(spatial), r.str("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        rows = zip(spatial, kernel, strides, dilations, strict=True)
        pairs = [same_pads(size, k, s, d, auto == "SAME_LOWER") for size, k, s, d in rows]
        return (*(p[0] for p in pairs), *(p[1] for p in pairs))
    if auto == "VALID":
        return (0,) * 2 * rank
    if auto != "NOTSET":
        r.fail(f"auto_pad {auto!r}; allowed are NOTSET, SAME_UPPER, SAME_LOWER and VALID")
    pads = r.ints("pads", (0,) * 2 * rank)
    if len(pads) != 2 * rank:
        r.fail(f"pads {list(pads)} for {rank} spatial axes; {2 * rank} entries are expected")
    if any(p < 0 for p in pads):
        r.fail(f"pads {list(pads)}; {r.op_type} takes no negative padding")
    return pads

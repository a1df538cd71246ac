"""ConvTranspose over one to three spatial axes. With stride 1 and constant weights it is read as a Conv."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.ops.conv import Conv, check_window
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_ELEMENTS, TensorType
from flaot.ir.windows import MAX_SPATIAL, reach


@dataclass(frozen=True)
class ConvTranspose(Op):
    """y[n, m, o] = bias[m] + sum of w[c, m, k] * x[n, c, i] over all c, i, k with i * stride + k * dilation - begin = o.

    Inputs x [N, C, spatial...], w [C, M / group, kernel...], optional bias [M]. ``sizes`` are the output's spatial sizes,
    ``begins`` how many elements are cut off in front.
    """

    strides: tuple[int, ...]
    begins: tuple[int, ...]
    dilations: tuple[int, ...]
    sizes: tuple[int, ...]
    group: int = 1

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, w, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
        assert x is not None and w is not None
        n = len(self.strides)
        same = x.dtype.is_float and x.dtype is w.dtype
        require(same, f"ConvTranspose of {x.dtype.name} with weights of {w.dtype.name}; both must be one float type")
        require(x.rank == n + 2 == w.rank, f"ConvTranspose of {x} with weights {w}; {n} spatial axes are expected")
        require(self.group >= 1 and x.shape[1] % self.group == 0, f"{x.shape[1]} channels in {self.group} groups")
        require(w.shape[0] == x.shape[1], f"weights {w} for {x.shape[1]} channels")
        require(all(s > 0 for s in self.sizes) and 0 not in w.shape, f"ConvTranspose with weights {w} gives sizes {list(self.sizes)}")
        channels = w.shape[1] * self.group
        require(bias is None or bias == TensorType(x.dtype, (channels,)), f"bias {bias}; it must be {x.dtype.name}[{channels}]")
        shape = (x.shape[0], channels, *self.sizes)
        require(math.prod(shape) <= MAX_ELEMENTS, f"ConvTranspose gives {list(shape)}, more than {MAX_ELEMENTS} elements")
        return (x.with_shape(shape),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        assert inputs[1] is not None
        return Tolerance(length=inputs[1].elements // max(inputs[1].shape[1], 1) // self.group)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        x, w = inputs[0], inputs[1]
        assert x is not None and w is not None
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(2 * x.elements * w.elements // max(w.shape[0], 1), moved)


@reads("ConvTranspose")
def read(r: NodeReader) -> None:
    x, w = r.input(0), r.input(1)
    n = x.type.rank - 2
    if not 1 <= n <= MAX_SPATIAL or w.type.rank != n + 2:
        r.unsupported(f"ConvTranspose of {x.type} with weights {w.type}; supported are 1 to {MAX_SPATIAL} spatial axes")
    strides, dilations = r.ints("strides", (1,) * n), r.ints("dilations", (1,) * n)
    check_window(r, n, strides, dilations)
    if r.has("kernel_shape") and r.ints("kernel_shape") != w.type.shape[2:]:
        r.fail(f"kernel_shape {list(r.ints('kernel_shape'))} for weights {w.type}")
    begins, sizes = _extent(r, x.type.shape[2:], strides, tuple(map(reach, w.type.shape[2:], dilations)))
    op = ConvTranspose(strides, begins, dilations, sizes, r.int("group", 1))
    bias = r.optional(2)
    same = None if w.data is None else _as_conv(op, x.type, w.data)
    if same is None:
        r.result(r.emit(op, [x, w, bias]))
    else:
        op.infer([x.type, w.type, None if bias is None else bias.type])
        r.result(r.emit(same[0], [x, r.literal(same[1]), bias]))


def _extent(
    r: NodeReader, spatial: tuple[int, ...], strides: tuple[int, ...], spans: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Begin cuts and output sizes from pads, auto_pad, output_padding and output_shape."""
    n, auto = len(spatial), r.str("auto_pad", "NOTSET")
    extra = r.ints("output_padding", (0,) * n)
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        r.fail(f"auto_pad {auto!r}; allowed are NOTSET, VALID, SAME_UPPER and SAME_LOWER")
    if len(extra) != n or any(e < 0 for e in extra):
        r.fail(f"output_padding {list(extra)} for {n} spatial axes; {n} entries of at least 0 are expected")
    whole = [t * (d - 1) + e + s for t, d, e, s in zip(strides, spatial, extra, spans, strict=True)]
    if r.has("output_shape") or auto.startswith("SAME"):
        sizes = r.ints("output_shape", [d * t for d, t in zip(spatial, strides, strict=True)])[-n:]
        if len(sizes) != n or any(s < 1 for s in sizes):
            r.fail(f"output_shape {list(sizes)} for {n} spatial axes; {n} entries of at least 1 are expected")
        cut = [max(0, w - s) for w, s in zip(whole, sizes, strict=True)]
        return tuple(c // 2 if auto == "SAME_UPPER" else c - c // 2 for c in cut), sizes
    pads = r.ints("pads", (0,) * 2 * n) if auto == "NOTSET" else (0,) * 2 * n
    if len(pads) != 2 * n or any(p < 0 for p in pads):
        r.fail(f"pads {list(pads)} for {n} spatial axes; {2 * n} entries of at least 0 are expected")
    sizes = tuple(w - a - b for w, a, b in zip(whole, pads[:n], pads[n:], strict=True))
    if any(s < 1 for s in sizes):
        r.fail(f"pads {list(pads)} leave nothing of the {whole} output elements")
    return pads[:n], sizes


def _as_conv(op: ConvTranspose, x: TensorType, w: np.ndarray) -> tuple[Conv, np.ndarray] | None:
    """The same as a convolution with mirrored weights; None when strided or cut by more than the kernel reaches."""
    n = len(op.strides)
    if any(s != 1 for s in op.strides) or w.shape[0] % op.group:
        return None
    spans = [reach(k, d) for k, d in zip(w.shape[2:], op.dilations, strict=True)]
    begin = [s - 1 - b for s, b in zip(spans, op.begins, strict=True)]
    end = [o + s - 1 - d - b for o, s, d, b in zip(op.sizes, spans, x.shape[2:], begin, strict=True)]
    if any(p < 0 for p in (*begin, *end)):
        return None
    grouped = w.reshape(op.group, w.shape[0] // op.group, *w.shape[1:]).swapaxes(1, 2)
    mirrored = np.flip(grouped, axis=tuple(range(3, 3 + n))).reshape(-1, w.shape[0] // op.group, *w.shape[2:])
    return Conv(op.strides, (*begin, *end), op.dilations, op.group), np.ascontiguousarray(mirrored)

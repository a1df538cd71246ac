"""Conv over one to three spatial axes, and FusedConv: a Conv with a residual input and an activation.

Inputs are x [N, C, spatial...], weights [M, C / group, kernel...] and an optional bias [M]. ``auto_pad`` dies in the reader.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


class Act(enum.IntEnum):
    """Activation of a FusedConv; the numbers are stored in plans. ``alpha`` and ``beta`` are the op's."""

    none = 0
    clamp = 1
    """min(max(v, alpha), beta): Relu, Relu6, Clip."""
    sigmoid = 2
    silu = 3
    """v * sigmoid(v)."""
    hard_sigmoid = 4
    """min(max(alpha * v + beta, 0), 1)."""
    hard_swish = 5
    """v * min(max(v / 6 + 1/2, 0), 1)."""
    tanh = 6
    gelu = 7
    """v / 2 * (1 + erf(v / sqrt 2))."""
    leaky_relu = 8
    """v where v >= 0, else alpha * v."""
    prelu = 9
    """v where v >= 0, else slope * v, with one slope per output channel."""


@dataclass(frozen=True)
class Conv(Op):
    """y[n, m, o] = bias[m] + sum over c, k of w[m, c, k] * x[n, c', o * stride + k * dilation - pad].

    ``pads`` holds the begins of all spatial axes, then the ends, as in ONNX.
    """

    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    group: int = 1

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, w, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
        assert x is not None and w is not None
        self._check(x, w)
        require(bias is None or bias == TensorType(x.dtype, (w.shape[0],)), f"bias {bias}; it must be {x.dtype.name}[{w.shape[0]}]")
        n = x.rank - 2
        spatial = []
        for size, k, s, d, lo, hi in zip(x.shape[2:], w.shape[2:], self.strides, self.dilations, self.pads[:n], self.pads[n:], strict=True):
            reach, padded = (k - 1) * d + 1, size + lo + hi
            require(reach <= padded, f"a kernel that spans {reach} elements is larger than the padded input of {padded}")
            spatial.append((padded - reach) // s + 1)
        return (x.with_shape((x.shape[0], w.shape[0], *spatial)),)

    def _check(self, x: TensorType, w: TensorType) -> None:
        require(x.dtype.is_float, f"{self.name} of {x.dtype.name}; it takes floats")
        require(x.dtype is w.dtype, f"input of {x.dtype.name} and weights of {w.dtype.name}; they must agree")
        require(3 <= x.rank <= 5, f"input of rank {x.rank}; allowed are 3 to 5 (one to three spatial axes)")
        require(w.rank == x.rank, f"weights of rank {w.rank} for an input of rank {x.rank}; they must agree")
        n = x.rank - 2
        for what, values, count, low in (
            ("strides", self.strides, n, 1), ("dilations", self.dilations, n, 1), ("pads", self.pads, 2 * n, 0)
        ):
            require(len(values) == count, f"{what} {list(values)} for {n} spatial axes; there must be {count}")
            require(all(v >= low for v in values), f"{what} {list(values)}; they must be at least {low}")
        require(all(k >= 1 for k in w.shape), f"weights of shape {list(w.shape)}; every size must be at least 1")
        require(self.group >= 1, f"group {self.group}; it must be at least 1")
        require(x.shape[1] == w.shape[1] * self.group, f"{x.shape[1]} input channels; weights {list(w.shape)} and group {self.group} "
                f"need {w.shape[1] * self.group}")
        require(w.shape[0] % self.group == 0, f"{w.shape[0]} output channels are not a multiple of group {self.group}")

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        """Errors grow with the products summed per output. The bound covers Winograd F(4x4), whose error is at most
        2.5 times that of direct float32 summation (see flaot/kernels/conv/winograd.py)."""
        assert inputs[1] is not None
        return Tolerance(length=math.prod(inputs[1].shape[1:]))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        assert inputs[1] is not None
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(2 * outputs[0].elements * math.prod(inputs[1].shape[1:]), moved)


@dataclass(frozen=True)
class FusedConv(Conv):
    """act(Conv(x, w, bias) + residual), with inputs x, w, bias, residual, slope; the last three may be absent.

    ``residual`` has the type of the output. ``slope`` [M] is given exactly for ``Act.prelu``. Defined by its expansion:
    Conv, then Add when there is a residual, then the ONNX op (or ops) of the activation.
    """

    act: Act = Act.none
    alpha: float = 0.0
    beta: float = 0.0

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        require(len(inputs) == 5, f"{len(inputs)} inputs; FusedConv has 5")
        (y,) = super().infer(inputs[:3])
        residual, slope = inputs[3], inputs[4]
        require(residual is None or residual == y, f"residual {residual}; it must be {y}")
        require((slope is not None) == (self.act is Act.prelu), "a slope goes with prelu and only with it")
        require(slope is None or slope == TensorType(y.dtype, (y.shape[1],)), f"slope {slope}; it must be {y.dtype.name}[{y.shape[1]}]")
        return (y,)


def same_pads(r: NodeReader, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """Pads in ONNX order from ``auto_pad`` or ``pads``; shared by Conv and the pooling readers."""
    n, mode = len(kernel), r.str("auto_pad", "NOTSET")
    if mode not in ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"):
        r.fail(f"auto_pad '{mode}'; allowed are NOTSET, VALID, SAME_UPPER and SAME_LOWER")
    if mode in ("NOTSET", ""):
        return r.ints("pads", [0] * 2 * n)
    if mode == "VALID":
        return (0,) * 2 * n
    begin, end = [], []
    for size, k, s, d in zip(r.type(0).shape[2:], kernel, strides, dilations, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        small, large = total // 2, total - total // 2
        begin.append(small if mode == "SAME_UPPER" else large)
        end.append(large if mode == "SAME_UPPER" else small)
    return (*begin, *end)


def check_window(r: NodeReader, n: int, strides: Sequence[int], dilations: Sequence[int]) -> None:
    """Refuses windows whose strides or dilations do not fit ``n`` spatial axes; shared by Conv and the pooling readers."""
    for what, values in (("strides", strides), ("dilations", dilations)):
        if len(values) != n:
            r.fail(f"{what} {list(values)} for {n} spatial axes")
        if any(v < 1 for v in values):
            r.fail(f"{what} {list(values)}; they must be at least 1")


@reads("Conv")
def read_conv(r: NodeReader) -> None:
    x, w = r.type(0), r.type(1)
    n = x.rank - 2
    if n < 1 or w.rank != x.rank:
        r.fail(f"input {x} and weights {w}; both need a batch, a channel and the same number of spatial axes")
    if n > 3:
        r.unsupported(f"{n} spatial axes; the highest supported number is 3")
    kernel = r.ints("kernel_shape", w.shape[2:])
    if kernel != w.shape[2:]:
        r.fail(f"kernel_shape {list(kernel)} differs from that of the weights {list(w.shape)}")
    strides, dilations = r.ints("strides", [1] * n), r.ints("dilations", [1] * n)
    check_window(r, n, strides, dilations)
    pads = same_pads(r, kernel, strides, dilations)
    op = Conv(tuple(strides), tuple(pads), tuple(dilations), r.int("group", 1))
    r.result(r.emit(op, [r.input(0), r.input(1), r.optional(2)]))



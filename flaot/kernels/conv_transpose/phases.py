"""Strided ConvTranspose as ordinary convolutions: the outputs o = q * stride + r of one phase r are a stride 1 convolution of x.

Output o takes x[i] w[k] where i * stride + k * dilation = o + begin. For a fixed r the matching k are evenly spaced, and so are their i:
i = q + shift, a convolution with a subset of the taps, mirrored. Each phase writes its own interleaved elements of y. Along the last
axis, phases with equal shifts become one convolution with stride times the channels, since those lie side by side in memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from flaot.ir.graph import Graph, Node, Value
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.types import TensorType
from flaot.kernels.base import Builder, CpuChip, Implementation, Storage, candidates
from flaot.plan.program import View


@dataclass(frozen=True)
class Phase:
    """One phase of one axis: its outputs r, r + stride, ...; the kernel taps it takes, mirrored; the input of output 0 and tap 0."""

    r: int
    count: int
    taps: tuple[int, ...]
    shift: int
    dilation: int

    def same_reach(self, other: Phase) -> bool:
        return (self.shift, len(self.taps), self.count) == (other.shift, len(other.taps), other.count)


def phases(op: ConvTranspose, axis: int, kernel: int) -> list[Phase]:
    s, d, begin = op.strides[axis], op.dilations[axis], op.begins[axis]
    out = []
    for r in range(min(s, op.sizes[axis])):
        taps = tuple(k for k in reversed(range(kernel)) if (r + begin - k * d) % s == 0)
        shift = (r + begin - taps[0] * d) // s if taps else 0
        out.append(Phase(r, -(-(op.sizes[axis] - r) // s), taps, shift, d // math.gcd(s, d)))
    return out


@dataclass(frozen=True)
class Part:
    """One convolution: a phase of every axis and the output channels per channel of y (above 1 when last phases are joined)."""

    phases: tuple[Phase, ...]
    joined: tuple[Phase, ...]


def parts(op: ConvTranspose, kernel: Sequence[int]) -> list[Part]:
    each = [phases(op, axis, k) for axis, k in enumerate(kernel)]
    last = each[-1]
    join = op.group == 1 and len(last) == op.strides[-1] > 1 and all(p.same_reach(last[0]) for p in last)
    if join:
        each[-1] = last[:1]
    return [Part(combination, tuple(last) if join else combination[-1:]) for combination in itertools.product(*each)]


def weights(w: np.ndarray, part: Part, group: int) -> np.ndarray:
    """[C, M / group, kernel...] to the convolution's [joined * M, C / group, taps...]."""
    blocks = []
    for last in part.joined:
        picked = w[np.ix_(range(w.shape[0]), range(w.shape[1]), *(p.taps for p in part.phases[:-1]), last.taps)]
        grouped = picked.reshape(group, w.shape[0] // group, *picked.shape[1:]).swapaxes(1, 2)
        blocks.append(grouped.reshape(-1, w.shape[0] // group, *picked.shape[2:]))
    return np.ascontiguousarray(np.concatenate(blocks))


@dataclass(frozen=True)
class Job:
    """The Conv node of one part, on a graph of its own, and which elements of x it reads."""

    part: Part
    node: Node
    first: tuple[int, ...]
    way: Implementation


def job(node: Node, part: Part, chip: CpuChip) -> Job | None:
    """None when the part reads nothing of x, or no channels-last way fits."""
    op, x, w = node.op, node.inputs[0], node.inputs[1]
    assert isinstance(op, ConvTranspose) and x is not None and w is not None and w.data is not None
    first, sizes, begins, ends = [], [], [], []
    for size, p in zip(x.type.shape[2:], part.phases, strict=True):
        last = p.count - 1 + p.shift + (len(p.taps) - 1) * p.dilation
        low, high = max(p.shift, 0), min(last, size - 1)
        if not p.taps or low > high:
            return None
        first.append(low)
        sizes.append(high - low + 1)
        begins.append(low - p.shift)
        ends.append(last - high)
    graph, data = Graph(), weights(w.data, part, op.group)
    image = graph.add_input("x", TensorType(x.type.dtype, (*x.type.shape[:2], *sizes)))
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    repeated = None if bias is None or bias.data is None else graph.add_constant(np.tile(bias.data, len(part.joined)))
    conv = Conv((1,) * len(sizes), (*begins, *ends), tuple(p.dilation for p in part.phases), op.group)
    inner = graph.add_node(conv, [image, graph.add_constant(data), repeated])
    fits = [c for c in candidates(conv) if _fits(c, inner, chip)]
    return Job(part, inner, tuple(first), min(fits, key=lambda c: c.cost(inner, chip))) if fits else None


def _fits(way: Implementation, node: Node, chip: CpuChip) -> bool:
    last = {way.storage(node), way.input_storage(node, 0)} <= {Storage.last, Storage.either}
    return last and way.requires in chip.variants and way.reject(node, chip) is None


class PhasesWay(Implementation):
    op = ConvTranspose
    requires = "avx2"

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        op = node.op
        assert isinstance(op, ConvTranspose)
        if any(v is not None and v.data is None for v in node.inputs[1:]):
            return "weights or bias of ConvTranspose are not constant; the fast kernels pack them at compile time"
        if any(j is None for j in self._jobs(node, chip)):
            return "a phase of this ConvTranspose has no convolution on the fast kernels"
        return None

    def storage(self, node: Node) -> Storage:
        return Storage.last

    def cost(self, node: Node, chip: CpuChip) -> float:
        return sum(j.way.cost(j.node, chip) for j in self._jobs(node, chip) if j is not None)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, ConvTranspose)
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        pixels = y.strides[-1] == y.dims[1] or y.dims[-1] == 1
        target = y if pixels and (y.strides[1] == 1 or y.dims[1] == 1) else _dense_last(b, y)
        for j in self._jobs(node, b.chip):
            assert j is not None
            places = {j.node.inputs[0]: _window(x, j), j.node.outputs[0]: _target(target, op, j)}
            j.way.lower(j.node, cast(Builder, _Inner(b, places)))
        if target is not y:
            b.copy(target, y)

    def _jobs(self, node: Node, chip: CpuChip) -> list[Job | None]:
        op, w = node.op, node.inputs[1]
        assert isinstance(op, ConvTranspose) and w is not None
        return [job(node, part, chip) for part in parts(op, w.type.shape[2:])]


def _dense_last(b: Builder, y: View) -> View:
    n = len(y.dims)
    return b.temp(y.dtype, (y.dims[0], *y.dims[2:], y.dims[1])).permute((0, n - 1, *range(1, n - 1)))


def _window(x: View, j: Job) -> View:
    """The part of x that the convolution reads."""
    image = j.node.inputs[0]
    assert image is not None
    for axis, first in enumerate(j.first):
        x = x.slice(2 + axis, first, image.type.shape[2 + axis])
    return x


def _target(y: View, op: ConvTranspose, j: Job) -> View:
    """The elements of y that the convolution writes, joined phases as channels."""
    for axis, p in enumerate(j.part.phases):
        y = y.slice(2 + axis, p.r, p.count, op.strides[axis])
    return View(y.buffer, y.dtype, j.node.outputs[0].type.shape, (y.strides[0], 1, *y.strides[2:]), y.offset)


class _Inner:
    """A builder that knows where the values of an inner node lie and leaves everything else to the outer one."""

    def __init__(self, outer: Builder, places: dict[Value | None, View]) -> None:
        self._outer, self._places = outer, places

    def view(self, value: Value | None) -> View:
        if value is not None and value.data is not None:
            return self._outer.constant(value.data, value.type.dtype)
        return self._places[value]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outer, name)

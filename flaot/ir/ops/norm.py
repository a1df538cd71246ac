"""Normalisations: y = (x - mean) / sqrt(variance + epsilon) * scale + bias over some axes, and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType, broadcast_shapes


@dataclass(frozen=True)
class _Norm(Op):
    """Common to all: :meth:`over` names the axes that statistics run over."""

    def over(self, x: TensorType) -> tuple[int, ...]:
        raise NotImplementedError

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x = inputs[0]
        assert x is not None
        require(x.dtype.is_float, f"{self.name} of {x.dtype.name}; it takes floats")
        require(all(t is None or t.dtype is x.dtype for t in inputs), f"{self.name} of mixed types; all inputs must be {x.dtype.name}")
        self.check(x, inputs[1:])
        return (x,)

    def check(self, x: TensorType, rest: Sequence[TensorType | None]) -> None:
        """Refuses what the op cannot take."""

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        x = inputs[0]
        assert x is not None
        length = 1
        for a in self.over(x):
            length *= x.shape[a]
        return Tolerance(length=max(1, length))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost(8 * outputs[0].elements, 2 * outputs[0].nbytes)


def _per_channel(x: TensorType, rest: Sequence[TensorType | None], size: int) -> None:
    require(x.rank >= 2, f"an input of rank {x.rank}; it needs a batch and a channel axis")
    for what, t in zip(("scale", "bias"), rest, strict=True):
        require(t is not None and t.shape == (size,), f"{what} of shape {list(t.shape) if t else None}; it must be [{size}]")


@dataclass(frozen=True)
class LayerNormalization(_Norm):
    """Over the axes from ``axis`` on; inputs x, scale, bias (or None). With ``stats`` also mean and 1 / sqrt(variance + epsilon)."""

    axis: int
    epsilon: float = 1e-5
    stats: bool = False

    def over(self, x: TensorType) -> tuple[int, ...]:
        return tuple(range(self.axis, x.rank))

    def check(self, x: TensorType, rest: Sequence[TensorType | None]) -> None:
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor")
        for what, t in zip(("scale", "bias"), rest, strict=False):
            fits = t is None or (t.rank <= x.rank and broadcast_shapes(x.shape, t.shape) == x.shape)
            require(fits, f"{what} of shape {list(t.shape) if t else None} does not broadcast to {list(x.shape)}")

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = super().infer(inputs)
        stat = x.with_shape((*x.shape[: self.axis], *[1] * (x.rank - self.axis)))
        return (x, stat, stat) if self.stats else (x,)


@dataclass(frozen=True)
class RMSNormalization(LayerNormalization):
    """y = x / sqrt(mean(x x) + epsilon) * scale over the axes from ``axis`` on; inputs x, scale."""


@dataclass(frozen=True)
class InstanceNormalization(_Norm):
    """Over the spatial axes of every channel; inputs x [N, C, spatial...], scale [C], bias [C]."""

    epsilon: float = 1e-5

    def over(self, x: TensorType) -> tuple[int, ...]:
        return tuple(range(2, x.rank))

    def check(self, x: TensorType, rest: Sequence[TensorType | None]) -> None:
        _per_channel(x, rest, x.shape[1] if x.rank > 1 else 0)


@dataclass(frozen=True)
class GroupNormalization(_Norm):
    """Over the channels of a group and the spatial axes; inputs x [N, C, spatial...], scale [C], bias [C]."""

    groups: int
    epsilon: float = 1e-5

    def over(self, x: TensorType) -> tuple[int, ...]:
        return tuple(range(1, x.rank))

    def check(self, x: TensorType, rest: Sequence[TensorType | None]) -> None:
        _per_channel(x, rest, x.shape[1] if x.rank > 1 else 0)
        require(self.groups >= 1 and x.shape[1] % self.groups == 0, f"{self.groups} groups of {x.shape[1]} channels")


@dataclass(frozen=True)
class MeanVarianceNormalization(_Norm):
    """y = (x - mean) / (sqrt(variance) + 1e-9) over ``axes``."""

    axes: tuple[int, ...]

    def over(self, x: TensorType) -> tuple[int, ...]:
        return self.axes

    def check(self, x: TensorType, rest: Sequence[TensorType | None]) -> None:
        require(all(0 <= a < x.rank for a in self.axes), f"axes {list(self.axes)} of a rank {x.rank} tensor")


@dataclass(frozen=True)
class LpNormalization(_Norm):
    """y = x / norm along ``axis``, the norm being sum |x| for ``p`` 1 and sqrt(sum x x) for 2; 0 where the norm is 0."""

    axis: int
    p: int = 2

    def over(self, x: TensorType) -> tuple[int, ...]:
        return (self.axis,)

    def check(self, x: TensorType, rest: Sequence[TensorType | None]) -> None:
        require(self.p in (1, 2), f"p {self.p}; allowed are 1 and 2")
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor")


def _axis(r: NodeReader, axis: int) -> int:
    rank = r.type(0).rank
    if not -rank <= axis < rank:
        r.fail(f"axis {axis} is outside a rank {rank} tensor")
    return axis % rank


@reads("LayerNormalization")
def read_layer(r: NodeReader) -> None:
    op = LayerNormalization(_axis(r, r.int("axis", -1)), r.float("epsilon", 1e-5), r.n_outputs > 1)
    r.result(*r.emit_many(op, [r.input(0), r.input(1), r.optional(2)])[: max(r.n_outputs, 1)])


@reads("RMSNormalization")
def read_rms(r: NodeReader) -> None:
    r.result(r.emit(RMSNormalization(_axis(r, r.int("axis", -1)), r.float("epsilon", 1e-5)), [r.input(0), r.input(1)]))


@reads("InstanceNormalization")
def read_instance(r: NodeReader) -> None:
    r.result(r.emit(InstanceNormalization(r.float("epsilon", 1e-5)), [r.input(0), r.input(1), r.input(2)]))


@reads("GroupNormalization")
def read_group(r: NodeReader) -> None:
    x, groups = r.type(0), r.int("num_groups")
    scale, bias = r.input(1), r.input(2)
    if r.opset < 21 and x.rank > 1 and scale.type.shape == (groups,) != x.shape[1:2] and groups > 0:
        if not (scale.is_constant and bias.is_constant and scale.data is not None and bias.data is not None):
            r.unsupported("scale and bias per group that are not constants")
        per = x.shape[1] // groups
        scale, bias = r.literal(scale.data.repeat(per)), r.literal(bias.data.repeat(per))
    r.result(r.emit(GroupNormalization(groups, r.float("epsilon", 1e-5)), [r.input(0), scale, bias]))


@reads("MeanVarianceNormalization")
def read_mean_variance(r: NodeReader) -> None:
    axes = tuple(sorted({_axis(r, a) for a in r.ints("axes", (0, 2, 3))}))
    r.result(r.emit(MeanVarianceNormalization(axes), [r.input(0)]))


@reads("LpNormalization")
def read_lp(r: NodeReader) -> None:
    r.result(r.emit(LpNormalization(_axis(r, r.int("axis", -1)), r.int("p", 2)), [r.input(0)]))

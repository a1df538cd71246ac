"""Normalisations and softmax in terms of reductions and arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import Node, Value
from flaot.ir.ops.functions import Abs, Exp, Log, Sqrt
from flaot.ir.ops.norm import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    MeanVarianceNormalization,
    RMSNormalization,
)
from flaot.ir.ops.pool import AveragePool
from flaot.ir.ops.reduce import (
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceSum,
    ReduceSumSquare,
)
from flaot.ir.ops.softmax import LogSoftmax, Softmax
from flaot.rewrite import Miss
from flaot.rules.expand.parts import Made, Parts, expands

FLOATS = "its operators are for floats"


def _mean(b: Parts, x: Value, axes: Sequence[int]) -> Value:
    return b(ReduceMean(tuple(axes)), x)


def _normal(b: Parts, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over the axes."""
    centred = b.sub(x, _mean(b, x, axes))
    return b.div(centred, b(Sqrt(), b.add(_mean(b, b.mul(centred, centred), axes), epsilon)))


def _affine(b: Parts, x: Value, scale: Value | None, bias: Value | None) -> Value:
    x = x if scale is None else b.mul(x, scale)
    return x if bias is None else b.add(x, bias)


def _channels(b: Parts, value: Value, rank: int) -> Value:
    """A vector over axis 1 of a tensor of this rank."""
    return b.reshape(value, (1, value.type.elements, *[1] * (rank - 2)))


@expands(LayerNormalization)
def layer_norm(b: Parts, node: Node) -> Made:
    if b.op.stats:
        return Miss("mean and deviation are outputs too")
    axes = range(b.op.axis, b.x.type.rank)
    return _affine(b, _normal(b, b.x, axes, b.op.epsilon), b.optional(1), b.optional(2))


@expands(RMSNormalization)
def rms_norm(b: Parts, node: Node) -> Made:
    axes = range(b.op.axis, b.x.type.rank)
    size = b(Sqrt(), b.add(_mean(b, b.mul(b.x, b.x), axes), b.op.epsilon))
    return _affine(b, b.div(b.x, size), b.optional(1), None)


@expands(InstanceNormalization)
def instance_norm(b: Parts, node: Node) -> Made:
    rank = b.x.type.rank
    normal = _normal(b, b.x, range(2, rank), b.op.epsilon)
    return _affine(b, normal, _channels(b, b.input(1), rank), _channels(b, b.input(2), rank))


@expands(GroupNormalization)
def group_norm(b: Parts, node: Node) -> Made:
    n, c, *rest = shape = b.x.type.shape
    size = 1
    for d in rest:
        size *= d
    grouped = b.reshape(b.x, (n, b.op.groups, c // b.op.groups * size))
    normal = b.reshape(_normal(b, grouped, (2,), b.op.epsilon), shape)
    return _affine(b, normal, _channels(b, b.input(1), len(shape)), _channels(b, b.input(2), len(shape)))


@expands(MeanVarianceNormalization)
def mean_variance_norm(b: Parts, node: Node) -> Made:
    centred = b.sub(b.x, _mean(b, b.x, b.op.axes))
    deviation = b(Sqrt(), _mean(b, b.mul(centred, centred), b.op.axes))
    return b.div(centred, b.add(deviation, 1e-9))


@expands(LpNormalization)
def lp_norm(b: Parts, node: Node) -> Made:
    reduction = ReduceL1 if b.op.p == 1 else ReduceL2
    return b.div(b.x, b.max(b(reduction((b.op.axis,)), b.x), 1e-12))


@expands(Softmax)
def softmax(b: Parts, node: Node) -> Made:
    axes = (b.op.axis,)
    powers = b(Exp(), b.sub(b.x, b(ReduceMax(axes), b.x)))
    return b.div(powers, b(ReduceSum(axes), powers))


@expands(LogSoftmax)
def log_softmax(b: Parts, node: Node) -> Made:
    axes = (b.op.axis,)
    shifted = b.sub(b.x, b(ReduceMax(axes), b.x))
    return b.sub(shifted, b(Log(), b(ReduceSum(axes), b(Exp(), shifted))))


@expands(ReduceL1)
def reduce_l1(b: Parts, node: Node) -> Made:
    return b(ReduceSum(b.op.axes, b.op.keepdims), b(Abs(), b.x))


@expands(ReduceSumSquare)
def reduce_sum_square(b: Parts, node: Node) -> Made:
    return b(ReduceSum(b.op.axes, b.op.keepdims), b.mul(b.x, b.x))


@expands(ReduceL2)
def reduce_l2(b: Parts, node: Node) -> Made:
    return b(Sqrt(), b(ReduceSum(b.op.axes, b.op.keepdims), b.mul(b.x, b.x))) if b.x.type.dtype.is_float else Miss(FLOATS)


@expands(ReduceLogSum)
def reduce_log_sum(b: Parts, node: Node) -> Made:
    return b(Log(), b(ReduceSum(b.op.axes, b.op.keepdims), b.x)) if b.x.type.dtype.is_float else Miss(FLOATS)


@expands(ReduceLogSumExp)
def reduce_log_sum_exp(b: Parts, node: Node) -> Made:
    return b(Log(), b(ReduceSum(b.op.axes, b.op.keepdims), b(Exp(), b.x))) if b.x.type.dtype.is_float else Miss(FLOATS)


@expands(ReduceMean)
def reduce_mean(b: Parts, node: Node) -> Made:
    count = b.x.type.elements // max(node.outputs[0].type.elements, 1)
    if not b.x.type.dtype.is_float or count == 0:
        return Miss("the mean of integers or of nothing")
    return b.mul(b(ReduceSum(b.op.axes, b.op.keepdims), b.x), 1 / count)


@expands(AveragePool)
def average_pool(b: Parts, node: Node) -> Made:
    """Over the whole image it is a mean."""
    spatial = b.x.type.shape[2:]
    whole = b.op.kernel == spatial and not any(b.op.pads) and node.outputs[0].type.shape[2:] == (1,) * len(spatial)
    return _mean(b, b.x, range(2, b.x.type.rank)) if whole else Miss("the window is not the whole image")

"""Normalisations and softmax in terms of reductions and arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flaot.ir.graph import Node, Value
from flaot.ir.ops.batch_norm import BatchNormalization
from flaot.ir.ops.functions import Exp, Log, Reciprocal, Sqrt
from flaot.ir.ops.lrn import LRN
from flaot.ir.ops.norm import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    MeanVarianceNormalization,
    RMSNormalization,
)
from flaot.ir.ops.pool import AveragePool
from flaot.ir.ops.reduce import ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceSum
from flaot.ir.ops.softmax import LogSoftmax, Softmax
from flaot.rules.expand.parts import Made, Parts, expands


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
    axes = range(b.op.axis, b.x.type.rank)
    if not b.op.stats:
        return _affine(b, _normal(b, b.x, axes, b.op.epsilon), b.optional(1), b.optional(2))
    mean = _mean(b, b.x, axes)
    centred = b.sub(b.x, mean)
    inverse = b(Reciprocal(), b(Sqrt(), b.add(_mean(b, b.mul(centred, centred), axes), b.op.epsilon)))
    return _affine(b, b.mul(centred, inverse), b.optional(1), b.optional(2)), mean, inverse


@expands(RMSNormalization)
def rms_norm(b: Parts, node: Node) -> Made:
    axes = range(b.op.axis, b.x.type.rank)
    size = b(Sqrt(), b.add(_mean(b, b.mul(b.x, b.x), axes), b.op.epsilon))
    return _affine(b, b.div(b.x, size), b.optional(1), None)


@expands(BatchNormalization)
def batch_norm(b: Parts, node: Node) -> Made:
    scale, bias, mean, variance = (_channels(b, b.input(i), b.x.type.rank) for i in range(1, 5))
    return _affine(b, b.div(b.sub(b.x, mean), b(Sqrt(), b.add(variance, b.op.epsilon))), scale, bias)


@expands(LRN)
def lrn(b: Parts, node: Node) -> Made:
    """The sum over nearby channels is a mean of a window over the channel axis, missing ones counted as 0."""
    n, c, *rest = shape = b.x.type.shape
    before = (b.op.size - 1) // 2
    window = AveragePool((b.op.size, 1), (1, 1), (before, 0, b.op.size - 1 - before, 0), (1, 1), False, count_include_pad=True)
    mean = b(window, b.reshape(b.mul(b.x, b.x), (n, 1, c, math.prod(rest))))
    size = b.add(b.mul(b.reshape(mean, shape), b.op.alpha), b.op.bias)
    return b.mul(b.x, b(Exp(), b.mul(b(Log(), size), -b.op.beta)))


@expands(InstanceNormalization)
def instance_norm(b: Parts, node: Node) -> Made:
    rank = b.x.type.rank
    normal = _normal(b, b.x, range(2, rank), b.op.epsilon)
    return _affine(b, normal, _channels(b, b.input(1), rank), _channels(b, b.input(2), rank))


@expands(GroupNormalization)
def group_norm(b: Parts, node: Node) -> Made:
    n, c, *rest = shape = b.x.type.shape
    grouped = b.reshape(b.x, (n, b.op.groups, c // b.op.groups * math.prod(rest)))
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

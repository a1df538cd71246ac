"""Reductions in terms of sums, and what is a reduction: a mean over the whole image, Einsum."""

from __future__ import annotations

import math

from flaot.ir.graph import Node
from flaot.ir.ops.compare import Where
from flaot.ir.ops.einsum import Einsum
from flaot.ir.ops.functions import Abs, Exp, IsInf, Log, Sqrt
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
from flaot.rewrite import Miss
from flaot.rules.expand.parts import Made, Parts, expands

FLOATS = "its operators are for floats"

LARGEST = 2**24
"""Elements of a product of Einsum's operands before it is summed."""


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
    """The largest x is taken out first, so that nothing overflows (0 in its place where it is infinite)."""
    if not b.x.type.dtype.is_float:
        return Miss(FLOATS)
    top = b(ReduceMax(b.op.axes), b.x)
    top = b(Where(), b(IsInf(), top), 0.0, top)
    total = b.add(b(Log(), b(ReduceSum(b.op.axes), b(Exp(), b.sub(b.x, top)))), top)
    return b.reshape(total, node.outputs[0].type.shape)


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
    return b(ReduceMean(tuple(range(2, b.x.type.rank))), b.x) if whole else Miss("the window is not the whole image")


@expands(Einsum)
def einsum(b: Parts, node: Node) -> Made:
    """The operands, their axes in one order, multiplied and summed over the labels that go. Plain matrix products are read as MatMul."""
    op: Einsum = b.op
    sizes = op.sizes(node.input_types)
    labels = [*op.output, *op.summed]
    if any(len(set(o)) < len(o) for o in op.operands):
        return Miss("a label walks a diagonal")
    if math.prod(sizes.values()) > LARGEST:
        return Miss(f"the product of the operands has {math.prod(sizes.values())} elements; at most {LARGEST} are written out")
    product = None
    for slot, operand in enumerate(op.operands):
        order = sorted(range(len(operand)), key=[labels.index(c) for c in operand].__getitem__)
        x = b.transpose(b.input(slot), tuple(order))
        held = dict(zip((operand[i] for i in order), x.type.shape, strict=True))
        x = b.reshape(x, tuple(held.get(c, 1) for c in labels))
        product = x if product is None else b.mul(product, x)
    assert product is not None
    return b(ReduceSum(tuple(range(len(op.output), len(labels))), keepdims=False), product)

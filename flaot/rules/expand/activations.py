"""Activations in terms of exp, max, min and arithmetic."""

from __future__ import annotations

import math

from flaot.ir.graph import Node
from flaot.ir.ops.activations import (
    Celu,
    Elu,
    Erf,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mish,
    Relu,
    Selu,
    Shrink,
    Sigmoid,
    Silu,
    Softplus,
    Softsign,
    Tanh,
    ThresholdedRelu,
)
from flaot.ir.ops.arithmetic import Div, Pow, PRelu, Sub
from flaot.ir.ops.clip import Clip
from flaot.ir.ops.compare import Less, Where
from flaot.ir.ops.functions import Abs, Exp, Log, Neg, Reciprocal, Sqrt
from flaot.rewrite import Miss
from flaot.rules.expand.parts import Made, Parts, expands


@expands(Gelu)
def gelu(b: Parts, node: Node) -> Made:
    return b.mul(b.mul(b.x, 0.5), b.add(b(Erf(), b.mul(b.x, math.sqrt(0.5))), 1.0))


@expands(GeluTanh)
def gelu_tanh(b: Parts, node: Node) -> Made:
    inner = b.mul(b.add(b.x, b.mul(b.mul(b.mul(b.x, b.x), b.x), 0.044715)), math.sqrt(2 / math.pi))
    return b.mul(b.mul(b.x, 0.5), b.add(b(Tanh(), inner), 1.0))


@expands(Silu)
def silu(b: Parts, node: Node) -> Made:
    return b.mul(b.x, b(Sigmoid(), b.x if b.op.alpha == 1.0 else b.mul(b.x, b.op.alpha)))


@expands(HardSigmoid)
def hard_sigmoid(b: Parts, node: Node) -> Made:
    return b(Clip(0.0, 1.0), b.add(b.mul(b.x, b.op.alpha), b.op.beta))


@expands(HardSwish)
def hard_swish(b: Parts, node: Node) -> Made:
    return b.mul(b.x, b(Clip(0.0, 1.0), b.add(b.mul(b.x, 1 / 6), 0.5)))


@expands(Clip)
def clip(b: Parts, node: Node) -> Made:
    if b.op.low == -math.inf and b.op.high == math.inf:
        return b.add(b.x, 0.0)
    x = b.x if b.op.low == -math.inf else b.max(b.x, b.op.low)
    return x if b.op.high == math.inf else b.min(x, b.op.high)


@expands(Relu)
def relu(b: Parts, node: Node) -> Made:
    return b.max(b.x, 0.0)


@expands(LeakyRelu)
def leaky_relu(b: Parts, node: Node) -> Made:
    return b.add(b.max(b.x, 0.0), b.mul(b.min(b.x, 0.0), b.op.alpha))


@expands(PRelu)
def prelu(b: Parts, node: Node) -> Made:
    return b.add(b.max(b.x, 0.0), b.mul(b.min(b.x, 0.0), b.input(1)))


@expands(ThresholdedRelu)
def thresholded_relu(b: Parts, node: Node) -> Made:
    return b(Where(), b(Less(), b.op.alpha, b.x), b.x, 0.0)


@expands(Shrink)
def shrink(b: Parts, node: Node) -> Made:
    if not b.x.type.dtype.is_float:
        return Miss("the bounds of integers are not written")
    above = b(Where(), b(Less(), b.op.lambd, b.x), b.sub(b.x, b.op.bias), 0.0)
    return b(Where(), b(Less(), b.x, -b.op.lambd), b.add(b.x, b.op.bias), above)


@expands(Elu)
def elu(b: Parts, node: Node) -> Made:
    return b.add(b.max(b.x, 0.0), b.mul(b.sub(b(Exp(), b.min(b.x, 0.0)), 1.0), b.op.alpha))


@expands(Celu)
def celu(b: Parts, node: Node) -> Made:
    below = b.sub(b(Exp(), b.mul(b.min(b.x, 0.0), 1 / b.op.alpha)), 1.0)
    return b.add(b.max(b.x, 0.0), b.mul(below, b.op.alpha))


@expands(Selu)
def selu(b: Parts, node: Node) -> Made:
    below = b.mul(b.sub(b(Exp(), b.min(b.x, 0.0)), 1.0), b.op.alpha * b.op.gamma)
    return b.add(b.mul(b.max(b.x, 0.0), b.op.gamma), below)


@expands(Softsign)
def softsign(b: Parts, node: Node) -> Made:
    return b.div(b.x, b.add(b(Abs(), b.x), 1.0))


@expands(Softplus)
def softplus(b: Parts, node: Node) -> Made:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    small = b(Log(), b.add(b(Exp(), b(Neg(), b(Abs(), b.x))), 1.0))
    return b.add(b.max(b.x, 0.0), small)


@expands(Mish)
def mish(b: Parts, node: Node) -> Made:
    return b.mul(b.x, b(Tanh(), b(Softplus(), b.x)))


@expands(Sub)
def sub(b: Parts, node: Node) -> Made:
    return b.add(b.x, b.mul(b.input(1), -1.0)) if b.x.type.dtype.is_float else Miss("integers wrap otherwise")


@expands(Div)
def div(b: Parts, node: Node) -> Made:
    return b.mul(b.x, b(Reciprocal(), b.input(1))) if b.x.type.dtype.is_float else Miss("integers truncate")


@expands(Pow)
def power(b: Parts, node: Node) -> Made:
    exponent = b.input(1)
    if exponent.data is None or exponent.data.size != 1 or not b.x.type.dtype.is_float or exponent.type.rank > b.x.type.rank:
        return Miss("the exponent is not a constant 2, 3 or 0.5")
    match float(exponent.data.reshape(-1)[0]):
        case 2.0:
            return b.mul(b.x, b.x)
        case 3.0:
            return b.mul(b.mul(b.x, b.x), b.x)
        case 0.5:
            return b(Sqrt(), b.x)
    return Miss("the exponent is not a constant 2, 3 or 0.5")

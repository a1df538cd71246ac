"""Gemm and pointwise convolutions in terms of MatMul."""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.matmul import Gemm, MatMul
from flaot.rewrite import Miss
from flaot.rules.expand.parts import Made, Parts, expands


@expands(Gemm)
def gemm(b: Parts, node: Node) -> Made:
    a, w = b.input(0), b.input(1)
    a = b.transpose(a, (1, 0)) if b.op.trans_a else a
    w = b.transpose(w, (1, 0)) if b.op.trans_b else w
    y = b(MatMul(), a, w)
    y = y if b.op.alpha == 1.0 else b.mul(y, b.op.alpha)
    c = b.optional(2)
    if c is None or b.op.beta == 0.0:
        return y
    return b.add(y, c if b.op.beta == 1.0 else b.mul(c, b.op.beta))


@expands(Conv)
def pointwise(b: Parts, node: Node) -> Made:
    """A 1x1 convolution of one group is a product over channels: W [M, C] times x [N, C, positions]."""
    w = b.input(1)
    n, c, *spatial = b.x.type.shape
    plain = all(k == 1 for k in w.type.shape[2:]) and b.op.group == 1 and not any(b.op.pads) and all(s == 1 for s in b.op.strides)
    if not plain or w.data is None or type(node.op) is not Conv:
        return Miss("it is not a pointwise convolution of one group with constant weights")
    size = int(np.prod(spatial))
    y = b(MatMul(), b.constant(w.data.reshape(1, -1, c)), b.reshape(b.x, (n, c, size)))
    bias = b.optional(2)
    if bias is not None:
        y = b.add(y, b.reshape(bias, (1, bias.type.elements, 1)))
    return b.reshape(y, (n, w.type.shape[0], *spatial))

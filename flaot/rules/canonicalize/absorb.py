"""Scaling and shifting the result of a product by changing its weights.

For every output channel m of Conv, ConvTranspose, Gemm and MatMul with constant weights

    a[m] * (sum w[m] x + b[m]) + c[m]  =  sum (a[m] w[m]) x + (a[m] b[m] + c[m])

computed in float64 and rounded once, with elementwise numpy operations only: the same bytes on every machine.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.ops.matmul import Gemm, MatMul
from flaot.ir.ops.reshape import Reshape
from flaot.rewrite import Miss
from flaot.rules.match import COMPUTABLE, made_by, operand, single_use


def product(graph: Graph, value: Value) -> Node | Miss | None:
    """The product that computes ``value``, if its weights are constant and nothing else needs its result."""
    node = made_by(value, Conv, ConvTranspose, Gemm, MatMul)
    if node is None or value.type.dtype not in COMPUTABLE:
        return None
    weights = node.inputs[1:] if not isinstance(node.op, MatMul) else node.inputs[1:2]
    if any(v is not None and not v.is_constant for v in weights):
        return Miss(f"the weights of {node.where} are not constant")
    if isinstance(node.op, MatMul) and operand(node, 1).type.rank != 2:
        return Miss(f"the weights of {node.where} are a stack of matrices")
    if not single_use(graph, value):
        return Miss(f"the result of {node.where} is also used elsewhere")
    return node


def channel_axis(node: Node) -> int:
    """Which axis of a product's result its output channels lie on."""
    return node.outputs[0].type.rank - 1 if isinstance(node.op, Gemm | MatMul) else 1


def absorb(patch: Patch, node: Node, scale: np.ndarray, shift: np.ndarray) -> Value:
    """A product equal to ``scale * node + shift`` (one number per output channel each)."""
    if isinstance(node.op, MatMul):
        return _matmul(patch, node, scale, shift)
    if isinstance(node.op, Gemm):
        return _gemm(patch, node, node.op, scale, shift)
    x, weights = operand(node, 0), operand(node, 1)
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    old = bias.data.astype(np.float64) if bias is not None and bias.data is not None else np.zeros(len(scale))
    return patch.node(node.op, [x, _constant(patch, weights, _scaled(node, scale)), _bias(patch, weights, bias, old * scale + shift)])


def _constant(patch: Patch, like: Value, data: np.ndarray) -> Value:
    assert like.data is not None
    with np.errstate(over="ignore"):
        return patch.constant(data.astype(like.data.dtype), like.name if like.names else "")


def _bias(patch: Patch, weights: Value, old: Value | None, data: np.ndarray) -> Value:
    """A bias of the weights' type, with the name of the one it replaces."""
    assert weights.data is not None
    with np.errstate(over="ignore"):
        return patch.constant(data.astype(weights.data.dtype), old.name if old is not None and old.names else "")


def _scaled(node: Node, scale: np.ndarray) -> np.ndarray:
    """Weights of a convolution, times ``scale`` along the output channels."""
    data = operand(node, 1).data
    assert data is not None
    wide: np.ndarray = data.astype(np.float64)
    spatial = (1,) * (data.ndim - 2)
    if isinstance(node.op, ConvTranspose):
        group = node.op.group
        grouped: np.ndarray = wide.reshape(group, data.shape[0] // group, *data.shape[1:])
        return np.asarray(grouped * scale.reshape(group, 1, data.shape[1], *spatial)).reshape(data.shape)
    return np.asarray(wide * scale.reshape(-1, 1, *spatial))


def _gemm(patch: Patch, node: Node, op: Gemm, scale: np.ndarray, shift: np.ndarray) -> Value:
    weights = operand(node, 1)
    assert weights.data is not None
    wide = weights.data.astype(np.float64) * (scale[:, None] if op.trans_b else scale)
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    old = bias.data.astype(np.float64) * op.beta if bias is not None and bias.data is not None else np.zeros(1)
    new = dataclasses.replace(op, beta=1.0)
    return patch.node(new, [operand(node, 0), _constant(patch, weights, wide), _bias(patch, weights, bias, old * scale + shift)])


def _matmul(patch: Patch, node: Node, scale: np.ndarray, shift: np.ndarray) -> Value:
    """A shift makes it a Gemm over the rows of all stacked matrices."""
    x, weights = operand(node, 0), operand(node, 1)
    assert weights.data is not None
    scaled = _constant(patch, weights, weights.data.astype(np.float64) * scale) if (scale != 1).any() else weights
    if not shift.any():
        return patch.node(MatMul(), [x, scaled])
    return linear(patch, x, scaled, _bias(patch, weights, None, shift))


def linear(patch: Patch, x: Value, weights: Value, bias: Value) -> Value:
    """x [..., K] times weights [K, N] plus bias [N], as a Gemm."""
    depth, columns = weights.type.shape
    lead = x.type.shape[:-1]
    rows = x if len(lead) == 1 else patch.node(Reshape((int(np.prod(lead, dtype=np.int64)), depth)), [x])
    y = patch.node(Gemm(), [rows, weights, bias])
    return y if len(lead) == 1 else patch.node(Reshape((*lead, columns)), [y])

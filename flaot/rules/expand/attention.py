"""Attention = MatMul, Softmax, MatMul.

    S = scale Q K^T,  softcap tanh(S / softcap) where there is one,  + mask + causal mask
    P = softmax(S),   0 in rows whose masks are -inf throughout, with zero_blind
    Y = P V

Fewer key heads than query heads: the query heads of a group are rows of one product.
"""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Node, Value
from flaot.ir.ops.activations import Tanh
from flaot.ir.ops.attention import LARGE, Attention, causal_mask
from flaot.ir.ops.compare import Equal, Where
from flaot.ir.ops.matmul import MatMul
from flaot.ir.ops.reduce import ReduceMax
from flaot.ir.ops.softmax import Softmax
from flaot.ir.types import MAX_ELEMENTS
from flaot.rewrite import Miss
from flaot.rules.expand.parts import Made, Parts, expands
from flaot.rules.match import COMPUTABLE, operand


@expands(Attention)
def attention(p: Parts, node: Node) -> Made:
    op = node.op
    assert isinstance(op, Attention)
    if p.dtype not in COMPUTABLE:
        return Miss(f"numbers of {p.dtype.name} are not written")
    q, k, v = (operand(node, i) for i in range(3))
    batch, heads, queries, depth = q.type.shape
    keys, stacked = k.type.shape[2], (batch, op.kv_heads, op.group * queries)
    if batch * heads * queries * keys > MAX_ELEMENTS or (op.causal and queries * keys > LARGE):
        return Miss(f"scores of {[batch, heads, queries, keys]} are too large to be written out")
    scores = p(MatMul(), p.reshape(q, (*stacked, depth)), p.transpose(k, (0, 1, 3, 2)))
    scores = p.reshape(scores, (batch, heads, queries, keys))
    if op.scale != 1.0:
        scores = p.mul(scores, op.scale)
    if op.softcap:
        scores = p.mul(p(Tanh(), p.div(scores, op.softcap)), op.softcap)
    bias = _bias(p, op, node)
    chances = p(Softmax(3), scores if bias is None else p.add(scores, bias))
    if op.zero_blind and bias is not None:
        blind = p(Equal(), p(ReduceMax((bias.type.rank - 1,)), bias), -np.inf)
        chances = p(Where(), blind, 0.0, chances)
    y = p(MatMul(), p.reshape(chances, (*stacked, keys)), v)
    return p.reshape(y, node.outputs[0].type.shape)


def _bias(p: Parts, op: Attention, node: Node) -> Value | None:
    """What is added to the scores."""
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    if not op.causal:
        return mask
    causal = p.patch.constant(causal_mask(*op.lengths(node.input_types), op.offset).astype(p.dtype.numpy))
    return causal if mask is None else p.add(mask, causal)

"""softmax(scale Q K^T + mask) V in products, as exporters and people write it, becomes Attention.

    1. the scale on Q, on K, on both or on the product (scores.py), before or after the heads are split
    2. K transposed by a Transpose of its own or by the one that splits the heads
    3. zeros where the softmax is NaN: where(isnan(p), 0, p)
    4. keys and values repeated for groups of query heads: reshape(expand(reshape(x)))
    5. heads in an axis of their own, or in the batch: [batch * heads, length, depth], their number found by heads.py
    6. a constant mask that hides the keys after each query is causality
"""

from __future__ import annotations

import math

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import OpTypeError
from flaot.ir.ops.arithmetic import Add, Div, Mul
from flaot.ir.ops.attention import Attention, may_be_blind
from flaot.ir.ops.compare import Where
from flaot.ir.ops.expand import Expand
from flaot.ir.ops.functions import IsNaN
from flaot.ir.ops.matmul import MatMul
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.softmax import Softmax
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import DType
from flaot.rewrite import Miss, Rule
from flaot.rules.build import reshaped, transposed
from flaot.rules.match import made_by, number, operand, single_use
from flaot.rules.recognise.heads import heads_in_batch
from flaot.rules.recognise.products import scaled
from flaot.rules.recognise.scores import Mask, Scores, causal_offset, scores_of


class AttentionForm(Rule):
    """Anchored at the product with V."""

    anchors = (MatMul,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        softmax, guard = _softmax(graph, operand(node, 0))
        if softmax is None or node.outputs[0].type.dtype is not DType.float32:
            return None
        if softmax.op != Softmax(softmax.outputs[0].type.rank - 1):
            return Miss("the softmax is not over the last axis")
        if graph.is_output(softmax.outputs[0]) or graph.uses(softmax.outputs[0]) != 1 + len(guard[:1]):
            return Miss("the weights after the softmax are also used elsewhere")
        found = scores_of(graph, operand(softmax, 0))
        if found is None:
            return None
        patch = self.patch(graph, found.product, *reversed(found.nodes), softmax, *guard, node)
        why = _rewrite(graph, patch, node, found, guarded=bool(guard))
        if why is not None:
            patch.discard()
            return Miss(why)
        return patch


def _softmax(graph: Graph, weights: Value) -> tuple[Node | None, tuple[Node, ...]]:
    """The softmax that makes the weights, and the nodes of case 3 between."""
    where = made_by(weights, Where)
    if where is None:
        return made_by(weights, Softmax), ()
    test, inner = made_by(where.inputs[0], IsNaN), operand(where, 2)
    if test is None or number(where.inputs[1]) != 0 or test.inputs[0] is not inner or not single_use(graph, weights):
        return None, ()
    return made_by(inner, Softmax), (test, where)


def _rewrite(graph: Graph, patch: Patch, node: Node, found: Scores, guarded: bool) -> str | None:
    """Fills the patch; why it cannot be, otherwise."""
    kq, q = _unscaled(graph, patch, operand(found.product, 0))
    kk, turned = _unscaled(graph, patch, operand(found.product, 1))
    rank = q.type.rank
    k = transposed(patch, turned, (*range(rank - 2), rank - 1, rank - 2)) if turned.type.rank == rank else turned
    v = operand(node, 1)
    if not rank == k.type.rank == v.type.rank:
        return f"Q, K and V of ranks {rank}, {k.type.rank} and {v.type.rank}"
    batch, heads = _lead(found, q, v)
    k, v = (_unrepeated(x) for x in (k, v))
    kv_heads = k.type.shape[-3] if rank > 3 else heads
    if math.prod(k.type.shape[:-2]) != batch * kv_heads or k.type.shape[:-2] != v.type.shape[:-2] or heads % kv_heads:
        return f"batch and heads of Q {list(q.type.shape)}, K {list(k.type.shape)} and V {list(v.type.shape)} differ"
    q = reshaped(patch, q, (batch, heads, *q.type.shape[-2:]))
    k, v = (reshaped(patch, x, (batch, kv_heads, *x.type.shape[-2:])) for x in (k, v))
    mask, causal = _masks(patch, found, (batch, heads, q.type.shape[2], k.type.shape[2]))
    if isinstance(mask, str):
        return mask
    scale = found.scale * kq * kk
    root = 1 / math.sqrt(q.type.shape[3]) if q.type.shape[3] else 1.0
    op = Attention(
        heads, kv_heads, float(np.float32(root if math.isclose(scale, root, rel_tol=1e-6) else scale)),
        causal=causal is not None, offset=causal or 0, softcap=float(np.float32(found.softcap)),
    )
    inputs = [q, k, v] if mask is None else [q, k, v, mask]
    if guarded and may_be_blind(op, inputs):
        op = Attention(op.q_heads, op.kv_heads, op.scale, op.causal, op.offset, op.softcap, zero_blind=True)
    try:
        y = patch.node(op, inputs)
    except OpTypeError as e:
        return str(e)
    patch.replace(node.outputs[0], reshaped(patch, y, node.outputs[0].type.shape))
    return None


def _unscaled(graph: Graph, patch: Patch, value: Value) -> tuple[float, Value]:
    """k and x of a value k x, the factor taken out from below Transposes and Reshapes that serve nothing else."""
    chain: list[Node] = []
    at = value
    while (moved := made_by(at, Transpose, Reshape)) is not None and single_use(graph, at):
        chain.append(moved)
        at = operand(moved, 0)
    factor = made_by(at, Mul, Div)
    k, source = scaled(at)
    if factor is None or source is at or not single_use(graph, at):
        return 1.0, value
    for moved in reversed(chain):
        perm = moved.op.perm if isinstance(moved.op, Transpose) else None
        source = reshaped(patch, source, moved.outputs[0].type.shape) if perm is None else transposed(patch, source, perm)
    return k, source


def _lead(found: Scores, q: Value, v: Value) -> tuple[int, int]:
    """Batch and heads of the query."""
    lead = q.type.shape[:-2]
    if len(lead) == 1:
        known = found.lead[-1] if len(found.lead) > 1 else heads_in_batch(q) or heads_in_batch(v) or 1
        return (lead[0] // known, known) if lead[0] % known == 0 else (lead[0], 1)
    return math.prod(lead[:-1]), lead[-1] if lead else 1


def _unrepeated(x: Value) -> Value:
    """Case 4: [batch, heads, 1, length, depth] repeated along axis 2 as [batch, heads, length, depth]; others as they are."""
    outer = made_by(x, Reshape)
    spread = made_by(outer.inputs[0], Expand) if outer is not None else None
    inner = made_by(spread.inputs[0], Reshape) if spread is not None else None
    if spread is None or inner is None or x.type.rank != 4:
        return x
    thin, wide, source = operand(spread, 0).type.shape, spread.outputs[0].type.shape, operand(inner, 0)
    fits = len(thin) == len(wide) == 5 and thin == (*wide[:2], 1, *wide[3:]) and x.type.shape == (wide[0], wide[1] * wide[2], *wide[3:])
    return source if fits and source.type.shape == (*thin[:2], *thin[3:]) else x


def _masks(patch: Patch, found: Scores, scores: tuple[int, ...]) -> tuple[Value | None | str, int | None]:
    """The masks as one that broadcasts to the scores [batch, heads, queries, keys], and the causal offset; a string says why not."""
    kept: list[Value] = []
    causal: int | None = None
    for mask in found.masks:
        data = mask.data()
        known = causal_offset(data, *scores[2:]) if data is not None and data.ndim >= 2 else None
        if known is not None and causal is None:
            causal = known
            continue
        if data is not None and not data.any():
            continue
        shaped = _four(patch, mask, scores)
        if shaped is None:
            return f"the mask of shape {list(mask.value.type.shape)} does not lie over batch and heads", None
        kept.append(shaped)
    total = kept[0] if kept else None
    for extra in kept[1:]:
        assert total is not None
        both = total.data is not None and extra.data is not None
        total = patch.constant(total.data + extra.data) if both else patch.node(Add(), [total, extra])  # type: ignore[operator]
    return total, causal


def _four(patch: Patch, mask: Mask, scores: tuple[int, ...]) -> Value | None:
    """The mask of any rank over [batch, heads, queries, keys]."""
    lead = mask.shape[:-2]
    dims = (1,) * (len(mask.shape) - mask.value.type.rank) + mask.value.type.shape
    if len(dims) != len(mask.shape) or len(lead) < 1 and scores[:2] != (1, 1):
        return None
    value = mask.added(patch)
    if all(d == 1 for d in dims[:-2]):
        return reshaped(patch, value, (1, 1, *dims[-2:])) if value.type.rank > 4 else value
    if len(lead) == 1:
        return reshaped(patch, value, (*scores[:2], *dims[-2:]))
    if lead[-1] != scores[1] or (dims[:-3] != lead[:-1] and any(d != 1 for d in dims[:-3])):
        return None
    return reshaped(patch, value, (math.prod(dims[:-3]), *dims[-3:]))

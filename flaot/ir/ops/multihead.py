"""onnxruntime's attention operators (com.microsoft): MultiHeadAttention, and Attention with the projection of its input."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import reads
from flaot.ir.ops.arithmetic import Add
from flaot.ir.ops.attention import Attention, additive, merge_heads, split_heads, with_past
from flaot.ir.ops.cast import Cast
from flaot.ir.ops.compare import And, Less, LessOrEqual
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.gather import along
from flaot.ir.ops.matmul import MatMul
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Split
from flaot.ir.ops.transpose import Transpose
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType

DOMAIN = "com.microsoft"


def _cut(r: NodeReader, x: Value, axis: int, sizes: Sequence[int]) -> tuple[Value, ...]:
    return r.emit_many(Split(axis, tuple(sizes)), [x])


def _unpacked(r: NodeReader, x: Value, count: int) -> list[Value]:
    """[batch, length, heads, count, depth] as ``count`` values [batch, heads, length, depth]."""
    batch, length, heads, _, depth = x.type.shape
    parts = [r.emit(Reshape((batch, length, heads, depth)), [along(r, x, 3, np.array([i]))]) for i in range(count)]
    return [r.emit(Transpose((0, 2, 1, 3)), [p]) for p in parts]


def _heads(r: NodeReader, heads: int) -> list[Value]:
    """Q, K and V of MultiHeadAttention as [batch, heads, length, depth], its bias added."""
    q, k, v, bias = r.input(0), r.optional(1), r.optional(2), r.optional(3)
    shapes = [None if x is None else x.type.shape for x in (q, k, v)]
    ranks = [None if s is None else len(s) for s in shapes]
    if bias is not None and ranks != [3, 3, 3]:
        r.unsupported("a bias beside packed or already split keys")
    if ranks == [5, None, None] and q.type.shape[2:4] == (heads, 3):
        return _unpacked(r, q, 3)
    if ranks == [3, 5, None] and k is not None and k.type.shape[2:4] == (heads, 2):
        return [split_heads(r, q, heads, "query"), *_unpacked(r, k, 2)]
    if k is None or v is None or ranks not in ([3, 3, 3], [3, 4, 4]):
        r.fail(f"query, key and value of shapes {', '.join('none' if s is None else str(list(s)) for s in shapes)}")
    if bias is not None:
        widths = [x.type.shape[2] for x in (q, k, v)]
        if bias.type.shape != (sum(widths),):
            r.fail(f"bias of shape {list(bias.type.shape)}; it must be [{sum(widths)}]")
        q, k, v = (r.emit(Add(), [x, b]) for x, b in zip((q, k, v), _cut(r, bias, 0, widths), strict=True))
    if ranks == [3, 4, 4]:
        return [split_heads(r, q, heads, "query"), k, v]
    return [split_heads(r, x, heads, what) for x, what in ((q, "query"), (k, "key"), (v, "value"))]


def _seen(r: NodeReader, mask: Value, batch: int, queries: int, keys: int) -> Value:
    """A mask as a bool that broadcasts to [batch, heads, queries, keys]: numbers that are not 0 for every key, or where keys end (and,
    in a second row, begin)."""
    shape = mask.type.shape
    if shape in ((batch, keys), (batch, queries, keys)):
        seen = mask if mask.type.dtype is DType.bool else r.emit(Cast(DType.bool), [mask])
        return r.emit(Reshape((batch, 1, *([1] if len(shape) == 2 else []), *shape[1:])), [seen])
    if mask.type.dtype not in (DType.int32, DType.int64) or shape not in ((batch,), (2 * batch,)):
        r.unsupported(f"a mask of {mask.type}; [{batch}], [{batch},{keys}] and [{batch},{queries},{keys}] are read")
    places = r.literal(np.arange(keys).astype(mask.type.dtype.numpy))
    bounds = [r.emit(Reshape((batch, 1, 1, 1)), [b]) for b in _cut(r, mask, 0, [batch] * (shape[0] // batch))]
    seen = r.emit(Less(), [places, bounds[0]])
    return seen if len(bounds) == 1 else r.emit(And(), [seen, r.emit(LessOrEqual(), [bounds[1], places])])


def _attend(r: NodeReader, inputs: Sequence[Value], mask: Value | None, bias: Value | None, past: int) -> Value:
    """Attention of [batch, heads, length, depth] with heads merged again; masks hide by ``mask_filter_value``."""
    q, k, v = inputs
    kind, (batch, heads, queries, depth), keys = q.type.dtype, q.type.shape, k.type.shape[2]
    added = [] if bias is None else [bias]
    if mask is not None:
        added.append(additive(r, _seen(r, mask, batch, queries, keys), kind, r.float("mask_filter_value", -10000.0)))
    total = added[:1] if len(added) < 2 else [r.emit(Add(), added)]
    scale = r.float("scale", 0.0) or 1.0 / math.sqrt(max(depth, 1))
    op = Attention(heads, k.type.shape[1], float(np.float32(scale)), causal=r.int("unidirectional", 0) != 0, offset=past)
    return merge_heads(r, r.emit(op, [q, k, v, *total]))


@reads("MultiHeadAttention", domain=DOMAIN)
def read_multihead(r: NodeReader) -> None:
    """Inputs query, key, value, bias, key padding mask, attention bias, past key and value; outputs y, present key and value."""
    for index, what in ((8, "past_sequence_length (a shared buffer)"), (9, "cache_indirection")):
        if r.optional(index) is not None:
            r.unsupported(what)
    q, k, v = _heads(r, r.int("num_heads"))
    past_k, past_v = r.optional(6), r.optional(7)
    if (past_k is None) != (past_v is None):
        r.fail("past_key and past_value are used together or not at all")
    k, v = with_past(r, past_k, k), with_past(r, past_v, v)
    past = 0 if past_k is None else past_k.type.shape[2]
    r.result(_attend(r, [q, k, v], r.optional(4), r.optional(5), past), k, v)


@reads("Attention", domain=DOMAIN)
def read_attention(r: NodeReader) -> None:
    """Inputs x [batch, length, width], weights [width, q + k + v], bias, mask, past [2, batch, heads, length, depth], attention bias;
    outputs y and present."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if r.int(name, 0):
            r.unsupported(f"{name}=1")
    if r.optional(6) is not None:
        r.unsupported("past_sequence_length (a shared buffer)")
    x, weights, bias, past = r.input(0), r.input(1), r.optional(2), r.optional(4)
    if x.type.rank != 3 or weights.type.rank != 2:
        r.fail(f"input {x.type} and weights {weights.type}; ranks 3 and 2 are expected")
    heads, total = r.int("num_heads"), weights.type.shape[1]
    widths = r.ints("qkv_hidden_sizes", [total // 3] * 3)
    if len(widths) != 3 or sum(widths) != total or min(widths) < 0:
        r.fail(f"weights of {total} columns for Q, K and V of {list(widths)}")
    y = r.emit(MatMul(), [x, weights])
    y = y if bias is None else r.emit(Add(), [y, bias])
    q, k, v = (split_heads(r, part, heads, what) for part, what in zip(_cut(r, y, 2, widths), "QKV", strict=True))
    if past is not None:
        if past.type.rank != 5 or past.type.shape[0] != 2:
            r.fail(f"past {past.type}; it must be [2, batch, heads, length, depth]")
        before = [r.emit(Reshape(past.type.shape[1:]), [p]) for p in _cut(r, past, 0, (1, 1))]
        k, v = with_past(r, before[0], k), with_past(r, before[1], v)
    present = None
    if r.n_outputs > 1:
        present = r.emit(Concat(0), [r.emit(Reshape((1, *p.type.shape)), [p]) for p in (k, v)])
    offset = 0 if past is None else past.type.shape[3]
    r.result(_attend(r, [q, k, v], r.optional(3), r.optional(5), offset), present)

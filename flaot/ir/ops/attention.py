"""Attention: softmax(scale Q K^T + mask) V for every head, and ONNX's operator of that name.

ONNX states it as a function of simpler operators too. What the reader here leaves out (a count of valid keys given at run time, windows,
the scores as a fourth output) is read as that function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.ops.arithmetic import scalar
from flaot.ir.ops.compare import Where
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.pad import Pad
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType, broadcast_shapes


@dataclass(frozen=True)
class Attention(Op):
    """Y = softmax(softcap tanh(scale Q K^T / softcap) + mask) V; without ``softcap`` (0) just softmax(scale Q K^T + mask) V.

    Q [batch, q_heads, q_length, depth], K [batch, kv_heads, kv_length, depth], V [batch, kv_heads, kv_length, v_depth], a float mask that
    broadcasts to [batch, q_heads, q_length, kv_length] or None; Y [batch, q_heads, q_length, v_depth], all of one float type.
    Query head h reads key and value head h // (q_heads / kv_heads). With ``causal`` query i sees only the keys j <= i + offset. A query
    from which mask (-inf throughout) or causality hide every key gives NaN, zeros with ``zero_blind``. Defined by its expansion.
    """

    q_heads: int
    kv_heads: int
    scale: float
    causal: bool = False
    offset: int = 0
    softcap: float = 0.0
    zero_blind: bool = False

    @property
    def heads(self) -> int:
        """The number of heads, those of the queries where keys have fewer."""
        return self.q_heads

    @property
    def group(self) -> int:
        """Query heads per key and value head."""
        return self.q_heads // self.kv_heads

    def lengths(self, inputs: Sequence[TensorType | None]) -> tuple[int, int]:
        """Queries and keys per head."""
        q, k = inputs[0], inputs[1]
        assert q is not None and k is not None
        return q.shape[2], k.shape[2]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        require(3 <= len(inputs) <= 4, f"{len(inputs)} inputs; Attention has 3 or 4")
        q, k, v, mask = (*inputs, None)[:4]
        assert q is not None and k is not None and v is not None
        for what, t in (("Q", q), ("K", k), ("V", v)):
            require(t.rank == 4, f"{what} {t}; it must be [batch, heads, length, depth]")
        require(q.dtype.is_float, f"Attention of {q.dtype.name}; it takes floats")
        require(all(t is None or t.dtype is q.dtype for t in inputs), f"Attention of mixed types; all inputs must be {q.dtype.name}")
        require(self.q_heads >= 1 and self.kv_heads >= 1, f"{self.q_heads} query and {self.kv_heads} key heads; each must be at least 1")
        require(self.q_heads % self.kv_heads == 0, f"{self.q_heads} query heads over {self.kv_heads} key heads; they must divide evenly")
        batch, depth, length = q.shape[0], q.shape[3], k.shape[2]
        require(q.shape[1] == self.q_heads, f"Q {q} with {self.q_heads} heads")
        require(k.shape == (batch, self.kv_heads, length, depth), f"K {k} beside Q {q} with {self.kv_heads} key heads")
        require(v.shape[:3] == (batch, self.kv_heads, length), f"V {v} beside K {k}")
        if mask is not None:
            scores = (batch, self.q_heads, q.shape[2], length)
            require(_spreads(mask.shape, scores), f"mask {mask} does not broadcast to {list(scores)}")
        require(math.isfinite(self.scale), f"scale {self.scale}; it must be finite")
        require(self.softcap >= 0 and math.isfinite(self.softcap), f"softcap {self.softcap}; it must be 0 (none) or above")
        return (q.with_shape((*q.shape[:3], v.shape[3])),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        q, k = inputs[0], inputs[1]
        assert q is not None and k is not None
        return Tolerance(length=max(1, q.shape[3], k.shape[2]))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        q, k, v = inputs[:3]
        assert q is not None and k is not None and v is not None
        scores = math.prod(q.shape[:3]) * k.shape[2]
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(scores * (2 * q.shape[3] + 2 * v.shape[3] + 20), moved)


def _spreads(shape: tuple[int, ...], full: tuple[int, ...]) -> bool:
    try:
        return broadcast_shapes(shape, full) == full
    except ValueError:
        return False


LARGE = 2**26
"""Elements of a mask from which on it is neither looked through nor written out."""


def causal_mask(queries: int, keys: int, offset: int) -> np.ndarray:
    """[queries, keys] float32: 0 where key j <= query i + offset, else -inf."""
    seen = np.arange(keys) <= np.arange(queries)[:, None] + offset
    return np.where(seen, np.float32(0), np.float32(-np.inf))


def split_heads(r: NodeReader, x: Value, heads: int, what: str) -> Value:
    """[batch, length, heads * depth] as [batch, heads, length, depth]."""
    batch, length, width = x.type.shape
    if heads < 1 or width % heads:
        r.fail(f"{what} of width {width} for {heads} heads; the heads must divide it")
    return r.emit(Transpose((0, 2, 1, 3)), [r.emit(Reshape((batch, length, heads, width // heads)), [x])])


def merge_heads(r: NodeReader, y: Value) -> Value:
    """[batch, heads, length, depth] as [batch, length, heads * depth]."""
    batch, heads, length, depth = y.type.shape
    return r.emit(Reshape((batch, length, heads * depth)), [r.emit(Transpose((0, 2, 1, 3)), [y])])


def with_past(r: NodeReader, past: Value | None, x: Value) -> Value:
    """Keys or values of earlier steps before those of this one."""
    return x if past is None else r.emit(Concat(2), [past, x])


def additive(r: NodeReader, mask: Value, dtype: DType, hidden: float = -math.inf) -> Value:
    """A bool mask (true: may be seen) as a float one to add; a float mask as it is."""
    if mask.type.dtype is not DType.bool:
        return mask
    return r.emit(Where(), [mask, scalar(r, 0.0, dtype), scalar(r, hidden, dtype)])


def may_be_blind(op: Attention, inputs: Sequence[Value | None]) -> bool:
    """Whether some query may have every score at -inf through mask or causality."""
    queries, keys = op.lengths([v.type if v is not None else None for v in inputs])
    mask = inputs[3] if len(inputs) > 3 else None
    if mask is None:
        return op.causal and op.offset < 0
    lead = math.prod(mask.type.shape[:-2])
    if mask.data is None or mask.type.dtype not in (DType.float32, DType.float64, DType.float16) or lead * queries * keys > LARGE:
        return True
    seen = np.broadcast_to(mask.data > -np.inf, (*mask.type.shape[:-2], queries, keys) if mask.type.rank >= 2 else (queries, keys))
    if op.causal:
        seen = seen & (causal_mask(queries, keys, op.offset) == 0)
    return not bool(seen.any(axis=-1).all())


@reads("Attention")
def read(r: NodeReader) -> None:
    """Q, K, V of rank 4, or of rank 3 with the heads as attributes; mask, past keys and values. Outputs Y, present keys and values."""
    if r.optional(6) is not None or r.n_outputs > 3 or r.int("left_window_size", -1) >= 0 or r.int("right_window_size", -1) >= 0:
        r.decline()
        return
    q, k, v = (r.input(i) for i in range(3))
    ranks = {x.type.rank for x in (q, k, v)}
    if ranks not in ({3}, {4}):
        r.fail(f"Q, K and V of ranks {q.type.rank}, {k.type.rank} and {v.type.rank}; all must be 3 or all 4")
    flat = ranks == {3}
    if flat:
        q = split_heads(r, q, r.int("q_num_heads"), "Q")
        k, v = (split_heads(r, x, r.int("kv_num_heads"), what) for x, what in ((k, "K"), (v, "V")))
    past_k, past_v = r.optional(4), r.optional(5)
    if (past_k is None) != (past_v is None):
        r.fail("past_key and past_value are used together or not at all")
    k, v = with_past(r, past_k, k), with_past(r, past_v, v)
    depth = q.type.shape[3]
    scale = r.float("scale", 0.0) if r.has("scale") else 1.0 / math.sqrt(max(depth, 1))
    op = Attention(
        q.type.shape[1], k.type.shape[1], float(np.float32(scale)), causal=r.int("is_causal", 0) != 0,
        offset=past_k.type.shape[2] if past_k is not None else 0, softcap=r.float("softcap", 0.0),
    )
    y = attend(r, op, [q, k, v, _mask(r, q.type, k.type.shape[2])])
    r.result(merge_heads(r, y) if flat else y, *((k, v) if r.n_outputs > 1 else ()))


def attend(r: NodeReader, op: Attention, inputs: Sequence[Value | None]) -> Value:
    """Emits the op, with zeros for queries that see no key, where there can be any."""
    given = inputs if inputs[-1] is not None else inputs[:-1]
    guarded = Attention(op.q_heads, op.kv_heads, op.scale, op.causal, op.offset, op.softcap, zero_blind=True)
    guarded.infer([v.type if v is not None else None for v in given])
    return r.emit(guarded if may_be_blind(op, given) else op, given)


def _mask(r: NodeReader, q: TensorType, keys: int) -> Value | None:
    """The mask as floats, keys it does not reach hidden."""
    mask = r.optional(3)
    if mask is None:
        return None
    if mask.type.dtype not in (DType.bool, q.dtype):
        r.fail(f"mask of {mask.type.dtype.name} beside Q of {q.dtype.name}; it must be bool or of the same type")
    mask = additive(r, mask, q.dtype)
    shape = mask.type.shape
    if shape and shape[-1] < keys:
        before, after = (0,) * len(shape), (*[0] * (len(shape) - 1), keys - shape[-1])
        mask = r.emit(Pad(before, after), [mask, scalar(r, -math.inf, q.dtype)])
    return mask

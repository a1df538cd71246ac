"""Random tensors. A plan holds no state, so they are drawn once, when the model is read: every run sees the same numbers.

Without a ``seed`` attribute the seed comes from the node's name, so two nodes draw different numbers and compiling twice gives the
same plan. The generator is counter-based integer arithmetic (SplitMix64); the numbers are not those of any other runtime.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import reads
from flaot.ir.ops.arithmetic import Add, Mul, scalar
from flaot.ir.ops.cast import cast
from flaot.ir.ops.compare import Less
from flaot.ir.ops.functions import Cos, Log, Neg, Sqrt
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType


def uniform(seed: int, count: int) -> np.ndarray:
    """``count`` float32 numbers in (0, 1), multiples of 2^-24."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = ((z ^ (z >> np.uint64(31))) >> np.uint64(41)).astype(np.float32)
    return (bits + np.float32(0.5)) * np.float32(2.0**-23)


def _seed(r: NodeReader) -> int:
    text = struct.pack("<f", r.float("seed")) if r.has("seed") else "\0".join(r.origin).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def _drawn(r: NodeReader, shape: tuple[int, ...], stream: int = 0) -> Value:
    return r.literal(uniform(_seed(r) ^ (stream << 32), int(np.prod(shape, dtype=np.int64))).reshape(shape))


def _scaled(r: NodeReader, x: Value, scale: float, offset: float, dtype: DType) -> Value:
    kind = DType.float32
    y = r.emit(Add(), [r.emit(Mul(), [x, scalar(r, scale, kind)]), scalar(r, offset, kind)])
    return cast(r, y, dtype)


def _type(r: NodeReader) -> TensorType:
    """Of the output: from the attributes, or like the input."""
    if r.op_type.endswith("Like"):
        like = r.type(0)
        return TensorType(r.dtype("dtype", like.dtype), like.shape)
    shape = r.ints("shape")
    if any(d < 0 for d in shape):
        r.fail(f"shape {list(shape)} has a negative dimension")
    return TensorType(r.dtype("dtype", DType.float32), tuple(shape))


@reads("RandomUniform", "RandomUniformLike")
def read_uniform(r: NodeReader) -> None:
    low, high, type = r.float("low", 0.0), r.float("high", 1.0), _type(r)
    r.result(_scaled(r, _drawn(r, type.shape), high - low, low, type.dtype))


@reads("RandomNormal", "RandomNormalLike")
def read_normal(r: NodeReader) -> None:
    """Box and Muller: sqrt(-2 log u) cos(2 pi v)."""
    type = _type(r)
    radius = r.emit(Sqrt(), [r.emit(Mul(), [r.emit(Neg(), [r.emit(Log(), [_drawn(r, type.shape)])]), scalar(r, 2.0, DType.float32)])])
    angle = r.emit(Mul(), [_drawn(r, type.shape, 1), scalar(r, 2 * np.pi, DType.float32)])
    normal = r.emit(Mul(), [radius, r.emit(Cos(), [angle])])
    r.result(_scaled(r, normal, r.float("scale", 1.0), r.float("mean", 0.0), type.dtype))


@reads("Bernoulli")
def read_bernoulli(r: NodeReader) -> None:
    """1 with the probability the input gives."""
    x = r.input(0)
    hit = r.emit(Less(), [_drawn(r, x.type.shape), cast(r, x, DType.float32)])
    r.result(cast(r, hit, r.dtype("dtype", x.type.dtype)))

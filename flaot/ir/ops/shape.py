"""Tensors that are known once shapes are: Shape, Size, ConstantOfShape, Range, EyeLike."""

from __future__ import annotations

import math

import numpy as np

from flaot.ir.op import reads
from flaot.ir.ops.cast import cast
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType


@reads("Shape")
def read_shape(r: NodeReader) -> None:
    shape = r.type(0).shape
    start, end = r.int("start", 0), r.int("end", len(shape))
    r.result(r.literal(np.array(shape[start:end] if r.opset >= 15 else shape, np.int64)))


@reads("Size")
def read_size(r: NodeReader) -> None:
    r.result(r.literal(np.array(r.type(0).elements, np.int64)))


@reads("ConstantOfShape")
def read_constant_of_shape(r: NodeReader) -> None:
    shape = [int(d) for d in r.constant(0, "the shape").reshape(-1)]
    if any(d < 0 for d in shape):
        r.fail(f"shape {shape} has a negative dimension")
    r.reserve(math.prod(d for d in shape if d))
    given = r.array("value")
    value = np.zeros(1, np.float32) if given is None else given.reshape(-1)
    if value.size != 1:
        r.fail(f"value has {value.size} elements; it must have one")
    r.result(r.literal(np.broadcast_to(value, shape)))


@reads("Range")
def read_range(r: NodeReader) -> None:
    parts = [r.constant(i, what) for i, what in enumerate(("the start", "the limit", "the delta"))]
    if any(p.size != 1 for p in parts):
        r.fail("start, limit and delta must be one number each")
    if r.type(0).dtype is DType.bfloat16:
        r.unsupported("Range of bfloat16")
    start, limit, delta = (p.reshape(()) for p in parts)
    if delta == 0:
        r.fail("delta is 0")
    if start.dtype.kind == "f":
        exact = (float(limit) - float(start)) / float(delta)
        if not math.isfinite(exact):
            r.fail(f"start {start}, limit {limit} and delta {delta} give no count")
        count = math.ceil(exact)
    else:
        count = -(-(int(limit) - int(start)) // int(delta))
    r.reserve(count)
    steps = np.arange(max(count, 0)).astype(start.dtype)
    r.result(r.literal(start + steps * delta))


@reads("EyeLike")
def read_eye_like(r: NodeReader) -> None:
    x = r.type(0)
    if x.rank != 2:
        r.fail(f"input of shape {list(x.shape)}; EyeLike takes rank 2")
    r.reserve(x.elements)
    eye = r.literal(np.eye(x.shape[0], x.shape[1], r.int("k", 0), np.float32))
    r.result(cast(r, eye, r.dtype("dtype", x.dtype)))

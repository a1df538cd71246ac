"""onnxruntime's quantized operators (com.microsoft QLinear...): dequantize, compute in float32, quantize, as their text defines them."""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import Op, reads
from flaot.ir.ops.activations import LeakyRelu, Sigmoid
from flaot.ir.ops.arithmetic import Add, Mul
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.pool import AveragePool, window_of
from flaot.ir.ops.quantize import DequantizeLinear, QuantizeLinear
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.softmax import Softmax
from flaot.ir.reading import NodeReader

DOMAIN = "com.microsoft"


def _number(r: NodeReader, index: int, like: Value | None = None) -> Value:
    """A scalar scale or zero point; an absent zero point is 0 of the type of ``like``."""
    given = r.optional(index)
    if given is None and like is not None:
        return r.literal(np.zeros((), like.type.dtype.numpy))
    found = r.input(index)
    if found.type.elements != 1:
        r.fail(f"input {index} of shape {list(found.type.shape)}; one number is expected")
    return r.emit(Reshape(()), [found]) if found.type.rank else found


def _real(r: NodeReader, first: int) -> Value:
    """The tensor, scale and zero point from input ``first`` on as float32."""
    x = r.input(first)
    return r.emit(DequantizeLinear(), [x, _number(r, first + 1), _number(r, first + 2, x)])


def _back(r: NodeReader, y: Value, scale: int, like: Value) -> None:
    """Declares y quantized with the scale and zero point from input ``scale`` on."""
    r.result(r.emit(QuantizeLinear(), [y, _number(r, scale), _number(r, scale + 1, like)]))


@reads("QLinearAdd", "QLinearMul", domain=DOMAIN)
def read_binary(r: NodeReader) -> None:
    op: Op = Add() if r.op_type == "QLinearAdd" else Mul()
    _back(r, r.emit(op, [_real(r, 0), _real(r, 3)]), 6, r.input(0))


@reads("QLinearSigmoid", "QLinearLeakyRelu", domain=DOMAIN)
def read_unary(r: NodeReader) -> None:
    op: Op = Sigmoid() if r.op_type == "QLinearSigmoid" else LeakyRelu(r.float("alpha", 0.01))
    _back(r, r.emit(op, [_real(r, 0)]), 3, r.input(0))


@reads("QLinearSoftmax", domain=DOMAIN)
def read_softmax(r: NodeReader) -> None:
    rank, axis = r.type(0).rank, r.int("axis", -1)
    if r.int("opset", 13) < 13 and axis not in (-1, rank - 1):
        r.unsupported(f"QLinearSoftmax over all axes from {axis} on; only the last axis is supported")
    if not -rank <= axis < rank:
        r.fail(f"axis {axis} is outside a rank {rank} tensor")
    _back(r, r.emit(Softmax(axis % rank), [_real(r, 0)]), 3, r.input(0))


@reads("QLinearAveragePool", "QLinearGlobalAveragePool", domain=DOMAIN)
def read_pool(r: NodeReader) -> None:
    if r.int("channels_last", 0):
        r.unsupported(f"{r.op_type} with channels_last")
    spatial = r.type(0).shape[2:]
    n = len(spatial)
    if r.op_type == "QLinearAveragePool":
        w = window_of(r)
        include = r.int("count_include_pad", 0) != 0
        op = AveragePool(w.kernel, w.strides, w.pads, w.dilations, r.int("ceil_mode", 0) != 0, include)
    else:
        op = AveragePool(spatial, (1,) * n, (0,) * 2 * n, (1,) * n, False)
    _back(r, r.emit(op, [_real(r, 0)]), 3, r.input(0))


@reads("QLinearConcat", domain=DOMAIN)
def read_concat(r: NodeReader) -> None:
    parts = [_real(r, i) for i in range(2, r.n_inputs(), 3)]
    if not parts:
        r.fail("QLinearConcat of nothing")
    rank, axis = parts[0].type.rank, r.int("axis")
    if not -rank <= axis < rank:
        r.fail(f"axis {axis} is outside a rank {rank} tensor")
    _back(r, r.emit(Concat(axis % rank), parts), 0, r.input(2))

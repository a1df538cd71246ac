"""Movements a rule adds to its patch, joined with those that are there."""

from __future__ import annotations

from flaot.ir.graph import Patch, Value
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.rules.match import COMPUTABLE, made_by, operand


def reshaped(patch: Patch, x: Value, shape: tuple[int, ...]) -> Value:
    """``x`` itself when it has the shape; a constant stays one."""
    if x.type.shape == shape:
        return x
    if x.data is not None and x.type.dtype in COMPUTABLE:
        return patch.constant(x.data.reshape(shape), x.name if x.names else "")
    return patch.node(Reshape(shape), [x])


def transposed(patch: Patch, x: Value, perm: tuple[int, ...]) -> Value:
    """One Transpose, with the one that makes ``x`` if one does; none when they cancel. A constant stays one."""
    inner = made_by(x, Transpose)
    if inner is not None:
        assert isinstance(inner.op, Transpose)
        x, perm = operand(inner, 0), tuple(inner.op.perm[p] for p in perm)
    if x.data is not None and x.type.dtype in COMPUTABLE:
        return patch.constant(x.data.transpose(perm), x.name if x.names else "")
    return x if perm == tuple(range(len(perm))) else patch.node(Transpose(perm), [x])

"""What expansions are written with: nodes and numbers of one type, collected in a patch, and the registry they enter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.arithmetic import Add, Div, Max, Min, Mul, Sub
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.rewrite import Miss
from flaot.rules.match import COMPUTABLE, made_by, operand

Operand = Value | float


class Parts:
    """Builds the expansion of ``node``. Numbers take the element type of the node's first output and rank 0."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.patch = Patch(graph, f"expand.{node.op.name}", node.origin, (node,))
        self.dtype = node.outputs[0].type.dtype

    def __call__(self, op: Op, *inputs: Operand | None) -> Value:
        return self.patch.node(op, [self.number(v) if isinstance(v, float | int) else v for v in inputs])

    def number(self, number: float) -> Value:
        return self.patch.constant(np.array(number, self.dtype.numpy))

    def add(self, a: Operand, b: Operand) -> Value:
        return self(Add(), a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        return self(Sub(), a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        return self(Mul(), a, b)

    def div(self, a: Operand, b: Operand) -> Value:
        return self(Div(), a, b)

    def max(self, a: Operand, b: Operand) -> Value:
        return self(Max(), a, b)

    def min(self, a: Operand, b: Operand) -> Value:
        return self(Min(), a, b)

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """``x`` itself when it has the shape."""
        return x if x.type.shape == shape else self(Reshape(shape), x)

    def transpose(self, x: Value, perm: tuple[int, ...]) -> Value:
        """Joined with the Transpose that makes ``x``, if one does."""
        inner = made_by(x, Transpose)
        if inner is not None:
            assert isinstance(inner.op, Transpose)
            x, perm = operand(inner, 0), tuple(inner.op.perm[p] for p in perm)
        if x.data is not None and x.type.dtype in COMPUTABLE:
            return self.patch.constant(x.data.transpose(perm), x.name if x.names else "")
        return x if perm == tuple(range(len(perm))) else self(Transpose(perm), x)


Made = Value | tuple[Value, ...] | Miss
Expansion = Callable[[Parts, Node], Made]
E = TypeVar("E", bound=Expansion)

EXPANSIONS: dict[type[Op], Expansion] = {}
"""Op class (not its subclasses) -> what writes its nodes in simpler ops: the values of its outputs, or why it cannot."""


def expands(*ops: type[Op]) -> Callable[[E], E]:
    """Registers the expansion of these ops. Raises ValueError when one of them has one already."""

    def register(write: E) -> E:
        for op in ops:
            if op in EXPANSIONS:
                raise ValueError(f"two expansions of {op.__name__}")
            EXPANSIONS[op] = write
        return write

    return register

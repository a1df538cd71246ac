"""What expansions are written with: nodes and numbers of one type, collected in a patch, and the registry they enter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.arithmetic import Add, Div, Max, Min, Mul, Sub
from flaot.rewrite import Miss
from flaot.rules.build import reshaped, transposed
from flaot.rules.match import operand

Operand = Value | float


class Parts:
    """Builds the expansion of ``node``. Numbers take the element type of the node's first output and rank 0."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.patch = Patch(graph, f"expand.{node.op.name}", node.origin, (node,))
        self.node, self.dtype = node, node.outputs[0].type.dtype

    @property
    def op(self) -> Any:
        """The op being expanded; its expansion knows which it is."""
        return self.node.op

    @property
    def x(self) -> Value:
        return self.input(0)

    def input(self, slot: int) -> Value:
        return operand(self.node, slot)

    def optional(self, slot: int) -> Value | None:
        return self.node.inputs[slot] if slot < len(self.node.inputs) else None

    def constant(self, data: np.ndarray) -> Value:
        return self.patch.constant(data.astype(self.dtype.numpy))

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
        return reshaped(self.patch, x, shape)

    def transpose(self, x: Value, perm: tuple[int, ...]) -> Value:
        return transposed(self.patch, x, perm)


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

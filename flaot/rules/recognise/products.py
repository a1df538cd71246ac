"""Products seen as one coefficient and their run-time factors, whatever tree of Mul and Div spells them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flaot.ir.graph import Graph, Node, Value
from flaot.ir.op import Op
from flaot.ir.ops.arithmetic import Add, Div, Mul, Pow
from flaot.rules.match import made_by, number, operand, single_use, split_constant


@dataclass
class Product:
    """``coefficient`` times all ``factors``; ``nodes`` are those that only serve it."""

    coefficient: float
    factors: list[Value]
    nodes: list[Node]


MAX_FACTORS = 4


def product_of(graph: Graph, root: Node) -> Product:
    """The product that ends at a Mul or Div. Inner products are opened where nothing else uses them."""
    found = Product(1.0, [], [])
    todo: list[Value] = _open(root, found)
    while todo and len(found.nodes) < MAX_FACTORS:
        value = todo.pop(0)
        inner = made_by(value, Mul, Div)
        if inner is not None and single_use(graph, value) and value.type == root.outputs[0].type:
            todo = _open(inner, found) + todo
        else:
            found.factors.append(value)
    found.factors += todo
    return found


def _open(node: Node, found: Product) -> list[Value]:
    """Counts a node in; returns its run-time operands."""
    a, b = operand(node, 0), operand(node, 1)
    k = number(b)
    if isinstance(node.op, Div):
        if k is None or k == 0:
            found.factors.append(node.outputs[0])
            return []
        found.coefficient /= k
        found.nodes.append(node)
        return [a]
    found.nodes.append(node)
    if k is not None:
        found.coefficient *= k
        return [a]
    k = number(a)
    if k is not None:
        found.coefficient *= k
        return [b]
    return [a, b]


def scaled(value: Value) -> tuple[float, Value]:
    """k and x of k * x, for any chain of Mul and Div with numbers."""
    k = 1.0
    while (node := made_by(value, Mul, Div)) is not None:
        pair = split_constant(node)
        factor = number(pair[1]) if pair is not None else None
        if pair is None or factor is None or (isinstance(node.op, Div) and (pair[0] is not node.inputs[0] or factor == 0)):
            break
        k, value = (k / factor if isinstance(node.op, Div) else k * factor), pair[0]
    return k, value


def shifted(value: Value) -> tuple[float, Value] | None:
    """k and x of x + k."""
    node = made_by(value, Add)
    pair = split_constant(node) if node is not None else None
    k = number(pair[1]) if pair is not None else None
    return None if pair is None or k is None else (k, pair[0])


def pick(factors: list[Value], *ops: type[Op]) -> tuple[Node, Value] | None:
    """Of two factors, the one made by an op of these and the other."""
    if len(factors) != 2:
        return None
    for i in (0, 1):
        node = made_by(factors[i], *ops)
        if node is not None:
            return node, factors[1 - i]
    return None


def is_cube(value: Value, x: Value) -> bool:
    """Whether the value is x^3."""
    node = made_by(value, Pow)
    if node is not None:
        return node.inputs[0] is x and number(node.inputs[1]) == 3.0
    outer = made_by(value, Mul)
    if outer is None:
        return False
    rest = outer.inputs[0] if outer.inputs[1] is x else outer.inputs[1] if outer.inputs[0] is x else None
    square = made_by(rest, Mul)
    return square is not None and square.inputs[0] is x and square.inputs[1] is x


def close(a: float, b: float) -> bool:
    """Equal as far as constants in models are exact."""
    return math.isclose(a, b, rel_tol=1e-3)

"""Operations that return what they are given.

    x + 0 = x - 0 = x * 1 = x / 1 = x       where the constant does not widen x
    Clip(x, -inf, inf) = x,  Cast to the same type = x,  Expand to the same shape = x
    Concat of one = x,  Slice and Split of everything = x,  Pad by nothing = x

The sign of a zero may change (-0 + 0 is +0); nothing else does.
"""

from __future__ import annotations

import math

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.arithmetic import Add, Div, Mul, Sub
from flaot.ir.ops.cast import Cast
from flaot.ir.ops.clip import Clip
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.expand import Expand
from flaot.ir.ops.pad import Pad
from flaot.ir.ops.slice import Slice, Split
from flaot.rewrite import Miss, Rule
from flaot.rules.match import operand

NEUTRAL: dict[type[Op], tuple[int, tuple[int, ...]]] = {Add: (0, (0, 1)), Mul: (1, (0, 1)), Sub: (0, (1,)), Div: (1, (1,))}
"""Neutral element, and the inputs it may stand at."""


class Arithmetic(Rule):
    """x combined with a constant full of the neutral element."""

    anchors = (Add, Mul, Sub, Div)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        neutral, slots = NEUTRAL[type(node.op)]
        for slot in slots:
            constant, x = operand(node, slot), operand(node, 1 - slot)
            if not _full_of(constant, neutral):
                continue
            if x.type != node.outputs[0].type:
                return Miss("the constant widens the result")
            return _drop(self, graph, node, x)
        return None


class NothingToDo(Rule):
    """Ops whose attributes say that the result is the input."""

    anchors = (Clip, Cast, Expand, Concat, Slice, Split, Pad)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        x = operand(node, 0)
        if len(node.outputs) != 1 or node.outputs[0].type != x.type or not _keeps_all(node):
            return None
        return _drop(self, graph, node, x)


def _keeps_all(node: Node) -> bool:
    op = node.op
    if isinstance(op, Clip):
        return op.low == -math.inf and op.high == math.inf
    if isinstance(op, Slice):
        return all(s == 1 for s, n in zip(op.steps, op.sizes, strict=True) if n > 1)
    if isinstance(op, Pad):
        return not any((*op.before, *op.after))
    return len(node.inputs) == 1 or isinstance(op, Cast | Expand)


def _drop(rule: Rule, graph: Graph, node: Node, x: Value) -> Patch:
    patch = rule.patch(graph, node)
    patch.replace(node.outputs[0], x)
    return patch


def _full_of(value: Value, number: int) -> bool:
    return value.data is not None and value.data.size > 0 and bool((value.data == number).all())

"""f(g(x, y), z) = FusedMap: an elementwise op takes in the one that makes an operand for it alone.

Both results have the same shape, so nothing is computed more often than before. Ops already merged are merged further, up to the
limits below.
"""

from __future__ import annotations

from collections.abc import Iterable

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.fused_map import FusedMap, Step
from flaot.rewrite import Miss, Rule

MAX_OPERANDS = 12
MAX_STEPS = 24


class IntoConsumer(Rule):
    """Anchored at the consumer; the producer of any operand may be taken in."""

    anchors = (_Elementwise, FusedMap)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        miss: Miss | None = None
        for value in sorted(dict.fromkeys(node.inputs), key=lambda v: _elsewhere(v, node)):
            producer = value.producer if value is not None else None
            if value is None or producer is None or not isinstance(producer.op, _Elementwise | FusedMap):
                continue
            if value.type.shape != node.outputs[0].type.shape:
                miss = Miss("the operand is broadcast")
                continue
            if graph.is_output(value) or any(n is not node for n, _ in graph.consumers(value)):
                miss = Miss("the operand is also used elsewhere")
                continue
            merged = merge(producer, node)
            if merged is None:
                miss = Miss(f"more than {MAX_OPERANDS} operands or {MAX_STEPS} steps")
                continue
            op, inputs = merged
            patch = self.patch(graph, producer, node)
            patch.replace(node.outputs[0], patch.node(op, inputs))
            return patch
        return miss


def _elsewhere(value: Value | None, node: Node) -> bool:
    """Whether the value is made outside the node's group."""
    return value is None or value.producer is None or value.producer.group != node.group


def steps_of(node: Node) -> tuple[Step, ...]:
    """The node as steps over its own inputs."""
    if isinstance(node.op, FusedMap):
        return node.op.steps
    assert isinstance(node.op, _Elementwise)
    return ((node.op, tuple(range(len(node.inputs)))),)


def merge(producer: Node, consumer: Node) -> tuple[FusedMap, list[Value | None]] | None:
    """Both nodes as one op and its operands, each value once; None beyond the limits."""
    first, second = steps_of(producer), steps_of(consumer)
    between = producer.outputs[0]
    operands = list(dict.fromkeys([*producer.inputs, *(v for v in consumer.inputs if v is not between)]))
    if len(operands) > MAX_OPERANDS or len(first) + len(second) > MAX_STEPS:
        return None
    count = len(operands)
    made = count + len(first) - 1
    places = {id(v): i for i, v in enumerate(operands)} | {id(between): made}
    ahead = [places[id(v)] for v in producer.inputs] + list(range(count, count + len(first)))
    after = [places[id(v)] for v in consumer.inputs] + list(range(made + 1, made + 1 + len(second)))
    return FusedMap(tuple(renumber(first, ahead)) + tuple(renumber(second, after))), operands


def renumber(steps: Iterable[Step], places: list[int]) -> Iterable[Step]:
    """The steps with argument i replaced by ``places[i]``."""
    return ((op, tuple(places[a] for a in arguments)) for op, arguments in steps)

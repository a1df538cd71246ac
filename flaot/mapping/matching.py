"""One pattern at one node: the nodes it takes, the sentence why it nearly matches, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from flaot.ir.graph import Graph, Node, Value
from flaot.ir.ops.matmul import _Product
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.mapping.names import names_of
from flaot.mapping.patterns import Part, Pattern
from flaot.mapping.predicates import violated

MAX_TRIES = 4096
"""Assignments of nodes to the parts of one pattern that are looked at from one node."""


@dataclass(frozen=True)
class Match:
    """Nodes of the graph by part, in the pattern's order, and the Reshapes between them."""

    nodes: tuple[Node, ...]
    between: tuple[Node, ...] = ()


@dataclass
class _State:
    nodes: dict[str, Node] = field(default_factory=dict)
    outer: dict[str, Value | None] = field(default_factory=dict)
    orders: dict[str, tuple[Value | None, ...]] = field(default_factory=dict)
    between: list[Node] = field(default_factory=list)


def match(graph: Graph, pattern: Pattern, last: Node) -> Match | str | None:
    """The match that ends at ``last``. When the operators are there but a condition does not hold, the sentence that says which."""
    sentence: str | None = None
    for tries, state in enumerate(_bindings(pattern, last)):
        found = Match(tuple(state.nodes[p.id] for p in pattern.parts), tuple(dict.fromkeys(state.between)))
        why = _obstacle(graph, pattern, found, state)
        if why is None:
            return found
        sentence = sentence or why
        if tries == MAX_TRIES:
            break
    return sentence


def _bindings(pattern: Pattern, last: Node) -> Iterator[_State]:
    """Every way to give each part a node, the operators being right."""
    parts = {p.id: p for p in pattern.parts}
    if not pattern.parts[-1].accepts(names_of(last.op)):
        return
    todo: list[tuple[int, _State]] = [(len(pattern.parts) - 1, _State({pattern.parts[-1].id: last}))]
    looked = 0
    while todo and looked < MAX_TRIES:
        looked += 1
        at, state = todo.pop()
        if at < 0:
            yield state
            continue
        part = pattern.parts[at]
        if part.id not in state.nodes:
            continue
        bound = (_bind(part, order, parts, state) for order in reversed(_orders(part, state.nodes[part.id])))
        todo += [(at - 1, b) for b in bound if b is not None]


def _orders(part: Part, node: Node) -> list[tuple[Value | None, ...]]:
    """The inputs in the orders to try; of two producers the later one first, which is the one that fusing rules take."""
    inputs = node.inputs
    if not part.commutative or len(inputs) != 2:
        return [inputs]
    swap = (inputs[1], inputs[0])
    ids = [v.producer.id if v is not None and v.producer is not None else -1 for v in inputs]
    return [swap, inputs] if ids[1] > ids[0] else [inputs, swap]


def _bind(part: Part, inputs: tuple[Value | None, ...], parts: dict[str, Part], state: _State) -> _State | None:
    new = _State(dict(state.nodes), dict(state.outer), {**state.orders, part.id: inputs}, list(state.between))
    for slot, name in enumerate(part.inputs):
        value = inputs[slot] if slot < len(inputs) else None
        if name in parts:
            producer = _producer(value, parts[name], new)
            if producer is None or new.nodes.setdefault(name, producer) is not producer:
                return None
        elif new.outer.setdefault(name, value) is not value:
            return None
    return new if len({n.id for n in new.nodes.values()}) == len(new.nodes) else None


def _producer(value: Value | None, part: Part, state: _State) -> Node | None:
    """The node that makes the value if it is what the part asks for. Reshapes after a product are looked through, as rules move past
    them; conversions too, so that the place can be named as the obstacle."""
    between: list[Node] = []
    node = value.producer if value is not None else None
    while node is not None and isinstance(node.op, Reshape | Transfer | Recast) and not part.accepts(names_of(node.op)):
        between.append(node)
        source = node.inputs[0]
        node = source.producer if source is not None else None
    if node is None or not part.accepts(names_of(node.op)):
        return None
    if any(isinstance(b.op, Reshape) for b in between) and not _follows_product(node):
        return None
    state.between += between
    return node


def _follows_product(node: Node) -> bool:
    """Whether the node is a matrix product or the element-wise op after one."""
    sources = [v.producer for v in node.inputs if v is not None and v.producer is not None]
    return isinstance(node.op, _Product) or any(isinstance(s.op, _Product) for s in sources)


def _obstacle(graph: Graph, pattern: Pattern, found: Match, state: _State) -> str | None:
    last = found.nodes[-1]
    for node in (*found.nodes, *found.between):
        if node.place != last.place:
            return f"{node.where} runs on {node.place} in {node.place.dtype.name}, {last.where} on {last.place} in {last.place.dtype.name}"
    if pattern.units and last.place.unit not in pattern.units:
        return f"it is for the units {', '.join(sorted(pattern.units))}; {last.where} runs on {last.place}"
    inside = {n.id for n in (*found.nodes, *found.between)}
    for node in (*found.nodes[:-1], *found.between):
        for value in node.outputs:
            if graph.is_output(value):
                return f"the result of {node.where} is an output of the model"
            reader = next((n for n, _ in graph.consumers(value) if n.id not in inside), None)
            if reader is not None:
                return f"the result of {node.where} is also used by {reader.where}"
    return next(_unmet(pattern, found, state), None)


def _unmet(pattern: Pattern, found: Match, state: _State) -> Iterator[str]:
    for part, node in zip(pattern.parts, found.nodes, strict=True):
        seen = replace(node, inputs=state.orders[part.id])
        for predicate in part.requires:
            why = violated(seen, predicate)
            if why is not None:
                yield f"{node.where}: {why}"

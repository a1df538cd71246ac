"""Order of the nodes of one ONNX graph: names defined once, producers before consumers, cycles named."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import onnx

from flaot.errors import ModelError, printable


def label(node: onnx.NodeProto) -> str:
    """What a node is called: its name, or its first output where it has none."""
    return str(node.name or next((o for o in node.output if o), node.op_type))


def where(node: onnx.NodeProto) -> str:
    """How messages name an ONNX node."""
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}:"
    return f"node '{printable(label(node))}' ({printable(domain + node.op_type)})"


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Graph attributes of a node, in order."""
    found = []
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            found.append(a.g)
        elif a.type == onnx.AttributeProto.GRAPHS:
            found.extend(a.graphs)
    return found


def reads(node: onnx.NodeProto) -> list[str]:
    """Every name a node needs, what its subgraphs capture included."""
    names = dict.fromkeys(i for i in node.input if i)
    todo = subgraphs(node)
    while todo:
        graph = todo.pop()
        own = {v.name for v in (*graph.input, *graph.initializer)} | {t.values.name for t in graph.sparse_initializer}
        own.update(o for n in graph.node for o in n.output)
        for n in graph.node:
            names.update((i, None) for i in n.input if i and i not in own)
            todo.extend(subgraphs(n))
        names.update((o.name, None) for o in graph.output if o.name not in own)
    return list(names)


def ordered(nodes: Sequence[onnx.NodeProto], known: Iterable[str], outer: Callable[[str], bool]) -> list[onnx.NodeProto]:
    """The nodes, producers first; their own order where it is already right.

    ``known`` are inputs and initializers, ``outer`` tells whether an enclosing graph defines a name.
    Raises ModelError for a name defined twice, an input nobody produces, and cycles.
    """
    for index, node in enumerate(nodes):
        if not all(isinstance(s, str) for s in (*node.input, *node.output, node.name, node.op_type, node.domain)):
            raise ModelError(f"a name of node {index} is not valid UTF-8")
    place = {name: -1 for name in known}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and name in place:
                first = "an input or initializer" if place[name] < 0 else where(nodes[place[name]])
                raise ModelError(f"'{printable(name)}' is defined twice, by {first} and by {where(node)}")
            if name:
                place[name] = index
    needs: list[set[int]] = []
    in_order = True
    for index, node in enumerate(nodes):
        wanted = set()
        for name in reads(node):
            at = place.get(name)
            if at is None:
                # A subgraph may define the name itself in a nested graph; only direct inputs must exist.
                if name in node.input and not outer(name):
                    raise ModelError(f"input '{printable(name)}' is produced by nothing", where=where(node))
            elif at >= 0:
                wanted.add(at)
                in_order = in_order and at < index
        needs.append(wanted)
    return list(nodes) if in_order else [nodes[i] for i in _sort(nodes, needs)]


def _sort(nodes: Sequence[onnx.NodeProto], needs: list[set[int]]) -> list[int]:
    users: list[list[int]] = [[] for _ in nodes]
    missing = [len(n) for n in needs]
    for index, wanted in enumerate(needs):
        for at in wanted:
            users[at].append(index)
    ready = [i for i, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        raise ModelError(f"the graph has a cycle: {_cycle(nodes, needs, set(order))}")
    return order


def _cycle(nodes: Sequence[onnx.NodeProto], needs: list[set[int]], done: set[int]) -> str:
    at = min(i for i in range(len(nodes)) if i not in done)
    path: list[int] = []
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = min(i for i in needs[at] if i not in done)
    loop = path[seen[at] :][::-1]
    shown = [where(nodes[i]) for i in loop[:5]] + (["..."] if len(loop) > 5 else [])
    return " -> ".join([*shown, shown[0]])

"""Step order: of several topological orders, the one whose live bytes peak lowest.

Candidates are the order of creation, a depth-first order that finishes the larger operand first, and a greedy order that always runs
the ready node which adds least memory. Values that are views of their input (``is_view``) cost nothing and keep the input alive.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from flaot.ir.graph import Graph, Node


def order_nodes(graph: Graph, is_view: Callable[[Node], bool]) -> list[Node]:
    """All nodes in the chosen order."""
    created = graph.nodes()
    uses = _Uses(graph, created, is_view)
    best, lowest = created, uses.peak(created)
    for candidate in (_depth_first(graph, created, uses), _greedy(created, uses)):
        size = uses.peak(candidate)
        if size < lowest:
            best, lowest = candidate, size
    return best


class _Uses:
    """Bytes of each memory owner and how many node reads it has; views resolve to the value that owns their memory."""

    def __init__(self, graph: Graph, nodes: list[Node], is_view: Callable[[Node], bool]) -> None:
        self.owner: dict[int, int] = {}
        self.size: dict[int, int] = {}
        self.reads: dict[int, int] = {}
        for node in nodes:
            source = node.inputs[0] if node.inputs else None
            viewed = source is not None and source.id in self.owner and is_view(node)
            for v in node.outputs:
                assert source is not None or not viewed
                self.owner[v.id] = self.owner[source.id] if viewed and source is not None else v.id
                self.size.setdefault(self.owner[v.id], v.type.nbytes)
        for node in nodes:
            for key in self.inputs(node):
                self.reads[key] = self.reads.get(key, 0) + 1
        for o in graph.outputs:
            if o.value.id in self.owner:
                key = self.owner[o.value.id]
                self.reads[key] = self.reads.get(key, 0) + 1

    def inputs(self, node: Node) -> list[int]:
        """Owners the node reads, each once, graph inputs and constants left out."""
        return list(dict.fromkeys(self.owner[v.id] for v in node.inputs if v is not None and v.id in self.owner))

    def made(self, node: Node) -> list[int]:
        """Owners the node creates."""
        return [v.id for v in node.outputs if self.owner[v.id] == v.id]

    def peak(self, order: list[Node]) -> int:
        left, live, top = dict(self.reads), 0, 0
        for node in order:
            live += sum(self.size[k] for k in self.made(node))
            top = max(top, live)
            for key in self.inputs(node):
                left[key] -= 1
                live -= self.size[key] if left[key] == 0 else 0
            live -= sum(self.size[k] for k in self.made(node) if k not in left)
        return top


def _depth_first(graph: Graph, nodes: list[Node], uses: _Uses) -> list[Node]:
    weight = {n.id: sum(uses.size[k] for k in (*uses.inputs(n), *uses.made(n))) for n in nodes}

    def operands(node: Node) -> list[Node]:
        made = dict.fromkeys(v.producer for v in node.inputs if v is not None and v.producer is not None)
        return sorted((n for n in made if n is not None), key=lambda n: (weight[n.id], -n.id))

    done: set[int] = set()
    order: list[Node] = []
    for root in nodes[::-1]:
        if any(graph.consumers(v) for v in root.outputs):
            continue
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if node.id in done:
                continue
            if ready:
                done.add(node.id)
                order.append(node)
            else:
                stack.append((node, True))
                stack.extend((n, False) for n in operands(node) if n.id not in done)
    return order


def _greedy(nodes: list[Node], uses: _Uses) -> list[Node]:
    readers: dict[int, list[Node]] = {}
    blocked: dict[int, int] = {}
    children: dict[int, list[Node]] = {}
    for node in nodes:
        for key in uses.inputs(node):
            readers.setdefault(key, []).append(node)
        parents = dict.fromkeys(v.producer.id for v in node.inputs if v is not None and v.producer is not None)
        blocked[node.id] = len(parents)
        for p in parents:
            children.setdefault(p, []).append(node)
    left, done = dict(uses.reads), set()

    def growth(node: Node) -> int:
        return sum(uses.size[k] for k in uses.made(node)) - sum(uses.size[k] for k in uses.inputs(node) if left[k] == 1)

    heap = [(growth(n), n.id, n) for n in nodes if blocked[n.id] == 0]
    heapq.heapify(heap)
    order: list[Node] = []
    while heap:
        key, _, node = heapq.heappop(heap)
        if node.id in done:
            continue
        if key != growth(node):
            heapq.heappush(heap, (growth(node), node.id, node))
            continue
        done.add(node.id)
        order.append(node)
        for k in uses.inputs(node):
            left[k] -= 1
            if left[k] == 1:
                waiting = [n for n in readers[k] if n.id not in done and blocked[n.id] == 0]
                for n in waiting:
                    heapq.heappush(heap, (growth(n), n.id, n))
        for child in children.get(node.id, ()):
            blocked[child.id] -= 1
            if blocked[child.id] == 0:
                heapq.heappush(heap, (growth(child), child.id, child))
    return order


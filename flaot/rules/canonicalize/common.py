"""Common subexpressions: nodes of the same op on the same inputs are one node, constants of the same type and bytes one constant."""

from __future__ import annotations

import zlib

import numpy as np

from flaot.ir.graph import Graph, Node, Value
from flaot.ir.text import attribute
from flaot.rewrite import Sweep


class Merge(Sweep):
    """One pass in graph order; what it merges makes later twins visible in the same pass."""

    def run(self, graph: Graph) -> int:
        changes = _merge_constants(graph)
        seen: dict[tuple[object, ...], Node] = {}
        for node in graph.nodes():
            key = (attribute(node.op), *(None if v is None else v.id for v in node.inputs))
            first = seen.setdefault(key, node)
            if first is node:
                continue
            for old, new in zip(node.outputs, first.outputs, strict=True):
                graph.replace(old, new)
            first.origin = tuple(dict.fromkeys((*first.origin, *node.origin)))
            graph.remove(node)
            changes += 1
        return changes


def _merge_constants(graph: Graph) -> int:
    groups: dict[object, list[Value]] = {}
    for value in graph.values():
        if value.data is not None:
            groups.setdefault((value.type, value.layout), []).append(value)
    changes = 0
    for values in groups.values():
        if len(values) > 1:
            changes += _merge_group(graph, values)
    return changes


def _merge_group(graph: Graph, values: list[Value]) -> int:
    seen: dict[int, list[Value]] = {}
    changes = 0
    for value in values:
        data = _bytes(value)
        twins = seen.setdefault(zlib.crc32(data.data), [])
        twin = next((t for t in twins if np.array_equal(_bytes(t), data)), None)
        if twin is None:
            twins.append(value)
        else:
            graph.replace(value, twin)
            changes += 1
    return changes


def _bytes(value: Value) -> np.ndarray:
    assert value.data is not None
    return np.ascontiguousarray(value.data).reshape(-1).view(np.uint8)

"""Model-local functions: look-up, recursion check, and the size of the model once they are inlined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from flaot.errors import LimitError, ModelError, printable
from flaot.frontend.load import domain_of
from flaot.frontend.order import subgraphs

MAX_NODES = 1_000_000
"""Highest number of nodes a model may have with its functions inlined."""

Key = tuple[str, str, str]


def key_of(node: onnx.NodeProto) -> Key:
    """Domain, type and overload: what a function is found by."""
    return domain_of(node.domain), node.op_type, getattr(node, "overload", "")


def nested(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes and all nodes of their subgraphs."""
    todo = [iter(nodes)]
    while todo:
        node = next(todo[-1], None)
        if node is None:
            todo.pop()
            continue
        yield node
        todo.extend(iter(g.node) for g in subgraphs(node))


def functions_of(model: onnx.ModelProto) -> dict[Key, onnx.FunctionProto]:
    """The functions of a model that its graph reaches are checked: no recursion, at most MAX_NODES nodes after inlining."""
    found: dict[Key, onnx.FunctionProto] = {}
    for f in model.functions:
        key = (domain_of(f.domain), f.name, getattr(f, "overload", ""))
        if key in found:
            raise ModelError(f"function '{_name(key)}' is defined twice")
        found[key] = f
    total = _inlined(list(nested(model.graph.node)), found, _sizes(model, found))
    if total > MAX_NODES:
        raise LimitError(f"{total} nodes with functions inlined; the limit is {MAX_NODES}")
    return found


def _name(key: Key) -> str:
    return printable(":".join(part for part in key if part))


def _inlined(nodes: list[onnx.NodeProto], functions: dict[Key, onnx.FunctionProto], sizes: dict[Key, int]) -> int:
    return sum(1 + sizes[key_of(n)] if key_of(n) in functions else 1 for n in nodes)


def _sizes(model: onnx.ModelProto, functions: dict[Key, onnx.FunctionProto]) -> dict[Key, int]:
    """Nodes of each reached function once everything it calls is inlined."""
    bodies: dict[Key, list[onnx.NodeProto]] = {}
    sizes: dict[Key, int] = {}
    active: dict[Key, None] = {}
    todo = [k for k in dict.fromkeys(key_of(n) for n in nested(model.graph.node)) if k in functions][::-1]
    while todo:
        key = todo[-1]
        if key in sizes:
            todo.pop()
            continue
        body = bodies.setdefault(key, list(nested(functions[key].node)))
        calls = [k for k in dict.fromkeys(key_of(n) for n in body) if k in functions]
        open_calls = [k for k in calls if k not in sizes]
        if key in active and open_calls:
            raise ModelError(f"function '{_name(open_calls[-1])}' calls itself, directly or through '{_name(key)}'")
        if not open_calls:
            sizes[key] = _inlined(body, functions, sizes)
            active.pop(key, None)
            todo.pop()
            continue
        active[key] = None
        if any(k in active for k in open_calls):
            again = next(k for k in open_calls if k in active)
            raise ModelError(f"function '{_name(again)}' calls itself, directly or through '{_name(key)}'")
        todo.extend(open_calls)
    return sizes

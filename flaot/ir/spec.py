"""What holds of a graph after each stage, as small predicates: checked by tests, and in runs with ``FLAOT_CHECK=1``.

A stage's spec is that of the stages before it and its own additions; a rule keeps the spec of its stage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flaot.errors import InternalError
from flaot.ir.graph import Graph
from flaot.ir.op import OpTypeError
from flaot.ir.types import MAX_ELEMENTS, MAX_RANK


@dataclass(frozen=True)
class Predicate:
    """A property with its sentence; ``broken`` yields where it does not hold."""

    sentence: str
    broken: Callable[[Graph], Iterator[str]]


def _types(graph: Graph) -> Iterator[str]:
    for node in graph.nodes():
        try:
            found = node.op.infer(node.input_types)
        except OpTypeError as e:
            yield f"{node.where}: {e}"
            continue
        if list(found) != node.output_types:
            yield f"{node.where}: {', '.join(map(str, node.output_types))} instead of {', '.join(map(str, found))}"


def _sizes(graph: Graph) -> Iterator[str]:
    for value in graph.values():
        if value.type.rank > MAX_RANK or value.type.elements > MAX_ELEMENTS:
            yield repr(value)


def _constants(graph: Graph) -> Iterator[str]:
    for value in graph.values():
        data = value.data
        if data is not None and (data.shape != value.type.shape or data.dtype != value.type.dtype.numpy):
            yield f"{value!r} holds {data.dtype}{list(data.shape)}"


def _defined(graph: Graph) -> Iterator[str]:
    known = {v.id for v in graph.inputs}
    for node in graph.nodes():
        for value in node.inputs:
            if value is not None and not value.is_constant and value.id not in known:
                yield f"{node.where} reads {value!r}"
        known.update(v.id for v in node.outputs)
    for output in graph.outputs:
        if not output.value.is_constant and output.value.id not in known:
            yield f"output '{output.name}' shows {output.value!r}"


def _names(graph: Graph) -> Iterator[str]:
    seen: set[str] = set()
    for name in [v.name for v in graph.inputs] + [f"output {o.name}" for o in graph.outputs]:
        if name in seen:
            yield name
        seen.add(name)


def _row_major(graph: Graph) -> Iterator[str]:
    yield from (repr(v) for v in graph.values() if v.layout is not None)


def _live(graph: Graph) -> Iterator[str]:
    wanted = {o.value.id for o in graph.outputs}
    for node in reversed(graph.nodes()):
        if any(v.id in wanted for v in node.outputs):
            wanted.update(v.id for v in node.inputs if v is not None)
        else:
            yield node.where


def _no_ops(*names: str) -> Predicate:
    def broken(graph: Graph) -> Iterator[str]:
        yield from (n.where for n in graph.nodes() if n.op.name in names)

    return Predicate(f"no {', '.join(names)} is left", broken)


def _layouts(graph: Graph) -> Iterator[str]:
    for value in graph.values():
        if sorted(value.storage) != list(range(value.type.rank)):
            yield f"{value!r} is stored as {value.storage}"


ALWAYS = (
    Predicate("every value is defined before it is read", _defined),
    Predicate("output types are those the op infers", _types),
    Predicate("ranks and sizes fit a plan", _sizes),
    Predicate("constants hold what their type says", _constants),
    Predicate("inputs and outputs have one name each", _names),
)

READ = (*ALWAYS, Predicate("no layout is chosen yet", _row_major))
CANONICAL = (*READ, Predicate("every node serves an output", _live), _no_ops("BatchNormalization"))

SPECS: dict[str, tuple[Predicate, ...]] = {
    "read": READ,
    "canonicalize": CANONICAL,
    "recognise": CANONICAL,
    "legalize": CANONICAL,
    "place": CANONICAL,
    "fuse": CANONICAL,
    "chain": CANONICAL,
    "layouts": (*ALWAYS, Predicate("layouts order the axes", _layouts)),
}
"""What holds after each stage of flaot.pipeline."""


def problems(graph: Graph, after: str) -> list[str]:
    """One line per broken property."""
    return [f"{p.sentence}: {found}" for p in SPECS[after] for found in p.broken(graph)]


def check(graph: Graph, after: str) -> None:
    """Raises InternalError unless the spec of the stage holds."""
    found = problems(graph, after)
    if found:
        raise InternalError("; ".join(found[:5]), where=f"after stage {after}")


def is_enabled() -> bool:
    """Whether stages are checked in ordinary runs."""
    return os.environ.get("FLAOT_CHECK", "") not in ("", "0")

"""Ops said in simpler ops, for chips that lack them: one registry of op classes, filled by the modules of this folder.

Each op is defined by its expansion, in its logical type. Which nodes are expanded is the caller's choice; no expansion leads back to the
op it replaces, so any choice ends.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.op import Op
from flaot.rewrite import Miss, Rule, Sweep, Tracer, run_rules
from flaot.rewrite.engine import Gate
from flaot.rules.canonicalize import reshapes, transposes
from flaot.rules.expand.parts import EXPANSIONS, Parts


def load_all() -> None:
    """Imports every module of the folder; idempotent."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")


def expandable(op: type[Op]) -> bool:
    """Whether an expansion is known for the op, perhaps only for some attributes and types."""
    load_all()
    return op in EXPANSIONS


def expansion(graph: Graph, node: Node) -> Patch | None:
    """The edit that says the node in simpler ops, not applied yet; None where there is none."""
    made = attempt(graph, node)
    return made if isinstance(made, Patch) else None


def attempt(graph: Graph, node: Node) -> Patch | Miss | None:
    """As :func:`expansion`, with the sentence why an op that has an expansion has none for this node."""
    load_all()
    write = EXPANSIONS.get(type(node.op))
    if write is None:
        return None
    parts = Parts(graph, node)
    made = write(parts, node)
    if isinstance(made, Miss):
        parts.patch.discard()
        return made
    for old, new in zip(node.outputs, made if isinstance(made, tuple) else (made,), strict=True):
        parts.patch.replace(old, new)
    return parts.patch


class Expand(Rule):
    """Every node that is wanted and has an expansion."""

    anchors = (Op,)

    def __init__(self, wanted: Callable[[Node], bool]) -> None:
        self.wanted = wanted

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        return attempt(graph, node) if self.wanted(node) else None


def movements() -> list[Rule | Sweep]:
    """The rules that join neighbouring Reshapes and Transposes: what a recognised or expanded op leaves beside those that were there."""
    return [transposes.Compose(), transposes.ThroughReshape(), reshapes.Chain(), reshapes.FromTranspose()]


def expand_all(graph: Graph, wanted: Callable[[Node], bool], tracer: Tracer | None = None, gate: Gate | None = None) -> int:
    """Expands the wanted nodes, and those that come of them, until none is left; returns how many patches were applied."""
    return run_rules(graph, [Expand(wanted), *movements()], tracer, gate)

"""What a rule is: anchored at a node, it answers with a patch, with the sentence why it nearly fired, or with nothing."""

from __future__ import annotations

import abc
import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.op import Op


@dataclass(frozen=True)
class Miss:
    """The shape of the pattern was there, a condition did not hold: one sentence, kept for ``explain``."""

    why: str


class Rule(abc.ABC):
    """A local rewrite. ``match`` must not change the graph except through the patch it returns.

    Rules of one stage need no order among themselves; a graph that is legal before a rule is legal after it.
    """

    anchors: ClassVar[tuple[type[Op], ...]]
    """Op classes (subclasses included) whose nodes are offered to :meth:`match`; by convention the last node of the pattern."""

    @property
    def name(self) -> str:
        """Shown by traces and errors: module and class, ``batch_norm.IntoConv``."""
        return f"{type(self).__module__.rsplit('.', 1)[-1]}.{type(self).__name__}"

    @abc.abstractmethod
    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        """The edit that rewrites the pattern ending at ``node``, a near miss, or None."""

    def patch(self, graph: Graph, *nodes: Node) -> Patch:
        """An empty patch labelled with this rule whose new nodes stem from ``nodes``."""
        return Patch(graph, self.name, tuple(dict.fromkeys(name for n in nodes for name in n.origin)), nodes)


class Sweep(abc.ABC):
    """A rewrite that needs one look at the whole graph (common subexpressions). Linear in its size."""

    @property
    def name(self) -> str:
        return f"{type(self).__module__.rsplit('.', 1)[-1]}.{type(self).__name__}"

    @abc.abstractmethod
    def run(self, graph: Graph) -> int:
        """Edits the graph; returns how many nodes it changed or removed."""


def stage_of(rule: Rule | Sweep) -> str:
    """The stage whose folder the rule stands in: ``fuse`` for flaot/rules/fuse/conv.py."""
    return type(rule).__module__.rpartition(".")[0].rpartition(".")[2]


def summary_of(rule: Rule | Sweep) -> str:
    """One line about the rule: that of its class, or the case of its module that the class names by number."""
    first = _first_line(inspect.getdoc(type(rule)) if type(rule).__doc__ else None)
    number = re.match(r"Cases? (\d+)", first)
    head = inspect.getdoc(inspect.getmodule(type(rule))) or ""
    case = re.search(rf"^{number[1]}\. (.+)$", head, re.MULTILINE) if number is not None else None
    return case[1].rstrip(";.") if case is not None else first.rstrip(".") or _first_line(head).rstrip(".")


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def rules_in(package: ModuleType, **services: Any) -> list[Rule | Sweep]:
    """Every rule defined in the modules of a ``flaot/rules/<stage>`` package, by module and then source order.

    ``services`` are handed to the rules whose constructor names them (``evaluate``).
    """
    found: list[Rule | Sweep] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        loaded = importlib.import_module(f"{package.__name__}.{module}")
        for cls in vars(loaded).values():
            if not inspect.isclass(cls) or not issubclass(cls, Rule | Sweep):
                continue
            if cls.__module__ == loaded.__name__ and not inspect.isabstract(cls) and not cls.__name__.startswith("_"):
                wanted = [p for p in inspect.signature(cls).parameters if p in services]
                found.append(cls(**{p: services[p] for p in wanted}))
    return found

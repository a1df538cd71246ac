"""What the rules did and nearly did, for ``explain`` and for tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flaot.ir.graph import Node

if TYPE_CHECKING:
    from flaot.rewrite.rule import Rule, Sweep


@dataclass
class Tracer:
    """Counts per rule, the nodes each rule fired on, and the last near miss of each (rule, node)."""

    counts: Counter[str] = field(default_factory=Counter)
    events: list[tuple[str, str]] = field(default_factory=list)
    misses: dict[tuple[str, str], str] = field(default_factory=dict)

    def fired(self, rule: Rule, node: Node) -> None:
        self.counts[rule.name] += 1
        self.events.append((rule.name, node.where))
        self.misses.pop((rule.name, node.where), None)

    def swept(self, sweep: Sweep, changes: int) -> None:
        self.counts[sweep.name] += changes

    def missed(self, rule: Rule, node: Node, why: str) -> None:
        self.misses[rule.name, node.where] = why

    def lines(self) -> list[str]:
        """One line per rule that fired, then one per near miss."""
        fired = [f"{name}: {count} times" for name, count in sorted(self.counts.items())]
        return fired + [f"{rule} did not fire at {where}: {why}" for (rule, where), why in self.misses.items()]

"""What the rules did and nearly did, for ``explain`` and for tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flaot.ir.graph import Node


class Named(Protocol):
    """A rule, a sweep, or a fusion of a chip."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class Offered:
    """A rule that was tried: the stage it belongs to, and one line about it."""

    stage: str
    summary: str


@dataclass(frozen=True)
class Event:
    """A rule fired: at which node, as messages name it, from which nodes of the model, and on which device."""

    rule: str
    where: str
    origin: tuple[str, ...]
    device: str


@dataclass
class Tracer:
    """Rules tried, how often each fired, where, and the last near miss of each (rule, node)."""

    rules: dict[str, Offered] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    misses: dict[tuple[str, str], str] = field(default_factory=dict)

    def offer(self, name: str, stage: str, summary: str) -> None:
        self.rules.setdefault(name, Offered(stage, summary))

    def fired(self, rule: Named, node: Node, origin: tuple[str, ...] = ()) -> None:
        self.counts[rule.name] += 1
        self.events.append(Event(rule.name, node.where, origin, node.place.device))
        self.misses.pop((rule.name, node.where), None)

    def swept(self, sweep: Named, changes: int) -> None:
        self.counts[sweep.name] += changes

    def missed(self, rule: Named, node: Node, why: str) -> None:
        self.misses[rule.name, node.where] = why

    def lines(self) -> list[str]:
        """One line per rule that fired, then one per near miss."""
        fired = [f"{name}: {count} times" for name, count in sorted(self.counts.items())]
        return fired + [f"{rule} did not fire at {where}: {why}" for (rule, where), why in self.misses.items()]

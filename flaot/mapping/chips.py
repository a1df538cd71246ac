"""What the chips of one plan say of a node together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flaot.ir.facts import Context
from flaot.ir.graph import Node
from flaot.mapping.capability import Answer, Capability

STRICTNESS = {"attention": 0, "precision": 0, "limit": 1, "": 2}
"""Order in which reasons of several chips are told: those that no policy works around first."""


@dataclass(frozen=True)
class Chips:
    """The chips nodes may go to, in the order of the plan's devices."""

    every: tuple[Capability, ...]

    def without(self, names: Collection[str]) -> Chips:
        return Chips(tuple(c for c in self.every if c.name not in names))

    def only(self, names: Collection[str]) -> Chips:
        return Chips(tuple(c for c in self.every if c.name in names))

    def ask(self, node: Node, context: Context) -> dict[str, Answer]:
        """Every chip's answer, by its name."""
        return {c.name: c.ask(node, context) for c in self.every}

    def origin(self, name: str, *path: str) -> str:
        """The line of a key in a chip's descriptor."""
        return next(c.hcd.origin(*path) for c in self.every if c.name == name)


def together(answers: Sequence[Answer]) -> Answer:
    """One answer of several chips: the places of all that can run the node, else why none can, the strictest refusal first."""
    if len(answers) == 1:
        return answers[0]
    if any(a.options for a in answers):
        return Answer(tuple(o for a in answers for o in a.options), tuple(n for a in answers for n in a.notes))
    told = sorted(answers, key=lambda a: STRICTNESS[a.firewall])
    reason, origin = ("; ".join(dict.fromkeys(a.reason for a in told)), ", ".join(dict.fromkeys(a.origin for a in told if a.origin)))
    return Answer(reason=reason, origin=origin, firewall=told[0].firewall, hint=told[0].hint)

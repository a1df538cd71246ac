"""Runs the rules of one stage to a fixpoint.

A worklist holds the nodes still to be offered. When a patch has been applied, only its neighbourhood is offered again; when the
list is empty the sweeps run, and after any change the whole graph is offered once more, so the result is a fixpoint of every rule
while the work stays near-linear. The order is that of the graph and of the rule list: equal inputs give equal results.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from flaot.errors import InternalError
from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.op import Op
from flaot.rewrite.rule import Miss, Rule, Sweep, stage_of, summary_of
from flaot.rewrite.trace import Tracer

REWRITES_PER_NODE = 20
"""More patches than this times the node count means that rules undo each other."""

MAX_ROUNDS = 50


Gate = Callable[[Sequence[Node]], str | None]
"""Why the nodes of a matched pattern may not become one, or None."""


def one_place(nodes: Sequence[Node]) -> str | None:
    """The gate that keeps what runs in different places apart."""
    first = nodes[0]
    other = next((n for n in nodes if n.place != first.place), None)
    if other is not None:
        return f"{first.where} runs on {first.place} and {other.where} on {other.place}"
    return None


def run_rules(graph: Graph, rules: Sequence[Rule | Sweep], tracer: Tracer | None = None, gate: Gate | None = None) -> int:
    """Applies the rules until none fires; returns how many patches were applied. Dead nodes are removed first. Matches that the gate
    refuses count as near misses.

    Raises InternalError naming the rules involved when they do not converge.
    """
    graph.prune()
    run = _Run(graph, rules, tracer if tracer is not None else Tracer(), gate)
    for rule in rules:
        run.tracer.offer(rule.name, stage_of(rule), summary_of(rule))
    for _ in range(MAX_ROUNDS):
        if not run.local(graph.nodes()) + run.sweeps():
            return run.fired.total()
    raise run.endless()


class _Run:
    def __init__(self, graph: Graph, rules: Sequence[Rule | Sweep], tracer: Tracer, gate: Gate | None) -> None:
        self.graph, self.tracer, self.gate = graph, tracer, gate
        self.rules = [r for r in rules if isinstance(r, Rule)]
        self.whole = [r for r in rules if isinstance(r, Sweep)]
        self.limit = 1000 + REWRITES_PER_NODE * len(graph)
        self.fired: Counter[str] = Counter()
        self.recent: deque[str] = deque(maxlen=100)
        self._of: dict[type[Op], list[Rule]] = {}

    def offered(self, op: type[Op]) -> list[Rule]:
        if op not in self._of:
            self._of[op] = [r for r in self.rules if issubclass(op, r.anchors)]
        return self._of[op]

    def local(self, nodes: Iterable[Node]) -> int:
        todo = deque(nodes)
        queued = {n.id for n in todo}
        before = self.fired.total()
        while todo:
            node = todo.popleft()
            queued.discard(node.id)
            if not self.graph.contains(node):
                continue
            for near in self._try(node):
                if near.id not in queued and self.graph.contains(near):
                    queued.add(near.id)
                    todo.append(near)
        return self.fired.total() - before

    def _try(self, node: Node) -> list[Node]:
        """Applies the first rule that matches the node; returns the nodes to offer again."""
        for rule in self.offered(type(node.op)):
            answer = rule.match(self.graph, node)
            if isinstance(answer, Miss):
                self.tracer.missed(rule, node, answer.why)
            elif answer is not None:
                refusal = self.gate(answer.sources) if self.gate is not None and answer.sources else None
                if refusal is None:
                    return self._apply(rule, node, answer)
                answer.discard()
                self.tracer.missed(rule, node, refusal)
        return []

    def _apply(self, rule: Rule, node: Node, patch: Patch) -> list[Node]:
        near = patch.neighbours()
        patch.apply()
        self.tracer.fired(rule, node, patch.origin)
        self._count(rule.name, 1)
        return near

    def _count(self, name: str, times: int) -> None:
        self.fired[name] += times
        self.recent.append(name)
        if self.fired.total() > self.limit:
            raise self.endless()

    def sweeps(self) -> int:
        changes = 0
        for sweep in self.whole:
            done = sweep.run(self.graph)
            changes += done
            if done:
                self.tracer.swept(sweep, done)
                self._count(sweep.name, done)
        return changes

    def endless(self) -> InternalError:
        names = " -> ".join(dict.fromkeys(self.recent))
        return InternalError(f"rules do not converge after {self.fired.total()} rewrites; the last ones were {names}", where="rewrite")

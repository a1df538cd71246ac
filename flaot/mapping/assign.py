"""Labelling: one label for every node so that the node costs and the costs of the edges between them are least together.

    energy = sum of costs[n][label(n)] + sum of w[label(a), label(b)] over the edges (a, b, w)

Exact by variable elimination while the tables stay small, which holds for the long and narrow graphs of models: a node is minimised out
and leaves a table over its neighbours. Where the graph is wider, labels that another label of the node always beats are dropped; what is
left is one minimum cut when it has two labels and is submodular (exact as well), else expansion moves: cuts that let any set of nodes
switch to one label.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from flaot.mapping.cut import cut

TABLE = 100_000
"""Entries of the largest table that elimination may make."""

SWEEPS = 20
"""Rounds of expansion moves over all labels."""

Edge = tuple[int, int, np.ndarray]


@dataclass
class Problem:
    """``costs[n][i]`` is what label i costs at node n (infinite: not allowed), ``edges`` are (a, b, matrix of costs [label a, label b]);
    several edges between two nodes add up.

    ``names`` says what labels mean where nodes number them differently; expansion moves are made by name.
    """

    costs: dict[int, Sequence[float]]
    edges: list[Edge] = field(default_factory=list)
    names: Mapping[int, Sequence[Hashable]] = field(default_factory=dict)


@dataclass(frozen=True)
class Solution:
    """Labels by node, their energy (infinite when no labelling is allowed), and whether no labelling is better for certain."""

    labels: dict[int, int]
    energy: float
    exact: bool


def energy(problem: Problem, labels: Mapping[int, int]) -> float:
    """Costs of a labelling."""
    own = sum(float(c[labels[n]]) for n, c in problem.costs.items())
    return own + sum(float(w[labels[a], labels[b]]) for a, b, w in problem.edges)


def solve(problem: Problem, table: int = TABLE) -> Solution:
    """The best labelling found, the same on every run; of equal labels of a node the lowest. ``table`` bounds elimination's tables."""
    allowed = {n: _finite(c) for n, c in problem.costs.items()}
    outside = _Elimination(_restricted(problem, allowed))
    outside.run(table, degree=2)
    labels: dict[int, int] = {}
    exact = True
    for part in _components(outside.core()):
        found, sure = _solve_wide(part, table)
        labels.update(found)
        exact &= sure
    labels = outside.substitute(labels)
    labels = {n: int(allowed[n][labels[n]]) for n in problem.costs}
    return Solution(labels, energy(problem, labels), exact)


def _solve_wide(part: Problem, table: int) -> tuple[dict[int, int], bool]:
    """Labels of a connected problem, and whether none are better."""
    inside = _Elimination(part)
    inside.run(table)
    if not inside.near:
        return inside.substitute({}), True
    kept = _unbeaten(part)
    if any(len(kept[n]) < len(c) for n, c in part.costs.items()):
        reduced = solve(_restricted(part, kept), table)
        return {n: int(kept[n][label]) for n, label in reduced.labels.items()}, reduced.exact
    if all(len(c) == 2 for c in part.costs.values()):
        labels, exact = cut(part.costs, part.edges)
        if exact:
            return labels, True
    return expand(part), False


# -- elimination -----------------------------------------------------------------------------------------------------------


class _Elimination:
    """Factors (tables over several nodes) by each of their nodes, and what was minimised out of them, in order."""

    def __init__(self, problem: Problem) -> None:
        self.names = problem.names
        self.sizes = {n: len(c) for n, c in problem.costs.items()}
        self.unary = {n: np.asarray(c, float) for n, c in problem.costs.items()}
        self.near: dict[int, set[int]] = {n: set() for n in problem.costs}
        self.factors: dict[int, dict[tuple[int, ...], np.ndarray]] = {n: {} for n in problem.costs}
        self.done: list[tuple[int, tuple[int, ...], np.ndarray]] = []
        for a, b, w in problem.edges:
            if a == b:
                self._add((a,), np.diagonal(w))
            elif self.sizes[a] == 1:
                self._add((b,), w[0])
            elif self.sizes[b] == 1:
                self._add((a,), w[:, 0])
            else:
                self._add((a, b) if a < b else (b, a), np.asarray(w if a < b else w.T, float))

    def run(self, table: int, degree: int | None = None) -> None:
        """Eliminates nodes, narrowest first, while their tables have at most ``table`` entries and they at most ``degree`` neighbours."""
        heap = [(self._width(n, table), n) for n in self.near]
        heapq.heapify(heap)
        while heap:
            width, n = heapq.heappop(heap)
            if width > table:
                return
            if n in self.near and (degree is None or len(self.near[n]) <= degree) and width == self._width(n, table):
                for m in self._out(n):
                    heapq.heappush(heap, (self._width(m, table), m))

    def core(self) -> Problem:
        """What is left, when every factor is over two nodes."""
        edges = [(n, over[1], w) for n in self.near for over, w in self.factors[n].items() if n == over[0]]
        return Problem({n: self.unary[n].tolist() for n in self.near}, edges, self.names)

    def substitute(self, labels: dict[int, int]) -> dict[int, int]:
        """Adds the labels of the eliminated nodes, last one first."""
        for n, over, table in reversed(self.done):
            labels[n] = int(table[tuple(labels[m] for m in over)].argmin())
        return labels

    def _add(self, over: tuple[int, ...], table: np.ndarray) -> None:
        if len(over) == 1:
            self.unary[over[0]] = self.unary[over[0]] + table
        if len(over) < 2:
            return
        held = self.factors[over[0]].get(over)
        table = table if held is None else held + table
        for n in over:
            self.factors[n][over] = table
            self.near[n].update(over)
            self.near[n].discard(n)

    def _width(self, n: int, table: int) -> int:
        """Entries of the table that eliminating the node makes; no more than ``table`` + 1 are counted."""
        width = self.sizes[n]
        for m in self.near[n]:
            width *= self.sizes[m]
            if width > table:
                return table + 1
        return width

    def _out(self, n: int) -> tuple[int, ...]:
        """Minimises a node out; returns its neighbours."""
        over = tuple(sorted(self.near[n]))
        table = self.unary[n]
        for held, w in self.factors.pop(n).items():
            table = table + _spread(held, w, over, n)
            for m in held:
                if m != n:
                    del self.factors[m][held]
        self.done.append((n, over, table))
        for m in over:
            self.near[m].discard(n)
        del self.near[n]
        self._add(over, table.min(axis=-1))
        return over


def _spread(held: tuple[int, ...], table: np.ndarray, over: tuple[int, ...], last: int) -> np.ndarray:
    """A table with the axes of ``over`` and then ``last``, of size 1 where it does not depend on them."""
    at = held.index(last)
    if at < len(held) - 1:
        table = table.transpose([*range(at), *range(at + 1, len(held)), at])
    if len(held) == len(over) + 1:
        return table
    sizes = dict(zip([m for m in held if m != last], table.shape, strict=False))
    return table.reshape([*(sizes.get(m, 1) for m in over), table.shape[-1]])


# -- smaller problems ------------------------------------------------------------------------------------------------------


def _finite(costs: Sequence[float]) -> Sequence[int]:
    """Labels that are allowed; all where none is."""
    if max(costs) < np.inf:
        return range(len(costs))
    return [i for i, c in enumerate(costs) if c < np.inf] or range(len(costs))


def _restricted(problem: Problem, kept: Mapping[int, Sequence[int]]) -> Problem:
    """The problem with only some labels at each node."""
    whole = {n for n, c in problem.costs.items() if len(kept[n]) == len(c)}
    if len(whole) == len(problem.costs):
        return problem
    costs = {n: c if n in whole else [c[i] for i in kept[n]] for n, c in problem.costs.items()}
    edges = [(a, b, w if a in whole and b in whole else w[np.ix_(kept[a], kept[b])]) for a, b, w in problem.edges]
    names = {n: held if n in whole else [held[i] for i in kept[n]] for n, held in problem.names.items() if n in kept}
    return Problem(costs, edges, names)


def _unbeaten(problem: Problem) -> dict[int, Sequence[int]]:
    """The labels of each node that no other label beats whatever its neighbours have; of equal ones the lowest."""
    kept: dict[int, Sequence[int]] = {n: range(len(c)) for n, c in problem.costs.items()}
    near: dict[int, list[tuple[int, np.ndarray]]] = {n: [] for n in kept}
    for a, b, w in problem.edges:
        near[a].append((b, w))
        near[b].append((a, w.T))
    todo = list(reversed(kept))
    while todo:
        n = todo.pop()
        tables = [w[:, kept[m]] for m, w in near[n]]
        alive = list(kept[n])
        for i in reversed(kept[n]):
            if any(j != i and _beats(problem.costs[n], tables, j, i) for j in alive):
                alive.remove(i)
        if len(alive) < len(kept[n]):
            kept[n] = alive
            todo += [m for m, _ in near[n]]
    return kept


def _beats(costs: Sequence[float], tables: Sequence[np.ndarray], j: int, i: int) -> bool:
    gain = costs[i] - costs[j]
    for w in tables:
        both = np.isinf(w[i]) & np.isinf(w[j])
        gain += float(np.subtract(w[i], w[j], out=np.full(len(both), np.inf), where=~both).min())
    return gain >= 0


def _components(problem: Problem) -> Iterator[Problem]:
    """The connected parts, in order of their first nodes."""
    links: dict[int, list[Edge]] = {n: [] for n in problem.costs}
    for edge in problem.edges:
        for n in edge[:2]:
            links[n].append(edge)
    seen: set[int] = set()
    for root in problem.costs:
        if root in seen:
            continue
        seen.add(root)
        part = [root]
        for n in part:
            for a, b, _ in links[n]:
                if (m := a + b - n) not in seen:
                    seen.add(m)
                    part.append(m)
        edges = [edge for n in part for edge in links[n] if edge[0] == n]
        yield Problem({n: problem.costs[n] for n in part}, edges, {n: problem.names[n] for n in part if n in problem.names})


# -- expansion moves -------------------------------------------------------------------------------------------------------


def expand(problem: Problem) -> dict[int, int]:
    """Expansion moves from the cheapest label of every node, and from every single label, until none helps; the best result."""
    names = {n: list(problem.names.get(n, range(len(c)))) for n, c in problem.costs.items()}
    every = list(dict.fromkeys(x for held in names.values() for x in held))
    best: dict[int, int] | None = None
    for first in (None, *every):
        labels = {n: names[n].index(first) if first in names[n] else int(np.argmin(c)) for n, c in problem.costs.items()}
        labels = _moves(problem, labels, names, every)
        if best is None or energy(problem, labels) < energy(problem, best):
            best = labels
    assert best is not None
    return best


def _moves(problem: Problem, labels: dict[int, int], names: Mapping[int, list[Hashable]], every: Sequence[Hashable]) -> dict[int, int]:
    lowest = energy(problem, labels)
    for _ in range(SWEEPS):
        before = lowest
        for name in every:
            target = {n: held.index(name) if name in held else labels[n] for n, held in names.items()}
            moved = _switch(problem, labels, target)
            now = energy(problem, moved)
            if now < lowest:
                labels, lowest = moved, now
        if lowest == before:
            break
    return labels


def _switch(problem: Problem, labels: Mapping[int, int], target: Mapping[int, int]) -> dict[int, int]:
    """The best labelling in which every node keeps its label or takes its target's; where the cut is not exact, a good one."""
    pair = {n: [labels[n], target[n]] for n in problem.costs}
    costs = {n: [c[i] for i in pair[n]] for n, c in problem.costs.items()}
    moved, _ = cut(costs, [(a, b, w[np.ix_(pair[a], pair[b])]) for a, b, w in problem.edges])
    return {n: pair[n][moved[n]] for n in problem.costs}

"""Labelling: one label for every node so that the node costs and the costs of the edges between them are least together.

Exact by variable elimination while the tables stay small, which holds for the long and narrow graphs of models: a node is minimised out
and leaves a table over its neighbours. Where the graph is wider, what elimination leaves is solved by one minimum cut when it has
two labels and is submodular (exact as well), else by expansion moves: minimum cuts that let any set of nodes switch to one label.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

TABLE = 100_000
"""Entries of the largest table that elimination may make."""

SWEEPS = 20
"""Rounds of expansion moves over all labels."""


@dataclass
class Problem:
    """``costs[n][i]`` is what label i costs at node n (infinite: not allowed), ``edges`` are (a, b, matrix of costs [label a, label b]).

    ``names`` says what labels mean where nodes number them differently; expansion moves are made by name.
    """

    costs: dict[int, Sequence[float]]
    edges: list[tuple[int, int, np.ndarray]] = field(default_factory=list)
    names: Mapping[int, Sequence[Hashable]] = field(default_factory=dict)


@dataclass(frozen=True)
class Solution:
    """Labels by node, their energy, and whether no labelling is better for certain. Ties go to the lowest labels."""

    labels: dict[int, int]
    energy: float
    exact: bool


def energy(problem: Problem, labels: Mapping[int, int]) -> float:
    """Costs of a labelling."""
    own = sum(float(c[labels[n]]) for n, c in problem.costs.items())
    return own + sum(float(w[labels[a], labels[b]]) for a, b, w in problem.edges)


def solve(problem: Problem, table: int = TABLE) -> Solution:
    """The best labelling found. ``table`` bounds the entries of elimination's tables."""
    run = _Elimination(problem)
    if not run.all(table):
        run = _Elimination(problem)
        run.narrow()
    core = run.core()
    labels, exact = _solve_core(core) if core.costs else ({}, True)
    labels = run.substitute(labels)
    return Solution({n: labels[n] for n in problem.costs}, energy(problem, labels), exact)


class _Elimination:
    """Factors (variables, table) and what was minimised out of them, in order."""

    def __init__(self, problem: Problem) -> None:
        self.names = problem.names
        self.sizes = {n: len(c) for n, c in problem.costs.items()}
        self.unary = {n: np.asarray(c, float) for n, c in problem.costs.items()}
        self.near: dict[int, set[int]] = {n: set() for n in problem.costs}
        self.factors: dict[int, dict[tuple[int, ...], np.ndarray]] = {n: {} for n in problem.costs}
        self.done: list[tuple[int, tuple[int, ...], np.ndarray]] = []
        for a, b, w in problem.edges:
            if a == b:
                self.unary[a] = self.unary[a] + np.diagonal(w)
            else:
                self._add((a, b), np.asarray(w, float))

    def _add(self, over: tuple[int, ...], table: np.ndarray) -> None:
        if len(over) == 0:
            return
        if len(over) == 1:
            self.unary[over[0]] = self.unary[over[0]] + table
            return
        order = tuple(sorted(over))
        table = table.transpose([over.index(n) for n in order]) if order != over else table
        held = self.factors[order[0]].get(order)
        table = table if held is None else held + table
        for n in order:
            self.factors[n][order] = table
            self.near[n].update(order)
            self.near[n].discard(n)

    def _width(self, n: int) -> int:
        width = self.sizes[n]
        for m in self.near[n]:
            width *= self.sizes[m]
        return width

    def all(self, table: int) -> bool:
        """Eliminates every node, narrowest first; False when a table would grow too large."""
        heap = [(self._width(n), n) for n in self.near]
        heapq.heapify(heap)
        while heap:
            width, n = heapq.heappop(heap)
            if n not in self.near or width != self._width(n):
                continue
            if width > table:
                return False
            for m in self._out(n):
                heapq.heappush(heap, (self._width(m), m))
        return True

    def narrow(self) -> None:
        """Eliminates nodes of at most two neighbours, which leaves edges between two nodes only."""
        todo = sorted(self.near, reverse=True)
        while todo:
            n = todo.pop()
            if n in self.near and len(self.near[n]) <= 2:
                todo += sorted(self._out(n), reverse=True)

    def _out(self, n: int) -> list[int]:
        over = (*sorted(self.near[n]), n)
        table = np.zeros([self.sizes[m] for m in over]) + self.unary[n]
        for held, w in self.factors.pop(n).items():
            table = table + _spread(held, w, over)
            for m in held:
                if m != n:
                    del self.factors[m][held]
        self.done.append((n, over[:-1], table))
        for m in over[:-1]:
            self.near[m].discard(n)
        del self.near[n]
        self._add(over[:-1], table.min(axis=-1))
        return list(over[:-1])

    def core(self) -> Problem:
        """What is left: costs and edges between two nodes."""
        edges = {over: w for n in self.near for over, w in self.factors[n].items()}
        return Problem({n: self.unary[n].tolist() for n in self.near}, [(a, b, w) for (a, b), w in edges.items()], self.names)

    def substitute(self, labels: dict[int, int]) -> dict[int, int]:
        """Labels of the eliminated nodes, last one first."""
        for n, over, table in reversed(self.done):
            labels[n] = int(np.argmin(table[tuple(labels[m] for m in over)]))
        return labels


def _spread(held: tuple[int, ...], table: np.ndarray, over: tuple[int, ...]) -> np.ndarray:
    """The table with the axes of ``over``, of size 1 where it does not depend on them."""
    wanted = [m for m in over if m in held]
    table = table.transpose([held.index(m) for m in wanted])
    return table.reshape([table.shape[wanted.index(m)] if m in held else 1 for m in over])


def _solve_core(core: Problem) -> tuple[dict[int, int], bool]:
    if all(len(c) <= 2 for c in core.costs.values()) and all(_submodular(w) for _, _, w in core.edges):
        start = dict.fromkeys(core.costs, 0)
        return _switch(core, start, {n: len(c) - 1 for n, c in core.costs.items()}), True
    return expand(core), False


def _submodular(w: np.ndarray) -> bool:
    return w.shape != (2, 2) or bool(w[0, 0] + w[1, 1] <= w[0, 1] + w[1, 0])


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
    """The best labelling in which every node keeps its label or takes its target's: a minimum cut.

    Terms that are not submodular are cut down to ones that are; then the result is good rather than best.
    """
    finite = [abs(x) for c in problem.costs.values() for x in c if np.isfinite(x)]
    finite += [float(np.abs(w[np.isfinite(w)]).sum()) for _, _, w in problem.edges]
    huge = 1.0 + 2.0 * sum(finite)
    stay = {n: min(float(c[labels[n]]), huge) for n, c in problem.costs.items()}
    move = {n: min(float(c[target[n]]), huge) for n, c in problem.costs.items()}
    cut: nx.DiGraph = nx.DiGraph()
    for a, b, w in problem.edges:
        w00, w01, w10, w11 = (min(float(w[i, j]), huge) for i in (labels[a], target[a]) for j in (labels[b], target[b]))
        # w00 + (w10 - w00) a + (w11 - w10) b + (w01 + w10 - w00 - w11) (1 - a) b
        move[a] += w10 - w00
        move[b] += w11 - w10
        between = max(w01 + w10 - w00 - w11, 0.0)
        if between and a != b:
            cut.add_edge(b, a, capacity=between + (cut[b][a]["capacity"] if cut.has_edge(b, a) else 0.0))
    for n in problem.costs:
        difference = move[n] - stay[n]
        if difference > 0:
            cut.add_edge(n, "stay", capacity=difference)
        elif difference < 0:
            cut.add_edge("move", n, capacity=-difference)
        else:
            cut.add_node(n)
    cut.add_nodes_from(("move", "stay"))
    _, (moved, _) = nx.minimum_cut(cut, "move", "stay")
    return {n: target[n] if n in moved else labels[n] for n in problem.costs}

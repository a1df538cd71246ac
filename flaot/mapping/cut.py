"""Two-label assignment, exact by minimum cut.

Energy: ``sum(unary[n][label(n)]) + sum(w for (a, b, w, same) if (label(a) == label(b)) != same)``. Pairs with ``same`` False want different
labels; they are turned into ordinary ones by flipping the meaning of the labels on one side, which is exact unless a cycle holds an
odd number of them (such a pair is then ignored).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx

Pair = tuple[int, int, float, bool]


def assign(unary: Mapping[int, tuple[float, float]], pairs: Sequence[Pair]) -> dict[int, int]:
    """The labelling (0 or 1 per node) of least energy; ties go to label 0. Infinite unary costs fix a label."""
    labels = {n: int(c[1] < c[0]) for n, c in unary.items() if float("inf") in c}
    costs = {n: list(c) for n, c in unary.items() if n not in labels}
    links: dict[int, list[Pair]] = {n: [] for n in costs}
    for a, b, w, same in pairs:
        if a in labels and b in labels:
            continue
        if a in labels or b in labels:
            fixed, free = (a, b) if a in labels else (b, a)
            wrong = labels[fixed] ^ int(same)
            costs[free][wrong] += w
        else:
            links[a].append((a, b, w, same))
            links[b].append((b, a, w, same))
    for part in _components(links):
        labels.update(_solve(part, costs, links))
    return labels


def _components(links: Mapping[int, list[Pair]]) -> list[list[int]]:
    seen: set[int] = set()
    parts = []
    for root in links:
        if root in seen:
            continue
        seen.add(root)
        part, todo = [root], [root]
        while todo:
            for _, b, _, _ in links[todo.pop()]:
                if b not in seen:
                    seen.add(b)
                    part.append(b)
                    todo.append(b)
        parts.append(part)
    return parts


def _solve(part: list[int], costs: Mapping[int, list[float]], links: Mapping[int, list[Pair]]) -> dict[int, int]:
    flip = _flips(part, links)
    if len(part) == 1:
        return {part[0]: int(costs[part[0]][1] < costs[part[0]][0])}
    cut: nx.DiGraph = nx.DiGraph()
    for n in part:
        zero, one = costs[n][flip[n]], costs[n][1 - flip[n]]
        cut.add_edge("zero", n, capacity=one)
        cut.add_edge(n, "one", capacity=zero)
        for a, b, w, same in links[n]:
            if (flip[a] == flip[b]) == same:
                cut.add_edge(a, b, capacity=w + (cut[a][b]["capacity"] if cut.has_edge(a, b) else 0))
    _, (_, ones) = nx.minimum_cut(cut, "zero", "one")
    return {n: int(n in ones) ^ flip[n] for n in part}


def _flips(part: list[int], links: Mapping[int, list[Pair]]) -> dict[int, int]:
    flip = {part[0]: 0}
    todo = [part[0]]
    while todo:
        a = todo.pop()
        for _, b, _, same in links[a]:
            if b not in flip:
                flip[b] = flip[a] ^ int(not same)
                todo.append(b)
    return flip

"""Two-label assignment by minimum cut.

The energy is that of :mod:`flaot.mapping.assign`. Costs of two labels are submodular when equal labels cost no more than different ones
(``w00 + w11 <= w01 + w10``), and then a cut of least capacity is a labelling of least energy. Where an edge wants different labels, the
meaning of the labels is turned on one side. That makes every edge submodular unless a cycle holds an odd number of such edges; the
weakest edge of such a cycle is then cut down to what is submodular.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np
from networkx.algorithms.flow import boykov_kolmogorov

SCALE = 2**60
"""Costs become integers of about this size: flows of whole numbers end, and end the same everywhere."""

ROUNDING = 2**12
"""How far sums of costs, rounded in binary, may be from what they are; as a part of SCALE."""


def cut(costs: Mapping[int, Sequence[float]], edges: Sequence[tuple[int, int, np.ndarray]]) -> tuple[dict[int, int], bool]:
    """The labelling (0 or 1 per node) of least energy, and whether it is that for certain. Infinite costs forbid; ties go to label 0."""
    finite = [abs(x) for c in costs.values() for x in c if np.isfinite(x)]
    finite += [abs(x) for _, _, w in edges for x in w.flat if np.isfinite(x)]
    huge = 1.0 + 2.0 * sum(finite)

    def whole(x: float) -> int:
        return round(min(float(x), huge) / huge * SCALE)

    terms: dict[tuple[int, int], list[int]] = {}
    for a, b, w in edges:
        term = terms.setdefault((min(a, b), max(a, b)), [0, 0, 0, 0])
        term[:] = [x + whole(y) for x, y in zip(term, (w if a < b else w.T).flat, strict=True)]
    flip = _flips(costs, terms)
    own = {n: [whole(c[flip[n]]), whole(c[1 - flip[n]])] for n, c in costs.items()}
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(("zero", "one"))
    exact = True
    for (a, b), term in terms.items():
        w00, w01, w10, w11 = (term[2 * (i ^ flip[a]) + (j ^ flip[b])] for i in (0, 1) for j in (0, 1))
        # w00 + (w10 - w00) a + (w11 - w10) b + between (1 - a) b
        own[a][1] += w10 - w00
        own[b][1] += w11 - w10
        between = w01 + w10 - w00 - w11
        exact &= between >= -ROUNDING
        if between > 0:
            graph.add_edge(a, b, capacity=between)
    for n, (zero, one) in own.items():
        graph.add_edge("zero", n, capacity=max(one - zero, 0))
        graph.add_edge(n, "one", capacity=max(zero - one, 0))
    _, (_, ones) = nx.minimum_cut(graph, "zero", "one", flow_func=boykov_kolmogorov)
    return {n: int(n in ones) ^ flip[n] for n in costs}, exact


def _flips(nodes: Mapping[int, Sequence[float]], terms: Mapping[tuple[int, int], list[int]]) -> dict[int, int]:
    """Nodes whose labels change their meaning (1), so that the strongest edges want equal labels: a union-find with parities."""
    above = {n: (n, 0) for n in nodes}

    def root(n: int) -> tuple[int, int]:
        path, parity = [], 0
        while above[n][0] != n:
            path.append(n)
            n = above[n][0]
        for m in reversed(path):
            parity ^= above[m][1]
            above[m] = (n, parity)
        return n, parity

    want = {pair: t[0] + t[3] - t[1] - t[2] for pair, t in terms.items()}
    for a, b in sorted((p for p, x in want.items() if x), key=lambda p: (-abs(want[p]), p)):
        (ra, fa), (rb, fb) = root(a), root(b)
        if ra != rb:
            above[max(ra, rb)] = (min(ra, rb), fa ^ fb ^ (want[a, b] > 0))
    return {n: root(n)[1] for n in nodes}

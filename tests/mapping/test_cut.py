"""The minimum cut against brute force."""

from __future__ import annotations

import numpy as np

from flaot.mapping.assign import energy
from flaot.mapping.cut import cut
from tests.mapping.test_assign import best, random_problem

SAME, DIFFERENT = np.eye(2), 1.0 - np.eye(2)


def test_minimum_cut_equals_brute_force_on_two_labels() -> None:
    for seed in range(350):
        problem = random_problem(seed, metric=True, labels=2)
        labels, exact = cut(problem.costs, problem.edges)
        assert exact and energy(problem, labels) == best(problem), seed


def test_minimum_cut_is_exact_where_edges_want_different_labels_without_an_odd_cycle() -> None:
    costs = {0: [0.0, 9.0], 1: [3.0, 0.0], 2: [2.0, 0.0]}
    assert cut(costs, [(0, 1, 4 * SAME), (1, 2, 4 * DIFFERENT), (0, 2, 4 * SAME)]) == ({0: 0, 1: 1, 2: 1}, True)
    assert not cut(costs, [(0, 1, 4 * SAME), (1, 2, 4 * DIFFERENT), (0, 2, 4 * DIFFERENT)])[1]


def test_ties_go_to_label_0() -> None:
    assert cut({1: (0.0, 0.0), 2: (3.0, 3.0)}, [(1, 2, 5 * DIFFERENT)]) == ({1: 0, 2: 0}, True)


def test_a_cheap_island_between_two_fixed_nodes_takes_their_label() -> None:
    fixed = (float("inf"), 0.0)
    edges = [(1, 2, 4 * DIFFERENT), (2, 3, 4 * DIFFERENT)]
    assert cut({1: fixed, 2: (0.0, 1.0), 3: fixed}, edges) == ({1: 1, 2: 1, 3: 1}, True)

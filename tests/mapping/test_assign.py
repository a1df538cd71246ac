from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from flaot.mapping.assign import Problem, energy, expand, solve

INF = float("inf")


def best(problem: Problem) -> float:
    nodes = list(problem.costs)
    choices = itertools.product(*(range(len(problem.costs[n])) for n in nodes))
    return min(energy(problem, dict(zip(nodes, labels, strict=True))) for labels in choices)


def random_problem(seed: int, labels: int, metric: bool) -> Problem:
    rng = random.Random(seed)
    count = rng.randint(2, 6 if labels > 2 else 8)

    def costs() -> list[float]:
        forbidden = rng.randrange(labels) if rng.random() < 0.3 else -1
        return [INF if i == forbidden else rng.randint(0, 20) / 2 for i in range(labels)]

    def edge() -> np.ndarray:
        if metric:
            return (1.0 - np.eye(labels)) * rng.randint(0, 12) / 2
        return np.array([[rng.choice([0.0, 1.0, 2.5, 7.0]) for _ in range(labels)] for _ in range(labels)])

    pairs = [rng.sample(range(count), 2) for _ in range(rng.randint(1, 2 * count))]
    return Problem({n: costs() for n in range(count)}, [(a, b, edge()) for a, b in pairs])


@pytest.mark.parametrize("labels", [2, 3, 4])
def test_equals_brute_force_on_random_graphs(labels: int) -> None:
    for seed in range(350):
        problem = random_problem(seed, labels, metric=seed % 2 == 0)
        found = solve(problem)
        assert found.exact
        assert found.energy == pytest.approx(energy(problem, found.labels), abs=0) == pytest.approx(best(problem), abs=1e-9)


def test_two_labels_by_minimum_cut_equal_brute_force() -> None:
    for seed in range(350):
        problem = random_problem(seed, 2, metric=True)
        found = solve(problem, table=1)
        assert found.exact and found.energy == pytest.approx(best(problem), abs=1e-9)


def test_expansion_moves_are_close_to_brute_force() -> None:
    ratios = []
    for seed in range(200):
        problem = random_problem(seed, 4, metric=True)
        ratios.append((energy(problem, expand(problem)) + 1) / (best(problem) + 1))
    assert min(ratios) > 1 - 1e-9 and max(ratios) < 2
    assert sum(r < 1 + 1e-9 for r in ratios) >= 190


def test_an_edge_outweighs_a_cheaper_label() -> None:
    apart = (1.0 - np.eye(2)) * 3
    problem = Problem({0: [0, 5], 1: [1, 0], 2: [0, 5]}, [(0, 1, apart), (1, 2, apart)])
    assert solve(problem).labels == {0: 0, 1: 0, 2: 0}


def test_labels_are_named_where_nodes_number_them_differently() -> None:
    problem = Problem({0: [9, 0], 1: [0, 9]}, [(0, 1, np.array([[4.0, 0], [0, 4]]))], {0: ["host", "npu"], 1: ["npu", "host"]})
    assert expand(problem) == {0: 1, 1: 0}


def test_wide_graphs_are_solved_too() -> None:
    """A grid of 20 by 20 is wider than the tables allow."""
    rng = random.Random(7)
    costs = {n: [rng.random(), rng.random()] for n in range(400)}
    apart = (1.0 - np.eye(2)) * 0.3
    edges = [(n, n + 1, apart) for n in range(400) if n % 20 != 19] + [(n, n + 20, apart) for n in range(380)]
    found = solve(Problem(costs, edges), table=500)
    single = [energy(Problem(costs, edges), dict.fromkeys(costs, label)) for label in (0, 1)]
    assert found.exact and found.energy < min(single)
    assert found.energy == pytest.approx(solve(Problem(costs, edges), table=2**22).energy)

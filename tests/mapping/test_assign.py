"""The labelling solver against brute force: all of it, without large tables, and expansion moves alone."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from flaot.mapping.assign import Problem, energy, expand, solve

INF = float("inf")


def best(problem: Problem) -> float:
    """The least energy of all labellings."""
    nodes = list(problem.costs)
    total = np.zeros([1] * len(nodes))
    for k, n in enumerate(nodes):
        total = total + np.asarray(problem.costs[n], float).reshape([-1 if i == k else 1 for i in range(len(nodes))])
    for a, b, w in problem.edges:
        i, j = nodes.index(a), nodes.index(b)
        table = w if i < j else w.T
        sizes = [table.shape[0] if k == min(i, j) else table.shape[1] if k == max(i, j) else 1 for k in range(len(nodes))]
        total = total + table.reshape(sizes)
    return float(total.min())


def random_problem(seed: int, metric: bool = False, labels: int = 0) -> Problem:
    """2 to 9 nodes of 2 to 4 labels, some forbidden, with cycles and parallel edges. Sums of halves are exact in binary."""
    rng = random.Random(seed)
    count = rng.randint(2, 9 if labels == 2 else 7)
    nodes = rng.sample(range(100), count)
    sizes = dict.fromkeys(nodes, labels or rng.randint(2, 4)) if metric else {n: labels or rng.randint(2, 4) for n in nodes}

    def costs(size: int) -> list[float]:
        forbidden = rng.randrange(size) if rng.random() < 0.2 else -1
        return [INF if i == forbidden else rng.randint(0, 20) / 2 for i in range(size)]

    def edge(a: int, b: int) -> np.ndarray:
        if metric:
            return (1.0 - np.eye(sizes[a])) * rng.randint(1, 12) / 2
        w = np.array([[rng.choice([0.0, 1.0, 2.5, 7.0]) for _ in range(sizes[b])] for _ in range(sizes[a])])
        if rng.random() < 0.2:
            w[rng.randrange(sizes[a]), rng.randrange(sizes[b])] = INF
        return w

    pairs = [rng.sample(nodes, 2) for _ in range(rng.randint(1, 2 * count))]
    return Problem({n: costs(sizes[n]) for n in nodes}, [(a, b, edge(a, b)) for a, b in pairs])


def test_equals_brute_force_on_1000_random_graphs() -> None:
    for seed in range(1000):
        problem = random_problem(seed, metric=seed % 2 == 0)
        found = solve(problem)
        assert found.exact and found.energy == energy(problem, found.labels) == best(problem), seed


def test_equals_brute_force_without_large_tables() -> None:
    """With small tables the remainder is reduced and cut; what is called exact is exact, and nothing is below the best."""
    exact = 0
    for seed in range(250):
        problem = random_problem(seed, metric=seed % 2 == 0)
        found, lowest = solve(problem, table=8), best(problem)
        exact += found.exact
        assert found.energy == lowest if found.exact else found.energy >= lowest, seed
    assert 125 < exact < 250


def test_expansion_moves_are_close_to_brute_force_on_metric_costs() -> None:
    ratios = []
    for seed in range(200):
        problem = random_problem(seed, metric=True)
        found, lowest = energy(problem, expand(problem)), best(problem)
        assert lowest <= found <= 2 * lowest, seed
        ratios.append(found == lowest)
    assert sum(ratios) >= 190


def test_expansion_moves_are_never_below_brute_force_on_any_costs() -> None:
    for seed in range(100):
        problem = random_problem(seed)
        assert energy(problem, expand(problem)) >= best(problem), seed


def test_ties_go_to_the_lowest_label() -> None:
    apart = 1.0 - np.eye(2)
    tied = Problem({2: [1.0, 1.0], 0: [3.0, 3.0]}, [(2, 0, apart)])
    assert solve(tied).labels == {2: 0, 0: 0} == expand(tied)


def test_an_edge_outweighs_a_cheaper_label() -> None:
    apart = (1.0 - np.eye(2)) * 3
    problem = Problem({0: [0, 5], 1: [1, 0], 2: [0, 5]}, [(0, 1, apart), (1, 2, apart)])
    assert solve(problem).labels == {0: 0, 1: 0, 2: 0}


def test_what_nothing_allows_costs_infinitely_much() -> None:
    assert solve(Problem({0: [INF, INF]})).energy == INF
    assert solve(Problem({})).labels == {}


def test_labels_are_named_where_nodes_number_them_differently() -> None:
    problem = Problem({0: [9, 0], 1: [0, 9]}, [(0, 1, np.array([[4.0, 0], [0, 4]]))], {0: ["host", "npu"], 1: ["npu", "host"]})
    assert expand(problem) == {0: 1, 1: 0}


def grid(side: int, labels: int, weight: float) -> Problem:
    rng = random.Random(7)
    count = side * side
    apart = (1.0 - np.eye(labels)) * weight
    right = [(n, n + 1, apart) for n in range(count) if n % side != side - 1]
    down = [(n, n + side, apart) for n in range(count - side)]
    return Problem({n: [rng.random() for _ in range(labels)] for n in range(count)}, right + down)


def test_a_grid_too_wide_for_tables_is_cut_exactly() -> None:
    problem = grid(14, 2, 0.3)
    found, whole = solve(problem, table=500), solve(problem, table=2**22)
    assert found.exact and whole.exact and found.energy == pytest.approx(whole.energy)
    assert found.energy < min(energy(problem, dict.fromkeys(problem.costs, label)) for label in (0, 1))


def test_a_grid_of_more_labels_is_nearly_exact() -> None:
    problem = grid(7, 3, 0.3)
    found, whole = solve(problem, table=100), solve(problem)
    assert whole.exact and not found.exact and whole.energy <= found.energy <= 1.02 * whole.energy


def large(kind: str) -> Problem:
    """16,000 nodes with 4 labels each; every node is fed by the one before, and from farther up."""
    rng = random.Random(3)
    count = 16_000
    apart = 1.0 - np.eye(4)
    edges = [(n, n + 1, apart * rng.random()) for n in range(count - 1)]
    if kind == "ladder":
        edges += [(n, n + 3, apart * rng.random()) for n in range(0, count - 3, 2)]
    if kind == "star":
        edges = [(0, n, apart * rng.random()) for n in range(1, count)]
    return Problem({n: [rng.random() for _ in range(4)] for n in range(count)}, edges)


@pytest.mark.parametrize("kind", ["chain", "ladder", "star"])
def test_16_000_nodes_are_solved_exactly_in_seconds(kind: str) -> None:
    problem = large(kind)
    began = time.perf_counter()
    found = solve(problem)
    seconds = time.perf_counter() - began
    print(f"{kind}: {seconds:.2f} s, {seconds / 16_000 * 1e6:.0f} us per node")
    assert found.exact and seconds < 30


def test_large_problems_lose_no_energy_to_shuffled_nodes() -> None:
    problem = large("ladder")
    order = list(problem.costs)
    random.Random(5).shuffle(order)
    shuffled = Problem({n: problem.costs[n] for n in order}, list(reversed(problem.edges)))
    assert solve(shuffled).energy == pytest.approx(solve(problem).energy, rel=1e-9)

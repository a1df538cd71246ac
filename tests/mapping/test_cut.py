"""The two-label assignment against brute force."""

import itertools
import random

from flaot.mapping.cut import assign


def energy(labels, unary, pairs):
    return sum(unary[n][labels[n]] for n in unary) + sum(w for a, b, w, same in pairs if (labels[a] == labels[b]) != same)


def brute_force(unary, pairs):
    names = list(unary)
    return min(energy(dict(zip(names, bits, strict=True)), unary, pairs) for bits in itertools.product((0, 1), repeat=len(names)))


def random_problem(rng, same_only):
    n = rng.randint(1, 9)
    unary = {i: (float(rng.randint(0, 9)), float(rng.randint(0, 9))) for i in range(n)}
    for i in range(n):
        if rng.random() < 0.2:
            unary[i] = rng.choice([(float("inf"), 0.0), (0.0, float("inf"))])
    side = {i: rng.randint(0, 1) for i in range(n)}
    pairs = []
    for _ in range(rng.randint(0, 2 * n)):
        a, b = rng.randrange(n), rng.randrange(n)
        if a != b:
            pairs.append((a, b, float(rng.randint(1, 9)), same_only or side[a] == side[b]))
    return unary, pairs


def test_equals_brute_force_on_1000_random_graphs():
    rng = random.Random(7)
    for trial in range(1000):
        unary, pairs = random_problem(rng, same_only=trial % 2 == 0)
        assert energy(assign(unary, pairs), unary, pairs) == brute_force(unary, pairs)


def test_ties_go_to_label_zero():
    assert assign({1: (0.0, 0.0), 2: (3.0, 3.0)}, [(1, 2, 5.0, True)]) == {1: 0, 2: 0}


def test_a_cheap_island_between_two_fixed_nodes_takes_their_label():
    fixed = (float("inf"), 0.0)
    unary = {1: fixed, 2: (0.0, 1.0), 3: fixed}
    assert assign(unary, [(1, 2, 4.0, True), (2, 3, 4.0, True)])[2] == 1

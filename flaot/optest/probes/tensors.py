"""Tensors: ranks and storage orders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flaot.hcd.rules import active_units, kind_of
from flaot.ir.graph import Place
from flaot.ir.op import OPS
from flaot.ir.ops.pool import MaxPool
from flaot.mapping.orders import ChipLayouts
from flaot.optest.probes.bench import Bench, Operand
from flaot.optest.probes.finding import LIES, Finding, holds, unmeasured
from flaot.optest.probes.site import SUMS, Site, site
from flaot.optest.probes.values import decode, encode

NO_LIMIT = 8
"""Ranks that plans hold."""
IMAGE = (2, 3, 4, 5)
POOL = MaxPool((2, 2), (1, 1), (0, 0, 0, 0), (1, 1), False)


def layouts(bench: Bench) -> Iterator[Finding]:
    """A window operator on images in each order that a unit lists."""
    hcd, chip = bench.hcd, ChipLayouts(bench.hcd)
    for name, unit in active_units(hcd.full).items():
        declared = chip.by_unit[name]
        if kind_of(name, unit) == "attention" or not unit.supported_layouts or not declared:
            continue
        key, origin, shown = f"compute_units.{name}.supported_layouts", chip.origin(name), ", ".join(declared)
        where = site(hcd, ("MaxPool",), unit=name)
        if where is None:
            yield unmeasured("layouts", key, origin, shown, "it runs no MaxPool, which would show them")
            continue
        wrong = {n: _pooled(bench, where.place, chip.order(n, 4)) for n in declared}
        kept = [n for n, problem in wrong.items() if not problem]
        if len(kept) == len(declared):
            yield holds("layouts", key, origin, shown)
        elif not kept:
            yield unmeasured("layouts", key, origin, shown, f"none works: {wrong[declared[0]]}")
        else:
            said = "; ".join(f"{n} does not work: {problem}" for n, problem in wrong.items() if problem)
            yield Finding("layouts", key, origin, shown, ", ".join(kept), LIES, said, f"state supported_layouts: [{', '.join(kept)}]")


def _pooled(bench: Bench, place: Place, order: tuple[int, ...]) -> str:
    """What is wrong with the largest elements of the windows of an image in this storage order, or ""."""
    dtype = place.dtype
    x = (np.arange(np.prod(IMAGE)) * 7 % 120).astype(np.float64).reshape(IMAGE)
    want = np.maximum.reduce([x[:, :, i : i + 3, j : j + 4] for i in (0, 1) for j in (0, 1)])
    given = Operand(IMAGE, dtype, 0, encode(np.ascontiguousarray(x.transpose(order)), dtype), order)
    result = Operand(want.shape, dtype, bench.room(given.nbytes), layout=order)
    answer = bench.run_operator(POOL, [given], result, place)
    if answer.problem:
        return answer.problem
    got = decode(answer.arrays[0], dtype)
    return "" if np.array_equal(got, want.transpose(order)) else "elements are wrong"


def rank(bench: Bench) -> Iterator[Finding]:
    """A sum of tensors whose axes cannot be joined, of as many as are declared."""
    hcd, declared = bench.hcd, bench.chip.max_rank or NO_LIMIT
    key, origin, where = "tensor.max_rank", hcd.origin("tensor", "max_rank"), site(hcd, SUMS)
    if where is None or declared < 2:
        yield unmeasured("rank", key, origin, declared, "no unit adds or multiplies")
        return
    first = _stretched(bench, where, declared)
    if not first:
        yield holds("rank", key, origin, declared)
        return
    measured = next((r for r in range(declared - 1, 0, -1) if not _stretched(bench, where, r)), 0)
    if measured == 0:
        yield unmeasured("rank", key, origin, declared, f"no rank works: {first}")
        return
    said = f"tensors of rank {declared} fail: {first}"
    yield Finding("rank", key, origin, str(declared), str(measured), LIES, said, f"state max_rank: {measured}")


def _stretched(bench: Bench, where: Site, rank: int) -> str:
    """What is wrong with a sum in which every second axis of one operand is repeated, or ""."""
    dtype = where.place.dtype
    layout = ChipLayouts(bench.hcd)
    order = layout.order(layout.every[0], rank) if rank == 4 else tuple(range(rank))
    stored = tuple(2 + i % 2 for i in range(rank))
    short = tuple(d if i % 2 else 1 for i, d in enumerate(stored))
    x = (np.arange(np.prod(stored)) % 100).astype(np.float64).reshape(stored)
    y = (np.arange(np.prod(short)) + 1).astype(np.float64).reshape(short)
    back = tuple(order.index(a) for a in range(rank))
    logical = tuple(stored[a] for a in back), tuple(short[a] for a in back)
    size = bench.room(x.size * dtype.size)
    inputs = [Operand(dims, dtype, i * size, encode(v, dtype), order) for i, (dims, v) in enumerate(zip(logical, (x, y), strict=True))]
    answer = bench.run_operator(OPS[where.operator](), inputs, Operand(logical[0], dtype, 2 * size, layout=order), where.place)
    if answer.problem:
        return answer.problem
    want = {"Add": x + y, "Sub": x - y, "Mul": x * y}[where.operator]
    return "" if np.array_equal(decode(answer.arrays[0], dtype), want) else "elements are wrong"

"""How a chip computes: element types, rounding, denormal numbers, accumulators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flaot.ir.graph import Graph
from flaot.ir.op import OPS
from flaot.ir.ops.matmul import MatMul
from flaot.ir.types import DType, Rounding, TensorType
from flaot.mapping.accumulator import stated
from flaot.mapping.capability import SIGNIFICAND
from flaot.optest.probes.bench import Answer, Bench, Operand
from flaot.optest.probes.finding import LIES, Finding, holds, unmeasured
from flaot.optest.probes.site import SUMS, Site, site, sites
from flaot.optest.probes.values import decode, encode, rounded
from flaot.targets.chip import rounding_of

RANGE = {DType.float16: 12, DType.bfloat16: 100, DType.float32: 100}
"""Powers of two that the type holds on either side of 1."""
HALVES = (DType.float16, DType.bfloat16)
TERMS = 4096
"""Ones whose sum float16, added to one by one, loses: it stays at 2048."""


def add(bench: Bench, where: Site, a: np.ndarray, b: np.ndarray) -> Answer:
    """a + b of float64 numbers that the element type holds, with whichever of the operators there is; the answer as float64."""
    dtype = where.place.dtype
    if where.operator == "Sub":
        b = -b
    size = bench.room(a.size * dtype.size)
    inputs = [Operand(x.shape, dtype, i * size, encode(x, dtype)) for i, x in enumerate((a, b))]
    answer = bench.run_operator(OPS[where.operator](), inputs, Operand(a.shape, dtype, 2 * size), where.place)
    return Answer(tuple(decode(y, dtype) for y in answer.arrays), answer.problem)


def doubled(bench: Bench, where: Site, x: np.ndarray) -> Answer:
    """2 x."""
    return add(bench, where, x, np.full(x.shape, 2.0) if where.operator == "Mul" else x)


def element_types(bench: Bench) -> Iterator[Finding]:
    """Each floating-point type with numbers that no other one holds."""
    hcd = bench.hcd
    origin, key = hcd.origin("tensor", "supported_dtypes"), "tensor.supported_dtypes"
    computed = {s.place.dtype: s for s in reversed(list(sites(hcd, SUMS)))}
    for name in (d.removeprefix("torch.") for d in (hcd.full.tensor.supported_dtypes if hcd.full.tensor is not None else None) or ()):
        dtype = DType[name]
        if dtype not in SIGNIFICAND or dtype is DType.float64:
            continue
        if dtype not in computed:
            yield unmeasured("element types", key, origin, name, "no unit adds or multiplies in it")
            continue
        yield _element_type(bench, computed[dtype], key, origin)


def _element_type(bench: Bench, where: Site, key: str, origin: str) -> Finding:
    dtype = where.place.dtype
    fine = 1 + 2.0 ** -np.arange(1, SIGNIFICAND[dtype])
    far = 2.0 ** np.array([RANGE[dtype], RANGE[dtype] - 3, -RANGE[dtype], 3 - RANGE[dtype]])
    x = np.concatenate([[1.0, -3.0], fine, far])
    answer = doubled(bench, where, x)
    if answer.problem:
        return Finding("element types", key, origin, dtype.name, "nothing", LIES, answer.problem, f"remove {dtype.name}")
    got, want = answer.arrays[0], 2 * x
    if np.array_equal(got, want):
        return holds("element types", key, origin, dtype.name)
    measured = _disguise(dtype, x, got)
    at = int(np.argmax(got != want))
    said = f"twice {x[at]:.8g} is {got[at]:.8g}, {dtype.name} holds {want[at]:.8g}"
    hint = f"remove {dtype.name} from supported_dtypes, or have the chip compute it"
    return Finding("element types", key, origin, dtype.name, measured, LIES, said, hint)


def _disguise(dtype: DType, x: np.ndarray, got: np.ndarray) -> str:
    """The type that a chip computes in which says it computes in another."""
    ranges, bits = got[-4:] == 2 * x[-4:], got[2:-4] == 2 * x[2:-4]
    if dtype is not DType.float16:
        with np.errstate(over="ignore", invalid="ignore"):
            taken = decode((encode(x, dtype).view(np.float16) * np.float16(2)).view(np.uint16), dtype) if dtype.size == 2 else x
        if bits.all() and not ranges.any() or np.array_equal(taken, got, equal_nan=True):
            return "float16"
    return "bfloat16" if ranges.all() and bits[:7].all() else "other numbers"


def rounding(bench: Bench) -> Iterator[Finding]:
    """Sums that lie halfway between two numbers of the type, or elsewhere between them, of both signs."""
    hcd = bench.hcd
    origin, declared = hcd.origin("numerics", "rounding"), rounding_of(hcd)
    where = next((s for s in sites(hcd, SUMS[:2]) if s.place.dtype in HALVES), None)
    if where is None:
        yield unmeasured("rounding", "numerics.rounding", origin, declared.name, "no unit adds in float16 or bfloat16")
        return
    base = 2.0 ** SIGNIFICAND[where.place.dtype]
    a = np.array([s * (base + k) for s in (1, -1) for k in (0, 2, 4, 6) for _ in range(3)])
    b = np.array([s * p for s in (1, -1) for _ in range(4) for p in (0.5, 1.0, 1.5)])
    answer = add(bench, where, a, b)
    if answer.problem:
        yield unmeasured("rounding", "numerics.rounding", origin, declared.name, answer.problem)
        return
    modes = {m: np.array([rounded(v, where.place.dtype, m) for v in a + b]) for m in Rounding}
    got, want = answer.arrays[0], modes[declared]
    if np.array_equal(got, want):
        yield holds("rounding", "numerics.rounding", origin, declared.name)
        return
    measured = next((m.name for m, v in modes.items() if np.array_equal(got, v)), "none of the five")
    at = int(np.argmax(got != want))
    said = f"{a[at]:g} + {b[at]:g} is {got[at]:g} in {where.place.dtype.name}, {declared.name} gives {want[at]:g}"
    hint = f"state numerics.rounding: {measured}" if measured in Rounding.__members__ else "have the chip round as declared"
    yield Finding("rounding", "numerics.rounding", origin, declared.name, measured, LIES, said, hint)


def denormals(bench: Bench) -> Iterator[Finding]:
    """The smallest numbers of float16, which units may replace by zero."""
    hcd = bench.hcd
    declared = "flush" if bench.chip.flush_denormals else "keep"
    origin, where = hcd.origin("numerics", "denormals"), site(hcd, SUMS, DType.float16)
    if where is None:
        yield unmeasured("denormals", "numerics.denormals", origin, declared, "no unit adds or multiplies in float16")
        return
    x = np.array([1.0, 3 * 2.0**-24, -5 * 2.0**-24, 2.0**-20])
    answer = doubled(bench, where, x)
    if answer.problem:
        yield unmeasured("denormals", "numerics.denormals", origin, declared, answer.problem)
        return
    small = answer.arrays[0][1:]
    measured = "keep" if np.array_equal(small, 2 * x[1:]) else "flush" if not small.any() else "neither"
    if measured == declared:
        yield holds("denormals", "numerics.denormals", origin, declared)
        return
    hint = f"state numerics.denormals: {measured}" if measured != "neither" else "have the chip do either"
    said = f"twice {x[1]:.4g} is {small[0]:.4g}"
    yield Finding("denormals", "numerics.denormals", origin, declared, measured, LIES, said, hint)


def accumulators(bench: Bench) -> Iterator[Finding]:
    """A sum of ones that float16 cannot hold on the way."""
    hcd = bench.hcd
    where = site(hcd, ("MatMul",), DType.float16)
    if where is None:
        return
    graph = Graph()
    factors = [graph.add_input(n, TensorType(DType.float32, s)) for n, s in (("a", (1, TERMS)), ("b", (TERMS, 1)))]
    node = graph.add_node(MatMul(), factors)
    node.place = where.place
    declared, path = stated(hcd, node, where.place)
    key = ".".join(map(str, path)) if path else "numerics.float16_accumulator"
    origin = hcd.origin(*path) if path else hcd.origin("numerics", "float16_accumulator")
    dtype, ones = DType.float16, np.ones(TERMS)
    size = bench.room(TERMS * dtype.size)
    inputs = [Operand((1, TERMS), dtype, 0, encode(ones, dtype)), Operand((TERMS, 1), dtype, size, encode(ones, dtype))]
    answer = bench.run_operator(MatMul(), inputs, Operand((1, 1), dtype, 2 * size), where.place)
    if answer.problem:
        yield unmeasured("accumulators", key, origin, declared, answer.problem)
        return
    total = float(answer.arrays[0].reshape(-1)[0])
    measured = {4096.0: "float32", 2048.0: "float16"}.get(total, "something else")
    if measured == declared:
        yield holds("accumulators", key, origin, declared)
        return
    said = f"the sum of {TERMS} ones is {total:g}"
    yield Finding("accumulators", key, origin, declared, measured, LIES, said, f"state {key}: {measured}")

"""Memory: addresses and size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from flaot.ir.op import OPS
from flaot.ir.types import DType
from flaot.optest.probes.asked import LARGEST
from flaot.optest.probes.bench import Bench, Operand
from flaot.optest.probes.finding import LIES, Finding, holds, unmeasured
from flaot.optest.probes.site import SUMS, Site, site
from flaot.optest.probes.values import decode, encode

BLOCKS = 16
"""Transfers that fill on-chip memory."""


def alignment(bench: Bench) -> Iterator[Finding]:
    """Tensors at odd multiples of what is declared. Leaves the bench at the alignment that works."""
    hcd, declared = bench.hcd, bench.chip.alignment
    key, origin = "constraints.memory_alignment_bytes", hcd.origin("constraints", "memory_alignment_bytes")
    where = site(hcd, SUMS)
    if where is None:
        yield unmeasured("alignment", key, origin, declared, "no unit adds or multiplies")
        return
    bench.step = declared
    first = _at_multiples(bench, where)
    if not first:
        yield holds("alignment", key, origin, declared)
        return
    while bench.step < LARGEST:
        bench.step *= 2
        if not _at_multiples(bench, where):
            break
    else:
        bench.broken = True
        unit, what = where.place.unit, f"{where.operator} in {where.place.dtype.name}"
        hint = "the other probes need it"
        origin = hcd.origin("compute_units", unit)
        yield Finding("alignment", f"compute_units.{unit}", origin, what, "wrong at every alignment", LIES, first, hint)
        return
    step = bench.step
    said = f"tensors at odd multiples of {declared} fail: {first}"
    yield Finding("alignment", key, origin, str(declared), str(step), LIES, said, f"state memory_alignment_bytes: {step}")


def _at_multiples(bench: Bench, where: Site) -> str:
    """What is wrong with a sum of tensors at 1, 2 and 3 times the bench's alignment, or ""."""
    dtype, step = where.place.dtype, bench.step
    count = min(step // dtype.size, 100)
    x, y = np.arange(1, count + 1, dtype=np.float64), np.full(count, 2.0)
    inputs = [Operand((count,), dtype, (i + 1) * step, encode(v, dtype)) for i, v in enumerate((x, y))]
    answer = bench.run_operator(OPS[where.operator](), inputs, Operand((count,), dtype, 3 * step), where.place)
    if answer.problem:
        return answer.problem
    want = {"Add": x + y, "Sub": x - y, "Mul": x * y}[where.operator]
    got = decode(answer.arrays[0], dtype)
    return "" if np.array_equal(got, want) else f"element {int(np.argmax(got != want))} is wrong"


def on_chip(bench: Bench) -> Iterator[Finding]:
    """On-chip memory written from end to end, and read back after that."""
    hcd, size = bench.hcd, bench.chip.machine.on_chip
    key, origin = "memory.on_chip_cache.size_kb", hcd.origin("memory", "on_chip_cache", "size_kb")
    first = _holds(bench, size)
    if not first:
        yield holds("on-chip memory", key, origin, size // 1024)
        return
    low, high = 0, size // 1024
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if not _holds(bench, middle * 1024) else (low, middle)
    if low == 0:
        yield unmeasured("on-chip memory", key, origin, size // 1024, f"it holds nothing: {first}")
        return
    said = f"{size // 1024} kB are not there: {first}"
    yield Finding("on-chip memory", key, origin, str(size // 1024), str(low), LIES, said, f"state on_chip_cache.size_kb: {low}")


def _holds(bench: Bench, size: int) -> str:
    """What is wrong with on-chip memory of so many bytes, or ""."""
    block = size // BLOCKS // bench.step * bench.step
    if block == 0:
        return f"{size} bytes are less than {BLOCKS} aligned blocks"
    dtype = DType.int8 if DType.int8 in bench.chip.dtypes else bench.chip.dtypes[0]
    operands = []
    for i in range(BLOCKS):
        count = (block if i < BLOCKS - 1 else size - block * i) // dtype.size
        data = np.random.default_rng(i).integers(0, 100, count, np.int8)
        operands.append(Operand((count,), dtype, block * i, data.astype(dtype.numpy)))
    answer = bench.run(operands, (), [replace(o, data=None) for o in operands], on_chip=size)
    if answer.problem:
        return answer.problem
    wrong = next((o for o, got in zip(operands, answer.arrays, strict=True) if not np.array_equal(np.asarray(o.data), got)), None)
    return "" if wrong is None else f"of what was written from 0x{wrong.offset:x} on something is gone"



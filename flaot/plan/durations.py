"""How long a chip takes for one step, from the rates a plan states. Time is whole picoseconds, so that sums are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flaot.plan.program import Machine, Opcode, Space, Step, View


def of_cycles(machine: Machine, cycles: int) -> int:
    """Picoseconds of so many cycles."""
    return -(-cycles * 10**9 // machine.clock_khz)


def of_amount(machine: Machine, amount: int, rate: int) -> int:
    """Picoseconds that ``amount`` bytes or operations take at ``rate`` per 1000 cycles."""
    return -(-amount * 10**12 // (rate * machine.clock_khz))


def touched(view: View) -> int:
    """Bytes of the elements a view shows, repeated ones once."""
    return view.dtype.size * math.prod(d for d, s in zip(view.dims, view.strides, strict=True) if s)


def on_chip_bytes(step: Step) -> tuple[list[int], int]:
    """Bytes a call reads from on-chip memory, operand by operand, and writes to it."""
    reads = {v: touched(v) for v in step.inputs if v.buffer.space is Space.on_chip}
    return list(reads.values()), sum(touched(v) for v in step.outputs if v.buffer.space is Space.on_chip)


def off_chip_bytes(step: Step) -> int:
    """Bytes a step moves to or from the chip's own memory."""
    return sum(touched(v) for v in (*step.inputs, *step.outputs) if v.buffer.space in (Space.device, Space.constant))


def unit_time(machine: Machine, unit: str, work: int, reads: Sequence[int], hold: int = 0) -> int:
    """Picoseconds a compute unit is busy with a launch: the longer of its operations and of reading its largest operand, each of which has
    a port of its own to on-chip memory, after what starting it takes."""
    u = next(u for u in machine.units if u.name == unit)
    busy = max(of_amount(machine, work, u.rate), of_amount(machine, max(reads, default=0), machine.on_chip_rate))
    return max(of_cycles(machine, u.launch_cycles) + busy, of_cycles(machine, hold))


def write_time(machine: Machine, nbytes: int) -> int:
    """Picoseconds that a unit's port for results is taken by so many bytes."""
    return of_amount(machine, nbytes, machine.on_chip_rate)


def moves(views: Sequence[View], dimensions: int) -> int:
    """DMA transfers that a move between strided views of the same dims takes when one has so many strided axes."""
    axes = sorted((i for i, d in enumerate(views[0].dims) if d != 1), key=lambda i: [-abs(v.strides[i]) for v in views])
    merged: list[list[int]] = []
    for i in axes:
        d, strides = views[0].dims[i], [v.strides[i] for v in views]
        if merged and merged[-1][1:] == [s * d for s in strides]:
            merged[-1] = [merged[-1][0] * d, *strides]
        else:
            merged.append([d, *strides])
    runs = [m[0] for m in merged]
    if merged and any(s != 1 for s in merged[-1][1:]):
        runs.append(1)
    return math.prod(runs[: max(len(runs) - dimensions, 0)])


def dma_setup(machine: Machine, step: Step) -> int:
    """Picoseconds before a DMA step moves its first byte."""
    return setup_time(machine, moves((*step.inputs, *step.outputs), machine.dimensions) if step.opcode is Opcode.dma else 1)


def setup_time(machine: Machine, transfers: int = 1) -> int:
    """Picoseconds before a move of so many transfers moves its first byte."""
    return of_cycles(machine, machine.setup_cycles * transfers + machine.latency_cycles)


def split_time(machine: Machine, transfers: int) -> int:
    """Picoseconds of setups that a move of so many transfers takes beyond one."""
    return setup_time(machine, transfers) - setup_time(machine)


def dma_time(machine: Machine, nbytes: int) -> int:
    """Picoseconds the bus of the chip's memory is taken by so many bytes."""
    return of_amount(machine, nbytes, machine.off_chip_rate)


def link_bytes(machine: Machine, step: Step) -> int:
    """Bytes that a transfer between host and chip moves: none where both see the same memory."""
    return 0 if machine.zero_copy else touched(step.inputs[0])


def link_time(machine: Machine, nbytes: int) -> tuple[int, int]:
    """Picoseconds before a transfer between host and chip moves its first byte, and while it moves so many."""
    if machine.zero_copy:
        return 0, 0
    return of_cycles(machine, machine.link_setup_cycles), of_amount(machine, nbytes, machine.link_rate)

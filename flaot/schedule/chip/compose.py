"""A program of whole-tensor steps to commands for its chips: residency, tiles, prefetch, places, queues."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flaot.errors import DoesNotFitError, UnsupportedError, UsageError
from flaot.mapping.decisions import Pathed
from flaot.plan.fields import MAX_DEPTH
from flaot.plan.program import Chip, Named, Program
from flaot.schedule.assign import assign_memory
from flaot.schedule.chip.commands import assign_commands
from flaot.schedule.chip.estimate import Estimate, estimates, operations
from flaot.schedule.chip.notes import notes
from flaot.schedule.chip.pieces import in_copy, operands
from flaot.schedule.chip.prefetch import Placed, place
from flaot.schedule.chip.residency import Residency, Settler
from flaot.schedule.chip.sequence import Item, Sequencer, Tape
from flaot.targets.devices import HostSpeed

LIMITS = (1.0, 0.94, 0.88, 0.8, 0.7, 0.6, 0.45, 0.3)
"""Parts of on-chip memory that residents and tiles may fill, tried until everything finds a place."""


@dataclass(frozen=True)
class ChipOptions:
    """``pool`` limits on-chip memory (bytes), ``depth`` the commands each queue holds; without ``asynchronous`` nothing overlaps.
    ``depth_first`` allows chains of steps to be run in stripes, ``few`` prefers few steps to little time; ``memory_effort`` is that of
    :func:`flaot.schedule.assign.assign_memory`, ``host`` what the host's own steps are taken to cost. Raises UsageError for a depth that
    plans do not hold."""

    pool: int | None = None
    depth: int | None = None
    asynchronous: bool = True
    depth_first: bool = False
    few: bool = False
    memory_effort: int | None = None
    host: HostSpeed = HostSpeed()

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth not in range(1, MAX_DEPTH + 1):
            raise UsageError(f"queue depth {self.depth}; allowed are 1 to {MAX_DEPTH}")


    def limiting(self, chip: Chip) -> str:
        """The option that limits the on-chip memory of a chip, "" where its size does."""
        return f"--memory-pool-size {self.pool / 1024:g}" if self.pool is not None and chip.machine.on_chip == self.pool else ""


PLAIN = ChipOptions()


@dataclass
class Composed:
    """What was decided: residency by device, on-chip memory used and live at once at most (bytes), a row for every path chosen, and an
    estimate for every chip."""

    residencies: dict[int, Residency] = field(default_factory=dict)
    placed: dict[int, Placed] = field(default_factory=dict)
    paths: list[Pathed] = field(default_factory=list)
    estimates: list[Estimate] = field(default_factory=list)


def compose(program: Program, options: ChipOptions) -> Composed:
    """Rewrites the program's steps and assigns all memory. Raises DoesNotFitError for steps whose operands do not fit on chip in
    any way."""
    _limit(program, options)
    original = replace(program, steps=list(program.steps), names=list(program.names))
    composed = _compose(program, options, depth_first=False)
    if options.depth_first:
        other = replace(original, chips=[replace(c) for c in program.chips])
        striped = _compose(other, options, depth_first=True)
        if _cost(striped) < _cost(composed):
            program.steps, program.names, program.chips, composed = other.steps, other.names, other.chips, striped
            program.arena, program.lower_bound = other.arena, other.lower_bound
        else:
            assign_memory(program, options.memory_effort)
    return composed


def _cost(composed: Composed) -> tuple[float, int]:
    return sum(e.time_us for e in composed.estimates), sum(e.traffic_bytes for e in composed.estimates)


def _compose(program: Program, options: ChipOptions, depth_first: bool) -> Composed:
    tight: DoesNotFitError | None = None
    for share in LIMITS:
        try:
            made = _try(program, share, depth_first, options)
        except DoesNotFitError as e:
            tight = e
            break
        if made is not None:
            composed, tape, slots = made
            composed.paths = notes(program.steps, program, composed.residencies)
            work = operations(program.steps)
            _finish(program, tape, slots, options)
            composed.estimates = estimates(program, {d: p.lower_bound for d, p in composed.placed.items()}, work)
            return composed
    if tight is not None:
        raise tight
    chip = program.chips[0]
    raise UnsupportedError(
        f"no arrangement of on-chip memory fits the {chip.machine.on_chip} bytes of {chip.name}", origin=options.limiting(chip),
        hint="allow more on-chip memory, or send nodes to another device with --route NODE=DEVICE",
    )


def _limit(program: Program, options: ChipOptions) -> None:
    for chip in program.chips:
        m = chip.machine
        pool = m.on_chip if options.pool is None else min(m.on_chip, options.pool)
        chip.machine = replace(m, on_chip=pool)
        if options.depth is not None:
            chip.machine = replace(chip.machine, depth=options.depth, units=tuple(replace(u, depth=0) for u in m.units))


def _try(program: Program, share: float, depth_first: bool, options: ChipOptions) -> tuple[Composed, Tape, list[int]] | None:
    composed = Composed()
    for device, chip in enumerate(program.chips, 1):
        limit = int(chip.machine.on_chip * share) // chip.alignment * chip.alignment
        settler = Settler(program, device, chip.machine, chip.alignment, limit, options.few, options.limiting(chip))
        composed.residencies[device] = settler.settle(depth_first)
    tape = Sequencer(program, composed.residencies).run()
    slots = [load.before for load in tape.loads]
    for device, chip in enumerate(program.chips, 1):
        whole = chip.machine.on_chip // chip.alignment * chip.alignment
        placed = place(tape, device, whole, chip.alignment)
        if placed is None:
            return None
        composed.placed[device] = placed
        slots = [max(a, b) if load.item.step.device != device else b for a, b, load in zip(slots, placed.slots, tape.loads, strict=True)]
        chip.machine = replace(chip.machine, on_chip_peak=placed.peak)
    return composed, tape, slots


def _finish(program: Program, tape: Tape, slots: list[int], options: ChipOptions) -> None:
    order = _merged(tape, slots)
    position = {id(item): i for i, item in enumerate(order)}
    _rename(program, tape, position)
    works = [i.work if i.step.device else _host_work(i, options.host) for i in order]
    program.steps = [i.step for i in order]
    assign_memory(program, options.memory_effort)
    program.steps = assign_commands(program.steps, works, program.chips, options.asynchronous)


def _merged(tape: Tape, slots: list[int]) -> list[Item]:
    before: dict[int, list[Item]] = {}
    for load, slot in zip(tape.loads, slots, strict=True):
        before.setdefault(slot, []).append(load.item)
    order: list[Item] = []
    for i, item in enumerate(tape.items):
        order += [*before.get(i, ()), item]
    return order


def _host_work(item: Item, host: HostSpeed) -> int:
    moved = sum(v.elements * v.dtype.size for v in operands(item.step))
    return round(1000 * (item.step.work / host.flops + moved / host.bytes))


def _rename(program: Program, tape: Tape, position: dict[int, int]) -> None:
    """Names follow their values on chip, where they are whole, and hold from the last step of what makes them on."""
    names = []
    for n in program.names:
        inside = tape.copies.get(id(n.view.buffer))
        view = n.view if inside is None else in_copy(n.view, inside)
        if id(n.view.buffer) not in tape.inner:
            names.append(Named(n.name, view, position[id(tape.items[tape.ends[n.step]])]))
    program.names = names

"""A program of whole-tensor steps to commands for its chips: residency, tiles, prefetch, places, queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from flaot.errors import DoesNotFitError, UnsupportedError, UsageError
from flaot.mapping.decisions import Pathed
from flaot.plan.fields import MAX_DEPTH
from flaot.plan.program import Chip, Named, Program, Step
from flaot.schedule.assign import assign_memory
from flaot.schedule.chip.commands import assign_commands
from flaot.schedule.chip.estimate import Estimate, estimates, operations
from flaot.schedule.chip.notes import notes
from flaot.schedule.chip.pieces import in_copy, operands
from flaot.schedule.chip.prefetch import Placed, place
from flaot.schedule.chip.residency import Residency, Settler
from flaot.schedule.chip.sequence import Item, Sequencer, Tape
from flaot.schedule.chip.tiles import Candidates
from flaot.targets.devices import HostSpeed

LIMITS = (1.0, 0.94, 0.88, 0.8, 0.7, 0.6, 0.45, 0.3)
"""Parts of on-chip memory that residents and tiles may fill, tried until everything finds a place."""


FEW, MANY, NEAR = 200, 2000, 1.06
"""Plans for less memory are made too while the last one has at most ``MANY`` steps and takes at most ``NEAR`` times the best one's time;
with at most ``FEW`` steps as long as there is one."""

WORTH = 1.02
"""Moving more bytes is worth it when it takes more than so many times less time."""


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


@dataclass
class _Made:
    """A program in commands, and what was decided for it; ``halved`` is how often on-chip memory was halved first."""

    program: Program
    composed: Composed
    halved: int

    @property
    def time_us(self) -> float:
        return sum(e.time_us for e in self.composed.estimates)

    @property
    def traffic(self) -> int:
        """Bytes over off-chip memory."""
        return sum(e.traffic_bytes for e in self.composed.estimates)


def compose(program: Program, options: ChipOptions) -> Composed:
    """Rewrites the program's steps and assigns all memory. Raises DoesNotFitError for steps whose operands do not fit on chip in
    any way."""
    _limit(program, options)
    known = [Candidates(chip.machine) for chip in program.chips]
    made = _best(program, options, known, depth_first=False)
    if options.depth_first:
        made = min(made, _best(program, options, known, depth_first=True), key=lambda m: (m.time_us, m.traffic))
    done = made.program
    program.steps, program.names, program.chips = done.steps, done.names, done.chips
    assign_memory(program, options.memory_effort)
    return made.composed


def _best(program: Program, options: ChipOptions, known: Sequence[Candidates], depth_first: bool) -> _Made:
    """A plan for half the on-chip memory, or a quarter, holds for all of it too: of them all the one that moves the fewest bytes in about
    the least time, so that twice the memory is no reason to be slower."""
    found = [_compose(program, options, known, depth_first, 0)]
    while not options.few and _may_pay(found) and all(c.machine.on_chip >> len(found) for c in program.chips):
        try:
            found.append(_compose(program, options, known, depth_first, len(found)))
        except (DoesNotFitError, UnsupportedError):
            break
    least = min(m.time_us for m in found)
    best = min((m for m in found if m.time_us <= WORTH * least), key=lambda m: (m.traffic, m.time_us))
    if best.halved:
        why = f"; in 1/{1 << best.halved} of on-chip memory: {_told(best)}, with all of it {_told(found[0])}"
        best.composed.paths = [replace(p, reason=p.reason + why) for p in best.composed.paths]
    return best


def _told(made: _Made) -> str:
    return f"{made.time_us:.2f} us and {made.traffic} bytes"


def _may_pay(found: list[_Made]) -> bool:
    steps = len(found[-1].program.steps)
    return steps <= FEW or steps <= MANY and found[-1].time_us <= NEAR * min(m.time_us for m in found)


def _compose(program: Program, options: ChipOptions, known: Sequence[Candidates], depth_first: bool, halved: int) -> _Made:
    original, work = program, operations(program.steps)
    tight: DoesNotFitError | None = None
    for share in LIMITS:
        program = _copy(original, halved)
        try:
            made = _try(program, share, known, depth_first, options, resorts=not halved)
        except DoesNotFitError as e:
            tight = e
            break
        if made is not None:
            composed, tape, slots = made
            composed.paths = notes(program.steps, program, composed.residencies)
            for chip, whole in zip(program.chips, original.chips, strict=True):
                chip.machine = replace(chip.machine, on_chip=whole.machine.on_chip)
            works = _finish(program, tape, slots, options)
            bounds = {d: p.lower_bound for d, p in composed.placed.items()}
            _queue(program, works, options, partial(estimates, lower_bounds=bounds, work=work), composed)
            return _Made(program, composed, halved)
    if tight is not None:
        raise tight
    chip = original.chips[0]
    raise UnsupportedError(
        f"no arrangement of on-chip memory fits the {chip.machine.on_chip} bytes of {chip.name}", origin=options.limiting(chip),
        hint="allow more on-chip memory, or send nodes to another device with --route NODE=DEVICE",
    )


def _copy(program: Program, halved: int) -> Program:
    chips = [replace(c, machine=replace(c.machine, on_chip=c.machine.on_chip >> halved)) for c in program.chips]
    return replace(program, steps=list(program.steps), names=list(program.names), chips=chips)


def _queue(
    program: Program, works: list[int], options: ChipOptions, estimated: Callable[[Program], list[Estimate]], composed: Composed,
) -> None:
    """Commands on all DMA channels, or on fewer where that is faster."""
    steps, channels = program.steps, max(c.machine.channels for c in program.chips)
    best: tuple[float, list[Step], list[Estimate]] | None = None
    while channels:
        program.steps = assign_commands(steps, works, program.chips, options.asynchronous, channels)
        found = estimated(program)
        time = sum(e.time_us for e in found)
        if best is None or time < best[0]:
            best = time, program.steps, found
        channels = channels // 2 if options.asynchronous and len(steps) <= MANY else 0
    assert best is not None
    _, program.steps, composed.estimates = best


def _limit(program: Program, options: ChipOptions) -> None:
    for chip in program.chips:
        m = chip.machine
        pool = m.on_chip if options.pool is None else min(m.on_chip, options.pool)
        chip.machine = replace(m, on_chip=pool)
        if options.depth is not None:
            chip.machine = replace(chip.machine, depth=options.depth, units=tuple(replace(u, depth=0) for u in m.units))


def _try(
    program: Program, share: float, known: Sequence[Candidates], depth_first: bool, options: ChipOptions, resorts: bool,
) -> tuple[Composed, Tape, list[int]] | None:
    composed = Composed()
    for device, chip in enumerate(program.chips, 1):
        limit = int(chip.machine.on_chip * share) // chip.alignment * chip.alignment
        settler = Settler(
            program, device, chip.machine, chip.alignment, limit, options.few, options.limiting(chip), known[device - 1], resorts,
        )
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


def _finish(program: Program, tape: Tape, slots: list[int], options: ChipOptions) -> list[int]:
    """All steps in order, with their places; the work of each."""
    order = _merged(tape, slots)
    position = {id(item): i for i, item in enumerate(order)}
    _rename(program, tape, position)
    works = [i.work if i.step.device else _host_work(i, options.host) for i in order]
    program.steps = [i.step for i in order]
    assign_memory(program, options.memory_effort)
    return works


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

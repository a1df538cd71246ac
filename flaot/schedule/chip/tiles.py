"""Path choice for one step: whole, or cut into parts that pass through on-chip memory, at what cost and with how much memory.

Every way of cutting a step along one or two axes is a candidate. Its cost is the time of a pipeline of loads, calls and stores: the longer
of all computing and all moving, plus what cannot overlap: bringing in what the first call waits for, the last call, and taking out what it
leaves. Constants are brought in ahead of time and make nobody wait.

Where no candidate fits, there are further ones: more parts, more axes, and one piece of everything at a time where there are two otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

from flaot.kernels.base import KERNELS
from flaot.kernels.tiling import Cut, Part, part_of
from flaot.plan import durations
from flaot.plan.program import Machine, Space, Step, View
from flaot.schedule.chip.pieces import Key, key_of, operands, piece_bytes, piece_split
from flaot.schedule.memory import align_up

MOST_PARTS = 256
"""Most calls a step is cut into along two axes."""

MOST_CALLS = 1024
"""Most calls a step is cut into where fewer do not fit."""

CALL = 100
"""Cycles that a further call is taken to cost, so that no step is cut for next to nothing."""

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
MORE_COUNTS = (*COUNTS, 384, 512, 768, 1024)


@dataclass(frozen=True)
class Tiling:
    """One candidate: the parts along every axis it is cut on, the outer one first; operands kept whole on chip; bytes of on-chip memory,
    bytes moved, the time (ps) it is estimated to take, and the steps, calls and transfers. With ``stays`` all it reads comes in piece by
    piece and stays; ``in_turn`` leaves no room for a second piece of anything, so that moving and computing take turns.
    ``path`` is resident (all it reads is on chip at once), tiled (something is kept on chip and used again) or
    pipelined."""

    axes: tuple[list[Part], ...]
    whole: frozenset[int]
    memory: int
    traffic: int
    time: int
    path: str
    steps: int = 1
    stays: bool = False
    in_turn: bool = False

    @property
    def label(self) -> str:
        """The axes it is cut along and into how many parts: ``rows/4``, ``rows/4 in turn``."""
        axes = [f"{parts[0].cut.name}/{len(parts)}" for parts in self.axes]
        return " ".join([*axes, *["in turn"] * self.in_turn]) or "whole"

    @property
    def count(self) -> int:
        """Calls."""
        return math.prod(map(len, self.axes))

    @property
    def calls(self) -> list[tuple[Part, ...]]:
        """The parts of every call, in order."""
        return list(product(*self.axes))


@dataclass(frozen=True)
class Setting:
    """A step with what is known of its operands: ``outside`` holds those that lie off chip, ``work`` its operations."""

    step: Step
    outside: frozenset[int]
    work: int
    alignment: int

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for steps that have the same candidates."""
        shapes = tuple((v.dtype, v.dims, v.strides, v.buffer.space is Space.constant) for v in operands(self.step))
        first: dict[Key, int] = {}
        same = tuple(first.setdefault(key_of(v), i) for i, v in enumerate(operands(self.step)))
        return self.step.kernel, self.step.params, shapes, same, self.outside, self.work, self.step.launch


class Candidates:
    """The ways of doing steps on one machine, each evaluated once however much memory it has and however many channels."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._simple: dict[tuple[object, ...], list[Tiling]] = {}
        self._double: dict[tuple[object, ...], list[Tiling]] = {}
        self._last: dict[tuple[object, ...], list[Tiling]] = {}

    def of(self, setting: Setting, memory: int) -> list[Tiling]:
        """The step as a whole, then every way along one axis, and along two where none of these fits ``memory`` bytes."""
        key = setting.signature
        if key not in self._simple:
            self._simple[key] = _simple(setting, self.machine)
        found = self._simple[key]
        if not setting.outside or best(found, memory) is not None:
            return found
        if key not in self._double:
            self._double[key] = _double(setting, self.machine)
        return found + self._double[key]

    def last_resorts(self, setting: Setting, memory: int) -> list[Tiling]:
        """For a step of which no candidate fits ``memory`` bytes: up to MOST_CALLS calls with one piece of everything at a time, along
        one or two axes, and along more where that does not do either."""
        key = *setting.signature, memory
        if key not in self._last:
            self._last[key] = _last_resorts(setting, self.machine, memory)
        return self._last[key]


def _simple(setting: Setting, machine: Machine) -> list[Tiling]:
    found = _evaluate(setting, machine, ())
    for cut in _cuts(setting) if setting.outside else ():
        for parts in _splits(cut):
            found += _evaluate(setting, machine, (parts,))
    return found


def _double(setting: Setting, machine: Machine) -> list[Tiling]:
    found = []
    for outer, inner in permutations(_cuts(setting), 2):
        for a, b in product(_splits(outer), _splits(inner)):
            if len(a) * len(b) <= MOST_PARTS:
                found += _evaluate(setting, machine, (a, b), _kept(setting, outer, inner))
    return found


def _last_resorts(setting: Setting, machine: Machine, memory: int) -> list[Tiling]:
    cuts = _cuts(setting)
    found: list[Tiling] = []
    for axes in range(1, len(cuts) + 1):
        for chosen in permutations(cuts, axes) if axes <= 2 else combinations(cuts, axes):
            keeps = _kept(setting, *chosen) if axes == 2 else [NOTHING]
            for split in product(*(_splits(c, MORE_COUNTS, finest=True) for c in chosen)):
                if math.prod(map(len, split)) <= MOST_CALLS:
                    found += _evaluate(setting, machine, split, keeps, in_turn=True)
                    if axes == 2:
                        found += _evaluate(setting, machine, split, keeps)
        if axes > 1 and best(found, memory) is not None:
            break
    return found


def least_memory(setting: Setting, machine: Machine) -> int:
    """Bytes on chip that the step needs at once when it is cut as finely as it can be."""
    cuts = _cuts(setting)
    finest = tuple([Part(c, 0, 1), Part(c, 1, 2)] for c in cuts)
    return smallest(_evaluate(setting, machine, finest, in_turn=True)).memory


def _cuts(setting: Setting) -> list[Cut]:
    return [c for c in KERNELS[setting.step.kernel].cuts(setting.step) if c.size > 1]


def _splits(cut: Cut, counts: Sequence[int] = COUNTS, finest: bool = False) -> list[list[Part]]:
    """Parts whose lengths are multiples of what they should begin at; ``finest`` also shorter ones."""
    lengths = []
    for count in counts[1:]:
        length = -(-cut.size // count)
        lengths.append(length if finest and length < cut.multiple else min(-(-length // cut.multiple) * cut.multiple, cut.size))
    return [[Part(cut, a, min(a + n, cut.size)) for a in range(0, cut.size, n)] for n in dict.fromkeys(lengths) if n < cut.size]


Kept = tuple[frozenset[int], bool]
"""Operands that are kept whole, and whether the pieces of all inputs are kept."""

NOTHING: Kept = frozenset(), False


def _kept(setting: Setting, outer: Cut, inner: Cut) -> list[Kept]:
    """What to keep: nothing, those operands whole that only the inner axis cuts and that would be brought in again and again, or the
    pieces of all inputs."""
    again = frozenset(i for i in setting.outside if i in inner.reaches and i not in outer.reaches)
    return [NOTHING, (again, False), (frozenset(), True)] if again else [NOTHING]


def _evaluate(
    setting: Setting, machine: Machine, axes: tuple[list[Part], ...], keeps: Sequence[Kept] = (NOTHING,), in_turn: bool = False
) -> list[Tiling]:
    """One candidate for everything that may be kept."""
    step = setting.step
    middle = tuple(parts[min(1, len(parts) - 1)] for parts in axes)
    call = part_of(step, KERNELS[step.kernel], middle) if axes else step
    time = call_time(machine, step, call, work_of(setting.work, middle))
    return [_tiling(setting, machine, axes, call, time, *kept, in_turn) for kept in keeps]


def _tiling(
    setting: Setting, machine: Machine, axes: tuple[list[Part], ...], call: Step, call_ps: int, whole: frozenset[int], stays: bool,
    in_turn: bool,
) -> Tiling:
    step, count = setting.step, len(setting.step.inputs)
    calls = math.prod(map(len, axes))
    views, cut = operands(step), operands(call)
    pieces_of: dict[Key, tuple[int, View]] = {}
    for i in sorted(setting.outside):
        view = views[i] if i in whole else cut[i]
        pieces_of[key_of(view)] = i, view
    moving, memory, first, last, reused, transfers, split = 0, 0, 0, 0, False, 0, 0
    for i, view in pieces_of.values():
        nbytes = align_up(piece_bytes(view), setting.alignment)
        constant, written = views[i].buffer.space is Space.constant, i >= count
        loads, pieces = (1, 1) if i in whole else _loads(i, axes)
        there = min(pieces, 1 if in_turn else 2)
        if stays and not written:
            loads = there = pieces
        moves = loads * (1 + (written and key_of(views[i]) in map(key_of, step.inputs)))
        moving += nbytes * moves
        split += piece_split(machine, view) * moves
        memory += nbytes * there
        transfers += loads
        first += 0 if constant or written else nbytes
        last += nbytes if written else 0
        reused |= loads < calls and not written
    computing = calls * call_ps
    both = computing, durations.dma_time(machine, moving)
    ends = durations.dma_time(machine, first) + durations.dma_time(machine, last)
    started = durations.of_cycles(machine, CALL) + len(pieces_of) * durations.setup_time(machine)
    time = (sum(both) if in_turn else ends + max(both) + min(both) // calls) + (calls - 1) * started + split
    path = "resident" if calls == 1 or stays else "tiled" if reused else "pipelined"
    return Tiling(axes, whole, memory, moving, time, path, calls + transfers, stays, in_turn)


def _loads(operand: int, axes: tuple[list[Part], ...]) -> tuple[int, int]:
    """How often a piece of the operand is moved, and into how many pieces it is cut."""
    moved = pieces = 1
    for parts in reversed(axes):
        cut = operand in parts[0].cut.reaches
        pieces *= len(parts) if cut else 1
        moved *= len(parts) if cut or moved > 1 else 1
    return moved, pieces


def work_of(total: int, parts: Sequence[Part]) -> int:
    """Operations of a part of a step that takes ``total``."""
    for p in parts:
        total = -(-total * (p.end - p.begin) // p.cut.size)
    return total


def call_time(machine: Machine, step: Step, call: Step, work: int) -> int:
    """Picoseconds of a call of ``work`` operations that is a part of a step."""
    assert step.launch is not None
    reads = [durations.touched(v) for v in call.inputs]
    busy = durations.unit_time(machine, step.launch.unit, work, reads)
    return max(busy, durations.write_time(machine, sum(durations.touched(v) for v in call.outputs)))


def smallest(found: Sequence[Tiling]) -> Tiling:
    """The one that needs the least on-chip memory."""
    return min(found, key=lambda t: (t.memory, t.time, t.count))


def best(found: Sequence[Tiling], memory: int) -> Tiling | None:
    """The fastest that fits, of equally fast ones the one with the least traffic and the fewest calls."""
    fitting = [t for t in found if t.memory <= memory]
    return min(fitting, key=lambda t: (t.time, t.traffic, t.count), default=None)


def shortest(found: Sequence[Tiling], memory: int) -> Tiling | None:
    """The one that fits and takes the fewest steps."""
    return min((t for t in found if t.memory <= memory), key=lambda t: (t.steps, t.time, t.traffic), default=None)

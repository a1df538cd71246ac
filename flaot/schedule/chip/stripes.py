"""Depth first: a chain of steps whose intermediates do not stay on chip is run stripe by stripe, so that no intermediate leaves the chip.

A stripe is a part of the last step's result; what it needs of the step before is that step's part, and so on up the chain. Neighbouring
stripes compute the rows they share twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.kernels.base import KERNELS
from flaot.kernels.tiling import Cut, Part, Reach, part_of
from flaot.plan import durations
from flaot.plan.program import Machine, Program, Space, Step
from flaot.schedule.chip.pieces import Key, key_of, operands, piece_bytes, piece_split
from flaot.schedule.chip.tiles import COUNTS, call_time, work_of
from flaot.schedule.chip.traffic import Use
from flaot.schedule.memory import align_up

LONGEST = 12
"""Most steps of a chain."""


@dataclass(frozen=True)
class Stripes:
    """A chain: its steps, and for every stripe the part of each. ``inner`` are the buffers that never leave the chip."""

    steps: tuple[int, ...]
    parts: tuple[tuple[Part, ...], ...]
    inner: frozenset[int]
    memory: int
    traffic: int
    time: int

    @property
    def label(self) -> str:
        """``height/4 of 3 steps``."""
        return f"{self.parts[0][-1].cut.name}/{len(self.parts)} of {len(self.steps)} steps"


class Striper:
    """Finds chains on one device; ``uses`` and ``residents`` by the id of a buffer."""

    def __init__(self, program: Program, machine: Machine, alignment: int, uses: dict[int, Use], residents: dict[int, Use]) -> None:
        self.program, self.machine, self.alignment, self.uses, self.residents = program, machine, alignment, uses, residents

    def best(self, first: int, calls: set[int], free: int, apart: dict[int, tuple[int, int]]) -> Stripes | None:
        """The chain from a step on that saves most time. ``apart``: time (ps) and traffic (bytes) of every step by itself."""
        found, saved = None, 0
        chain = [first]
        while len(chain) < LONGEST and self._follows(chain[-1], chain[-1] + 1, calls):
            chain.append(chain[-1] + 1)
            stripes = self._stripes(chain, free)
            if stripes is None:
                continue
            time, traffic = (sum(apart[i][n] for i in chain) for n in (0, 1))
            if stripes.traffic < traffic and time - stripes.time > saved:
                found, saved = stripes, time - stripes.time
        return found

    def _follows(self, a: int, b: int, calls: set[int]) -> bool:
        """Whether step b reads what step a makes, which nobody else does and which lies off chip."""
        if b not in calls or len(self.program.steps[a].outputs) != 1:
            return False
        made = self.program.steps[a].outputs[0]
        use = self.uses.get(id(made.buffer))
        if use is None or id(made.buffer) in self.residents or use.arrives or use.leaves:
            return False
        reads = [v for v in self.program.steps[b].inputs if v.buffer is made.buffer]
        return use.writers == [a] and use.readers == [b] and len(reads) == 1 and key_of(reads[0]) == key_of(made)

    def _stripes(self, chain: Sequence[int], free: int) -> Stripes | None:
        steps = [self.program.steps[i] for i in chain]
        last = steps[-1]
        options = []
        for cut in KERNELS[last.kernel].cuts(last):
            links = _follow(steps, cut)
            if links is None:
                continue
            for count in COUNTS[1:]:
                length = -(-cut.size // count)
                if length < cut.size and -(-cut.size // length) == count:
                    options.append(self._evaluate(chain, steps, _Cuts(links, length), free))
        return min((o for o in options if o is not None), key=lambda s: (s.time, s.traffic, len(s.parts)), default=None)

    def _evaluate(self, chain: Sequence[int], steps: Sequence[Step], cuts: _Cuts, free: int) -> Stripes | None:
        inner = frozenset(id(s.outputs[0].buffer) for s in steps[:-1])
        count, sample = cuts.count, cuts.stripe(min(1, cuts.count - 1))
        if sample is None:
            return None
        held = moved = needed = computing = ends = split = 0
        seen: set[Key] = set()
        for step, part in zip(steps, sample, strict=True):
            call, working = part_of(step, KERNELS[step.kernel], (part,)), 0
            computing += count * call_time(self.machine, step, call, work_of(step.work, (part,)))
            for i, view in enumerate(operands(call)):
                nbytes = align_up(piece_bytes(view), self.alignment)
                if id(view.buffer) in inner:
                    working += nbytes
                elif id(view.buffer) not in self.residents and key_of(view) not in seen:
                    seen.add(key_of(view))
                    whole = view.buffer.space is Space.constant and i not in part.cut.reaches
                    held += nbytes if whole else 0
                    working += 0 if whole else 2 * nbytes
                    moves = 1 if whole else count
                    moved += nbytes * moves
                    split += piece_split(self.machine, view) * moves
                    ends += 0 if view.buffer.space is Space.constant else nbytes
            needed = max(needed, working)
        if held + needed > free:
            return None
        parts = [cuts.stripe(n) for n in range(count)]
        moving = durations.dma_time(self.machine, moved)
        setups = split + (count - 1) * len(seen) * durations.setup_time(self.machine)
        time = max(computing, moving) + min(computing, moving) // count + durations.dma_time(self.machine, ends) + setups
        complete = tuple(p for p in parts if p is not None)
        return Stripes(tuple(chain), complete, inner, held + needed, moved, time) if len(complete) == count else None


Link = tuple[Cut, Reach | None, int]
"""A step's cut; how it reaches the result of the step before, and the size of that axis."""


@dataclass(frozen=True)
class _Cuts:
    """The cuts of a chain's steps, first to last, in stripes of ``length``."""

    links: Sequence[Link]
    length: int

    @property
    def count(self) -> int:
        return -(-self.links[-1][0].size // self.length)

    def stripe(self, n: int) -> tuple[Part, ...] | None:
        """The parts of stripe n; None when one would be empty."""
        last = self.links[-1][0]
        parts = [Part(last, n * self.length, min((n + 1) * self.length, last.size))]
        for (cut, _, _), (_, reach, size) in zip(reversed(self.links[:-1]), reversed(self.links[1:]), strict=True):
            assert reach is not None
            low, high = reach.span(parts[0].begin, parts[0].end, size)
            if high <= low:
                return None
            parts.insert(0, Part(cut, low, high))
        return tuple(parts)


def _follow(steps: Sequence[Step], last: Cut) -> list[Link] | None:
    """The cuts of all steps of a chain along the axis of a cut of the last one; None where that cannot be followed."""
    links: list[Link] = []
    cut = last
    for made, step in zip(reversed(steps[:-1]), reversed(steps[1:]), strict=True):
        slot = next(i for i, v in enumerate(step.inputs) if v.buffer is made.outputs[0].buffer)
        reach = cut.reaches.get(slot)
        if reach is None:
            return None
        size = step.inputs[slot].dims[reach.axis]
        above = next((c for c in KERNELS[made.kernel].cuts(made) if _is_axis(c, len(made.inputs), reach.axis)), None)
        if above is None or above.size != size:
            return None
        links.insert(0, (cut, reach, size))
        cut = above
    return [(cut, None, 0), *links]


def _is_axis(cut: Cut, output: int, axis: int) -> bool:
    """Whether the cut runs along this axis of the result, element by element."""
    reach = cut.reaches.get(output)
    return reach is not None and reach.axis == axis and reach.stride == reach.extent == reach.per == 1 and not reach.before


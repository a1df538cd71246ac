"""What stays on chip: activations from the step that makes them to the last one that reads them, as long as every step between still has
room to work in. Where it has not, the activation that frees most for the least traffic lies off chip."""

from __future__ import annotations

from dataclasses import dataclass, field

from flaot.errors import DoesNotFitError
from flaot.plan import durations
from flaot.plan.program import Machine, Opcode, Program, Space
from flaot.schedule.chip.pieces import operands
from flaot.schedule.chip.stripes import LONGEST, Striper, Stripes
from flaot.schedule.chip.tiles import MOST_CALLS, Candidates, Setting, Tiling, best, least_memory, shortest, smallest
from flaot.schedule.chip.traffic import Use, crosses, only_moves, uses_of
from flaot.schedule.memory import align_up

CROWDED = 32
"""Steps that lose more than one part in so many of their time for want of memory are worth taking something out for."""

AHEAD = 8
"""A part of on-chip memory, one in so many, is left to bring in what comes next."""


@dataclass
class Choice:
    """How a step is done: the tiling taken and the other candidates; ``free`` is the on-chip memory (bytes) it may use."""

    tiling: Tiling
    others: list[Tiling]
    free: int


@dataclass
class Residency:
    """Residents by the id of their off-chip buffer, the choice for every step that computes by itself, and chains that are run in
    stripes by their first step."""

    residents: dict[int, Use] = field(default_factory=dict)
    choices: dict[int, Choice] = field(default_factory=dict)
    stripes: dict[int, Stripes] = field(default_factory=dict)


class Settler:
    """Settles residency on one device, ``limit`` bytes of on-chip memory at a time; with ``few`` by the fewest steps. ``option`` is the one
    that limits that memory, "" where the chip's size does; ``known`` keeps candidates for other settlers of the machine. Without
    ``resorts`` a step that does not fit with two pieces of everything does not fit."""

    def __init__(
        self, program: Program, device: int, machine: Machine, alignment: int, limit: int, few: bool = False, option: str = "",
        known: Candidates | None = None, resorts: bool = True,
    ) -> None:
        self.program, self.device, self.machine, self.alignment, self.limit = program, device, machine, alignment, limit
        self.few, self.option, self.known, self.resorts = few, option, known or Candidates(machine), resorts
        self.uses = uses_of(program, device)
        self.residents = {key: use for key, use in self.uses.items() if self._may_stay(use)}
        self.found: dict[tuple[int, frozenset[int]], list[Tiling]] = {}
        self.calls: list[int] = []

    def settle(self, depth_first: bool = False) -> Residency:
        """``depth_first``: with chains in stripes where that pays. Raises DoesNotFitError for steps that do not fit in any way."""
        while True:
            live = self._live()
            self.calls = self._calls(live)
            worst, over = -1, 0
            for i in self.calls:
                short = live[i] + self._least(i) - self.limit
                if short > over:
                    worst, over = i, short
            if worst < 0:
                break
            self._evict(worst, live)
        if not self.few:
            live = self._relieved(live)
        choices = {i: self._choose(i, self.limit - live[i]) for i in self.calls}
        stripes = self._stripes(choices, live) if depth_first else {}
        inside = {i for s in stripes.values() for i in s.steps}
        return Residency(self.residents, {i: c for i, c in choices.items() if i not in inside}, stripes)

    def _computes(self, index: int) -> bool:
        step = self.program.steps[index]
        return step.device == self.device and step.opcode is Opcode.call

    def _calls(self, live: list[int]) -> list[int]:
        """The steps that pass through on-chip memory while residents take ``live`` bytes of it."""
        return [i for i in range(len(self.program.steps)) if self._computes(i) and self._passes(i, self.limit - live[i])]

    def _passes(self, index: int, free: int) -> bool:
        """Whether a step passes through on-chip memory. What only moves between other places does where that saves setups."""
        if not only_moves(self.program.steps[index]) or not self._touches_outside(index):
            return True
        through = best(self._tilings(index), free) if self._split(index) and not self.few else None
        return through is not None and through.time < self._moving(index)

    def _relieved(self, live: list[int]) -> list[int]:
        """Takes out what crowds steps so much that they lose more time than bringing it in again takes, the worst step first."""
        while True:
            lost = {i: self._time(i, self.limit - live[i]) - self._time(i, self.limit) for i in self.calls if live[i]}
            for i in sorted((i for i in lost if lost[i] * CROWDED > self._time(i, self.limit)), key=lambda i: -lost[i]):
                there = [u for u in self.residents.values() if u.first <= i <= u.last]
                gain, _, victim = max(((self._gain(u, live), -u.first, u) for u in there), key=lambda t: t[:2])
                if gain > 0:
                    del self.residents[id(victim.buffer)]
                    live = self._live()
                    self.calls = self._calls(live)
                    break
            else:
                return live

    def _gain(self, use: Use, live: list[int]) -> int:
        """Picoseconds that the steps take less when an activation lies off chip; 0 when one of them would have no room then."""
        nbytes = align_up(max(use.buffer.nbytes, 1), self.alignment)
        steps = [i for i in range(use.first, use.last + 1) if self._computes(i)]
        before = sum(self._time(i, self.limit - live[i]) for i in steps)
        del self.residents[id(use.buffer)]
        after = sum(self._time(i, self.limit - live[i] + nbytes) for i in steps)
        fits = all(self._least(i) <= free for i in steps if self._passes(i, free := self.limit - live[i] + nbytes))
        self.residents[id(use.buffer)] = use
        return before - after if fits else 0

    def _time(self, index: int, free: int) -> int:
        """Picoseconds that a step is taken to need with so many bytes of on-chip memory."""
        return self._choose(index, free).tiling.time if self._passes(index, free) else self._moving(index)

    def _moving(self, index: int) -> int:
        """Picoseconds that a step is taken to need that DMA does."""
        outside = [v for v in operands(self.program.steps[index]) if id(v.buffer) not in self.residents]
        return durations.dma_time(self.machine, sum(durations.touched(v) for v in outside)) + self._split(index)

    def _split(self, index: int) -> int:
        """Picoseconds of the setups that DMA takes beyond one for a step that only moves."""
        step = self.program.steps[index]
        sides = (id(v.buffer) in self.residents for v in (step.inputs[0], step.outputs[0]))
        return durations.split_time(self.machine, durations.moves(operands(step), self.machine.dimensions)) if crosses(step, *sides) else 0

    def _too_large(self) -> DoesNotFitError:
        """About all steps that have no room even when nothing stays on chip."""
        name, self.residents = self.program.chips[self.device - 1].name, {}
        large = [i for i in self.calls if not only_moves(self.program.steps[i]) and self._least(i) > self.limit]
        said = {i: self._why(i, name) for i in large}
        step = self.program.steps[large[0]]
        return DoesNotFitError(
            f"{step.op}: {said[large[0]]}",
            {node: (name, said[i]) for i in large for node in self.program.steps[i].origin},
            where=f"node '{step.origin[0]}'" if step.origin else "",
            origin=self.option,
            hint="run it on the host with --route NODE=host, or allow more on-chip memory",
        )

    def _why(self, index: int, name: str) -> str:
        """What a step needs that does not fit, in parts as fine as there are or in as many as it may be cut into, and what the chip has."""
        finest = least_memory(self._setting(index), self.machine)
        needed, how = finest, "however it is cut"
        if finest <= self.limit:
            needed, how = self._least(index), f"in the {MOST_CALLS} calls that it may be cut into at most"
        gaps = ", with gaps where pieces of other sizes were" * (needed <= self.machine.on_chip)
        return f"it needs {needed} bytes on chip at once, {how}; {name} {'may use' if self.option else 'has'} {self.machine.on_chip}{gaps}"

    def _setting(self, index: int) -> Setting:
        step = self.program.steps[index]
        outside = frozenset(i for i, v in enumerate(operands(step)) if id(v.buffer) not in self.residents)
        return Setting(step, outside, step.work, self.alignment)

    def _stripes(self, choices: dict[int, Choice], live: list[int]) -> dict[int, Stripes]:
        """Chains that take less time and traffic in stripes."""
        striper = Striper(self.program, self.machine, self.alignment, self.uses, self.residents)
        apart = {i: (c.tiling.time, c.tiling.traffic) for i, c in choices.items()}
        found: dict[int, Stripes] = {}
        after = -1
        for i in sorted(choices):
            if i <= after:
                continue
            chain = striper.best(i, set(choices), self.limit - max(live[i : i + LONGEST]), apart)
            if chain is not None:
                found[i], after = chain, chain.steps[-1]
        return found

    def _may_stay(self, use: Use) -> bool:
        """What only passes between the host and one step, or is moved by the DMA engine anyway, is not kept."""
        steps = self.program.steps
        on_chip = [i for i in use.writers + use.readers if steps[i].opcode is Opcode.call]
        if use.buffer.nbytes > self.limit:
            return False
        if use.arrives or use.leaves:
            return len(on_chip) > 1 and not all(only_moves(steps[i]) for i in on_chip)
        return True

    def _touches_outside(self, index: int) -> bool:
        return any(id(v.buffer) not in self.residents for v in operands(self.program.steps[index]))

    def _live(self) -> list[int]:
        """Bytes of residents at every step."""
        live = [0] * (len(self.program.steps) + 1)
        for use in self.residents.values():
            nbytes = align_up(max(use.buffer.nbytes, 1), self.alignment)
            live[use.first] += nbytes
            live[use.last + 1] -= nbytes
        for i in range(1, len(live)):
            live[i] += live[i - 1]
        return live

    def _tilings(self, index: int) -> list[Tiling]:
        """The candidates of a step, the one that needs least memory first."""
        setting = self._setting(index)
        if (index, setting.outside) not in self.found:
            found = self.known.of(setting, self.limit // AHEAD)
            if self.resorts and smallest(found).memory > self.limit:
                found = found + self.known.last_resorts(setting, self.limit)
            least = smallest(found)
            self.found[index, setting.outside] = [least, *(t for t in found if t is not least)]
        return self.found[index, setting.outside]

    def _least(self, index: int) -> int:
        return self._tilings(index)[0].memory

    def _choose(self, index: int, free: int) -> Choice:
        found = self._tilings(index)
        if self.few:
            taken = shortest(found, free) or found[0]
        elif self._only_constants(index):
            taken = self._roomy(found, free)
        else:
            taken = best(found, free) or found[0]
        return Choice(taken, [t for t in found if t is not taken], free)

    def _roomy(self, found: list[Tiling], free: int) -> Tiling:
        """The fastest when memory beyond the part left for what comes next is worth the time to fill it."""
        def price(tiling: Tiling) -> int:
            return tiling.time + durations.dma_time(self.machine, max(tiling.memory - self.limit // AHEAD, 0))

        fitting = [t for t in found if t.memory <= free] or found[:1]
        return min(fitting, key=lambda t: (price(t), t.traffic, t.count))

    def _only_constants(self, index: int) -> bool:
        """Whether all that comes from outside is constant, and so may come long before the step: smaller pieces let more come ahead."""
        step = self.program.steps[index]
        return all(v.buffer.space is Space.constant for v in operands(step) if id(v.buffer) not in self.residents)

    def _evict(self, index: int, live: list[int]) -> None:
        def gain(use: Use) -> float:
            crowded = sum(live[i] + self._least(i) > self.limit for i in self.calls if use.first <= i <= use.last)
            return crowded / (len(use.writers) + len(use.readers))

        there = [u for u in self.residents.values() if u.first <= index <= u.last]
        if not there:
            raise self._too_large()
        victim = max(there, key=lambda u: (gain(u) * u.buffer.nbytes, u.buffer.nbytes, -u.first))
        del self.residents[id(victim.buffer)]



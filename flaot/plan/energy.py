"""What steps on a chip take in energy, and when they run under its cap on power.

Energy is whole femtojoules, power whole microwatts, both rounded up; a femtojoule in a picosecond is a milliwatt. Without a cap a step
draws its energy evenly from its start to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise

from flaot.plan import durations
from flaot.plan.program import Machine, Opcode, Power, Step

OPERATIONS_PER_MAC = 2


@dataclass(frozen=True)
class Energy:
    """Femtojoules of computing, and of the bytes that are read from and written to either memory."""

    compute: int = 0
    on_chip: int = 0
    off_chip: int = 0

    @property
    def total(self) -> int:
        return self.compute + self.on_chip + self.off_chip

    def __add__(self, other: Energy) -> Energy:
        return Energy(self.compute + other.compute, self.on_chip + other.on_chip, self.off_chip + other.off_chip)


NONE = Energy()

Draws = tuple[tuple[int, int], ...]
"""Picoseconds and the microwatts that a step draws from then on, until it is over."""


def energy_of(machine: Machine, step: Step) -> Energy:
    """Of one step on the chip: the operations of its command at half a multiply-accumulate on elements of its first operand, and the bytes
    of its operands. Nothing for transfers, which are the host's, and on chips that state no power."""
    power = machine.power
    if power is None or step.opcode is Opcode.transfer:
        return NONE
    work = step.command.work if step.command is not None and step.opcode is Opcode.call else 0
    mac = power.macs[(*step.inputs, *step.outputs)[0].dtype] if work else 0
    reads, writes = durations.on_chip_bytes(step)
    on_chip = (sum(reads) + writes) * power.on_chip
    return Energy(-(-work * mac // OPERATIONS_PER_MAC), on_chip, durations.off_chip_bytes(step) * power.off_chip)


def draw(energy: int, duration: int) -> int:
    """Microwatts of so many femtojoules over so many picoseconds; 0 of a step that takes no time."""
    return -(-energy * 1000 // duration) if duration else 0


def at_rest(power: Power, duration: int) -> int:
    """Femtojoules that a chip takes at rest in so many picoseconds."""
    return -(-power.idle * duration // 1000)


def levels(power: Power, drawn: Iterable[tuple[Draws, int]]) -> list[tuple[int, int]]:
    """Picoseconds and the microwatts from then on, rest included, of steps given by what they draw and their end."""
    changes: Counter[int] = Counter({0: power.idle})
    for draws, end in drawn:
        for (start, uw), (until, _) in pairwise([*draws, (end, 0)]):
            changes[start] += uw
            changes[until] -= uw
    times = sorted(time for time, change in changes.items() if change or not time)
    return list(zip(times, accumulate(changes[t] for t in times), strict=True))


class Governor:
    """Keeps a chip under its cap; asked in the order in which steps start. A step draws what it can use of what those before it leave, so
    what is left only grows as they end: ``left`` has the times of that and the microwatts from then on."""

    def __init__(self, power: Power) -> None:
        self._left = [(0, power.cap - power.idle)]

    def first(self, ready: int) -> int:
        """When there is any power, from ``ready`` on."""
        return max(ready, next(time for time, left in self._left if left))

    def run(self, start: int, end: int, energy: int) -> tuple[int, Draws]:
        """The end of a step that with all the power it can use would end at ``end``, and what it draws."""
        most = draw(energy, end - start)
        if not most:
            return end, ((start, 0),)
        need, drawn = most * (end - start), list[tuple[int, int]]()
        past = [left for time, left in self._left if time <= start]
        times = [(start, past[-1]), *self._left[len(past) :]]
        rest = list[tuple[int, int]]()
        for i, (time, left) in enumerate(times):
            uw = min(most, left)
            over = time - (-need // uw)
            drawn.append((time, uw))
            rest.append((time, left - uw))
            if i + 1 == len(times) or over <= times[i + 1][0]:
                break
            need -= uw * (times[i + 1][0] - time)
        self._left = [*rest, (over, left), *times[i + 1 :]]
        return over, tuple(drawn)


def governor_of(machine: Machine) -> Governor | None:
    """None without a cap."""
    return Governor(machine.power) if machine.power is not None and machine.power.cap else None

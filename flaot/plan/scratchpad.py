"""On-chip memory over time: bytes count from the start of the step that writes them to the end of the last one that uses them.

A plan names places, not tensors. A step that fills a run of bytes ends the life of what lay there; one that writes with gaps, a strip of a
larger tensor, prolongs it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.plan.program import Space, Step, View
from flaot.plan.timeline import Timeline


@dataclass
class Held:
    """Bytes low to high, in use from ``since`` to ``until`` (picoseconds); ``step`` was the first to write them."""

    low: int
    high: int
    since: int
    until: int
    step: int


class _Scratchpad:
    """What is held, apart and sorted, and what was."""

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.past: list[Held] = []

    def use(self, low: int, high: int, end: int) -> None:
        for h in self._touched(low, high)[1]:
            h.until = max(h.until, end)

    def fill(self, low: int, high: int, start: int, end: int, step: int) -> None:
        """Writes every byte of a range."""
        first, old = self._touched(low, high)
        new = [Held(low, high, start, end, step)]
        for h in old:
            self.past.append(Held(max(h.low, low), min(h.high, high), h.since, min(h.until, start), h.step))
            if h.low < low:
                new.insert(0, Held(h.low, low, h.since, h.until, h.step))
            if h.high > high:
                new.append(Held(high, h.high, h.since, h.until, h.step))
        self.held[first : first + len(old)] = new

    def strip(self, low: int, high: int, start: int, end: int, step: int) -> None:
        """Writes some bytes of a range."""
        self.use(low, high, end)
        first, old = self._touched(low, high)
        edges = [low, *(e for h in old for e in (h.low, h.high)), high]
        gaps = [Held(a, b, start, end, step) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        self.held[first : first + len(old)] = sorted(old + gaps, key=lambda h: h.low)

    def _touched(self, low: int, high: int) -> tuple[int, list[Held]]:
        first = bisect_right(self.held, low, key=lambda h: h.high)
        last = first
        while last < len(self.held) and self.held[last].low < high:
            last += 1
        return first, self.held[first:last]


def on_chip_held(steps: Sequence[Step], line: Timeline, device: int) -> list[Held]:
    """What lies where and how long, apart from each other in address and time, in the order of the first writes."""
    pad = _Scratchpad()
    for step, span in zip(steps, line.spans, strict=True):
        if step.device != device:
            continue
        for view in _on_chip(step.inputs):
            pad.use(*view.extent(), span.end)
        for view in _on_chip(step.outputs):
            low, high = view.extent()
            write = pad.fill if high - low == view.elements * view.dtype.size else pad.strip
            write(low, high, span.start, span.end, span.step)
    return sorted((h for h in (*pad.past, *pad.held) if h.since < h.until), key=lambda h: (h.since, h.low))


def on_chip_use(steps: Sequence[Step], line: Timeline, device: int) -> list[tuple[int, int]]:
    """Picoseconds and the bytes in use from then on, wherever that changes."""
    changes: dict[int, int] = {0: 0}
    for h in on_chip_held(steps, line, device):
        changes[h.since] = changes.get(h.since, 0) + h.high - h.low
        changes[h.until] = changes.get(h.until, 0) - h.high + h.low
    series, total = [], 0
    for time in sorted(changes):
        if changes[time] or not time:
            total += changes[time]
            series.append((time, total))
    return series


def _on_chip(views: Sequence[View]) -> list[View]:
    return [v for v in views if v.buffer.space is Space.on_chip and v.elements]

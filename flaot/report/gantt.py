"""The timeline of a plan as text: a row of characters per queue, denser where it is busier, and one for on-chip memory.

Drawn twice: the whole run, and the chips as if the host and transfers to and from it took no time, which shows what they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flaot.plan.timeline import HOST, Span, Timeline
from flaot.plan.usage import PS_PER_US
from flaot.report.chips import ChipReport

WIDTH = 100
"""Columns of a line."""
SHADES = " .:=#"
"""Idle, then up to a quarter, half and three quarters of a column's time busy, then more."""
WAITING = "-"
"""Busy with nothing but waiting for a bus, for more than half of the time that it is busy."""


def gantt(report: ChipReport, width: int = WIDTH) -> list[str]:
    """Lines of at most ``width`` characters, and what their characters mean."""
    return [
        "The whole run",
        *_drawing(report, report.usage.whole, [HOST, *_devices(report)], width),
        "",
        "Chips as if the host and transfers took no time",
        *_drawing(report, report.usage.alone, _devices(report), width),
        "",
        *(f"Transfers of {c.name} are zero-copy: nothing is moved" for c in report.chips if c.machine.zero_copy),
        "Busy up to . 1/4, : 1/2, = 3/4, # all of a column's time; - most of it waiting for a bus",
        "Memory: tenths of on-chip memory in use",
    ]


def _devices(report: ChipReport) -> list[int]:
    return list(range(1, len(report.chips) + 1))


def _drawing(report: ChipReport, line: Timeline, devices: Sequence[int], width: int) -> list[str]:
    labels = [(d, q, _label(report, d, name)) for d in devices for q, name in enumerate(report.queues(d))]
    memory = {d: _label(report, d, "memory") for d in devices if d != HOST}
    room = min(max(map(len, (*(label for *_, label in labels), *memory.values()))), 24)
    columns, end = width - room - 3, max(line.end, 1)
    lines = [f"{'':{room}}  {_axis(columns, end)}"]
    by_queue: dict[tuple[int, int], list[Span]] = {}
    for s in line.spans:
        by_queue.setdefault((s.device, 0 if s.device == HOST else s.queue), []).append(s)
    for device, queue, label in labels:
        spans = by_queue.get((device, queue), [])
        busy = _busy([(s.start, s.end, 1) for s in spans], columns, end)
        held = _busy([(s.ready, s.ready + s.contention, 1) for s in spans if s.contention], columns, end)
        lines.append(_row(label, room, [_shade(b, h) for b, h in zip(busy, held, strict=True)]))
        if device and queue + 1 == len(report.queues(device)):
            levels = _levels(report.on_chip(device, line), end)
            limit = max(report.chips[device - 1].machine.on_chip, 1)
            lines.append(_row(memory[device], room, [_digit(x / limit) for x in _busy(levels, columns, end)]))
    return lines


def _label(report: ChipReport, device: int, queue: str) -> str:
    return queue if device == HOST else f"{report.device_name(device)} {queue}"


def _axis(columns: int, end: int) -> str:
    """``0`` at the left, the whole time at the right, and quarters between them where there is room."""
    text = [" "] * columns
    for quarter in range(5):
        label = f"{end * quarter / 4 / PS_PER_US:.3g}" + (" us" if quarter == 4 else "")
        at = min(columns * quarter // 4, columns - len(label))
        text[at : at + len(label)] = label
    return "".join(text)


def _levels(series: Sequence[tuple[int, int]], end: int) -> list[tuple[int, int, int]]:
    times = [*(t for t, _ in series[1:]), end]
    return [(start, until, level) for (start, level), until in zip(series, times, strict=True)]


def _busy(intervals: Iterable[tuple[int, int, int]], columns: int, end: int) -> list[float]:
    """For every column, the mean over its time of the weights of the intervals (start, end, weight) that cover it."""
    sums = [0.0] * columns
    for start, until, weight in intervals:
        first, last = start * columns // end, min(-(-until * columns // end), columns)
        for i in range(first, last):
            share = min(until * columns, (i + 1) * end) - max(start * columns, i * end)
            sums[i] += weight * share / end
    return sums


def _shade(share: float, held: float) -> str:
    return WAITING if held > share / 2 else SHADES[min(-int(-4 * share // 1), 4)] if share > 0 else SHADES[0]


def _digit(share: float) -> str:
    return " " if share <= 0 else str(min(int(10 * share), 9))


def _row(label: str, room: int, characters: Iterable[str]) -> str:
    return f"{label[:room]:{room}} |{''.join(characters)}|"

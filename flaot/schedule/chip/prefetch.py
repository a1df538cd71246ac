"""How early pieces are brought in: as soon as on-chip memory has room for them until they are used, in the order of their use. And places
for everything on chip."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, replace

from flaot.plan.program import Buffer, Opcode, Space
from flaot.schedule.chip.pieces import operands
from flaot.schedule.chip.sequence import STORE, Tape
from flaot.schedule.memory import Block, align_up, greedy, lower_bound, plan

SHARES = (1.0, 0.8, 0.5, 0.0)
"""Parts of the room beside what steps work on that are filled ahead of time; the first with which everything finds a place."""

BEHIND = (1.0, 0.9, 0.8, 0.0)
"""Parts of on-chip memory that results may fill while they are taken out; the first with which everything finds a place."""

LOOSE, EFFORT = 1.05, 4
"""On-chip bytes over the most alive at once that are taken as they come, and nodes of search for each buffer where they are more."""


@dataclass
class Span:
    """An on-chip buffer with the items of its first and last use."""

    buffer: Buffer
    first: int
    last: int


@dataclass
class Placed:
    """For every load the item it is issued before; bytes of on-chip memory used, and the most bytes alive at once."""

    slots: list[int]
    peak: int
    lower_bound: int


def place(tape: Tape, device: int, limit: int, alignment: int) -> Placed | None:
    """Sets the offset of every on-chip buffer of a device; None when ``limit`` bytes do not hold them. What steps work on is packed first;
    loads then come one by one, as early as there is a hole for them. Results keep their place while the next call runs, where there is
    room, so that taking them out does not hold it up."""
    spans = _spans(tape, device)
    for share in BEHIND:
        placed = _place(tape, device, _written_behind(tape, device, spans, int(limit * share), alignment), limit, alignment)
        if placed is not None:
            return placed
    return None


def _place(tape: Tape, device: int, spans: dict[int, Span], limit: int, alignment: int) -> Placed | None:
    loaded = {id(load.item.step.outputs[0].buffer) for load in tape.loads if load.item.step.device == device}
    fixed = [s for key, s in spans.items() if key not in loaded]
    offsets, size = plan([Block(align_up(s.buffer.nbytes, alignment), s.first, s.last) for s in fixed])
    if size > limit:
        return None
    for share in SHARES:
        holes = _Holes(limit, alignment)
        for span, offset in zip(fixed, offsets, strict=True):
            holes.take(span, offset)
        slots = _load_all(tape, device, spans, _room(tape, spans, limit, alignment, share), holes)
        if slots is not None:
            return Placed(slots, *_packed(holes))
    return None


def _packed(holes: _Holes) -> tuple[int, int]:
    """Bytes used, and the most alive at once. Where holes have left much more than that, all places are chosen together."""
    blocks = [Block(align_up(s.buffer.nbytes, holes.alignment), s.first, s.last) for s in holes.spans]
    bound = lower_bound(blocks)
    if holes.peak > bound * LOOSE:
        offsets, size = greedy(blocks, int(bound * LOOSE))
        if size > bound * LOOSE:
            offsets, size = plan(blocks, EFFORT * len(blocks))
        if size < holes.peak:
            for span, offset in zip(holes.spans, offsets, strict=True):
                span.buffer.offset = offset
            return size, bound
    return holes.peak, bound


def _written_behind(tape: Tape, device: int, spans: dict[int, Span], limit: int, alignment: int) -> dict[int, Span]:
    """The spans, those that end with a store prolonged to the next call where ``limit`` leaves room for that."""
    room, found, following = _room(tape, spans, limit, alignment, 1.0), dict(spans), len(tape.items)
    for i in range(len(tape.items) - 1, -1, -1):
        step = tape.items[i].step
        if step.device != device:
            continue
        if step.opcode is Opcode.call:
            following = i
        key = id(step.inputs[0].buffer)
        if step.op != STORE or spans[key].last != i or following == len(tape.items):
            continue
        nbytes = align_up(spans[key].buffer.nbytes, alignment)
        if min(room[i + 1 : following + 1]) >= nbytes:
            found[key] = replace(spans[key], last=following)
            for j in range(i + 1, following + 1):
                room[j] -= nbytes
    return found


class _Holes:
    """On-chip memory with what has a place in it."""

    def __init__(self, limit: int, alignment: int) -> None:
        self.limit, self.alignment = limit, alignment
        self.spans: list[Span] = []
        self.peak = 0
        self._taken: list[tuple[int, int, int, int]] = []
        """First and last item, begin and end of what has a place, sorted."""

    def take(self, span: Span, offset: int) -> None:
        span.buffer.offset = offset
        self.spans.append(span)
        end = offset + align_up(span.buffer.nbytes, self.alignment)
        insort(self._taken, (span.first, span.last, offset, end))
        self.peak = max(self.peak, end)

    def forget(self, item: int) -> None:
        """No one will ask for a hole before this item again."""
        started = bisect_left(self._taken, (item,))
        self._taken[:started] = [t for t in self._taken[:started] if t[1] >= item]

    def lowest(self, nbytes: int, first: int, last: int) -> int | None:
        """The lowest hole of that many bytes that is free from item ``first`` to ``last``."""
        at = 0
        for low, high in sorted(t[2:] for t in self._taken[: bisect_left(self._taken, (last + 1,))] if t[1] >= first):
            if low - at >= nbytes:
                break
            at = max(at, high)
        return at if at + nbytes <= self.limit else None


def _load_all(tape: Tape, device: int, spans: dict[int, Span], room: list[int], holes: _Holes) -> list[int] | None:
    """Places the loads in order; the item each is issued before (of loads of other devices too), None when one finds no hole at all."""
    slots, low = [], 0
    known: dict[int, Span] = {}
    for load in tape.loads:
        buffer = load.item.step.outputs[0].buffer
        if load.item.step.device != device or id(buffer) in known:
            slots.append(load.before)
            continue
        span, nbytes = spans[id(buffer)], align_up(buffer.nbytes, holes.alignment)
        low = max(low, min(load.earliest, load.before))
        holes.forget(low)
        earliest = load.before
        while earliest > low and room[earliest - 1] >= nbytes:
            earliest -= 1
        found = _earliest_hole(holes, nbytes, earliest, load.before, span.last)
        if found is None:
            return None
        low, offset = found
        for i in range(low, load.before):
            room[i] -= nbytes
        known[id(buffer)] = Span(buffer, low, span.last)
        holes.take(known[id(buffer)], offset)
        slots.append(low)
    return slots


def _earliest_hole(holes: _Holes, nbytes: int, low: int, high: int, last: int) -> tuple[int, int] | None:
    """The earliest item from ``low`` to ``high`` from which on a hole is free until ``last``, and its offset."""
    offset = holes.lowest(nbytes, high, last)
    if offset is None:
        return None
    while low < high:
        middle = (low + high) // 2
        trial = holes.lowest(nbytes, middle, last)
        if trial is None:
            low = middle + 1
        else:
            high, offset = middle, trial
    return high, offset


def _spans(tape: Tape, device: int) -> dict[int, Span]:
    found: dict[int, Span] = {}
    for i, item in enumerate(tape.items):
        for view in operands(item.step):
            b = view.buffer
            if b.space is Space.on_chip and b.index == device:
                span = found.setdefault(id(b), Span(b, i, i))
                span.last = i
    return found


def _room(tape: Tape, spans: dict[int, Span], limit: int, alignment: int, share: float) -> list[int]:
    """Bytes at every item that may be filled ahead of time: ``share`` of what the items themselves leave."""
    room = [limit] * (len(tape.items) + 1)
    for span in spans.values():
        nbytes = align_up(span.buffer.nbytes, alignment)
        for i in range(span.first, span.last + 1):
            room[i] -= nbytes
    return [int(r * share) for r in room]

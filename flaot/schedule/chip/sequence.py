"""The steps of a program as calls on tiles, with what has to be brought in before them and taken out after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flaot.ir.types import DType, TensorType
from flaot.kernels.base import KERNELS
from flaot.kernels.tiling import Part, part_of
from flaot.plan.program import Buffer, Opcode, Program, Space, Step, View
from flaot.schedule.chip.pieces import Key, Piece, in_copy, key_of, operands, piece_of
from flaot.schedule.chip.residency import Residency
from flaot.schedule.chip.stripes import Stripes
from flaot.schedule.chip.tiles import work_of
from flaot.schedule.chip.traffic import crosses

LOAD, STORE = "Load", "Store"
"""Operators of the steps that bring pieces in and take them out."""

SMALL = 64
"""A constant of at most one in so many parts of on-chip memory stays for its next use."""

NEAR = 48
"""Calls within which that use must come."""


@dataclass
class Item:
    """A step of the final program. ``work``: operations of a call."""

    step: Step
    work: int = 0


@dataclass
class Load:
    """A DMA step that brings a piece in before item ``before``, and not before item ``earliest``."""

    item: Item
    before: int
    earliest: int


@dataclass
class Tape:
    """Items in order, and the loads between them. ``ends`` is the last item of every step of the original program,
    ``copies`` the on-chip copies of residents by the id of their buffer,
    ``inner`` the ids of those that are only there in stripes."""

    items: list[Item] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    copies: dict[int, Buffer] = field(default_factory=dict)
    inner: set[int] = field(default_factory=set)


class Sequencer:
    """Makes the sequence of one program; ``residencies`` by device."""

    def __init__(self, program: Program, residencies: dict[int, Residency]) -> None:
        self.program, self.residencies = program, residencies
        self.made = Tape()
        self.stored: dict[int, int] = {}
        self.recent: dict[Key, tuple[Piece, int]] = {}
        self.index = 0

    def run(self) -> Tape:
        for index, step in enumerate(self.program.steps):
            self.index = index
            if not step.device or step.opcode is not Opcode.call:
                self._add(step)
            elif self.index in self.residencies[step.device].stripes:
                self._chain(self.residencies[step.device].stripes[self.index])
            elif self._striped(step.device):
                pass
            elif self.index in self.residencies[step.device].choices:
                self._arrive(step)
                self._tiles(step)
            else:
                self._arrive(step)
                self._move(step)
            if step.device and step.opcode is Opcode.call:
                self._leave(step)
            self.made.ends.append(len(self.made.items) - 1)
        return self.made

    # -- residents -----------------------------------------------------------------------------------------------------

    def on_chip(self, view: View, device: int) -> View | None:
        """The view in the resident copy of its buffer."""
        key = id(view.buffer)
        if key not in self.residencies[device].residents:
            return None
        if key not in self.made.copies:
            self.made.copies[key] = Buffer(Space.on_chip, view.buffer.nbytes, view.buffer.name, index=device)
        return in_copy(view, self.made.copies[key])

    def _arrive(self, step: Step) -> None:
        """Brings in residents that the host sent, before their first use."""
        for view in operands(step):
            use = self.residencies[step.device].residents.get(id(view.buffer))
            if use is not None and use.arrives and id(view.buffer) not in self.made.copies:
                whole = whole_view(view.buffer)
                inside = self.on_chip(whole, step.device)
                assert inside is not None
                self._load(whole, inside, step)

    def _leave(self, step: Step) -> None:
        """Takes out residents that the host wants, after their last writer."""
        for view in dict.fromkeys(step.outputs):
            use = self.residencies[step.device].residents.get(id(view.buffer))
            if use is not None and use.leaves and max(i for i in use.writers) == self.index:
                whole = whole_view(view.buffer)
                inside = self.on_chip(whole, step.device)
                assert inside is not None
                self._store(inside, whole, step)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _move(self, step: Step) -> None:
        """A step the DMA engine does."""
        inputs, outputs = ([self.on_chip(v, step.device) or v for v in views] for views in (step.inputs, step.outputs))
        moved = replace(step, inputs=tuple(inputs), outputs=tuple(outputs))
        if crosses(step, *(v.buffer.space is Space.on_chip for v in (inputs[0], outputs[0]))):
            moved = _dma(inputs[0], outputs[0], step, step.op)
        self._add(moved)
        for view in outputs:
            self.stored[id(view.buffer)] = len(self.made.items)

    def _tiles(self, step: Step) -> None:
        tiling = self.residencies[step.device].choices[self.index].tiling
        base = self._mapped(step, tiling.whole)
        held: dict[Key, Piece] = {}
        for parts in tiling.calls:
            now = self._call(step, base, parts, held)
            held = held | now if tiling.stays else now

    def _striped(self, device: int) -> bool:
        """Whether a chain that has been run already holds the step."""
        return any(self.index in s.steps for s in self.residencies[device].stripes.values())

    def _chain(self, stripes: Stripes) -> None:
        """A chain depth first: constants stay from stripe to stripe, what the steps hand on is taken out nowhere."""
        steps = [self.program.steps[i] for i in stripes.steps]
        for step in steps:
            self._arrive(step)
        self.made.inner |= stripes.inner
        bases = [self._mapped(step, frozenset()) for step in steps]
        kept: dict[Key, Piece] = {}
        for parts in stripes.parts:
            held = dict(kept)
            for index, step, base, part in zip(stripes.steps, steps, bases, parts, strict=True):
                self.index = index
                held |= self._call(step, base, (part,), held)
            kept = {key: piece for key, piece in held.items() if piece.outside.buffer.space is Space.constant}

    def _mapped(self, step: Step, whole: frozenset[int]) -> Step:
        """The step on the copies of what is on chip as a whole."""
        views = []
        for i, view in enumerate(operands(step)):
            inside = self.on_chip(view, step.device)
            if inside is None and i in whole:
                piece = piece_of(view, step.device)
                self._load(piece.outside, piece.inside, step)
                inside = piece.view
            views.append(inside if inside is not None else view)
        count = len(step.inputs)
        return replace(step, inputs=tuple(views[:count]), outputs=tuple(views[count:]))

    def _call(self, step: Step, base: Step, parts: Sequence[Part], held: dict[Key, Piece]) -> dict[Key, Piece]:
        kernel, count = KERNELS[step.kernel], len(step.inputs)
        call = part_of(base, kernel, parts) if parts else base
        views, now = list(operands(call)), dict[Key, Piece]()
        out: dict[Key, Piece] = {}
        for i, view in enumerate(views):
            if view.buffer.space is Space.on_chip:
                continue
            key = key_of(view)
            piece = now.get(key) or held.get(key) or self._known(key)
            if piece is None:
                piece = piece_of(view, step.device)
                if i < count or kernel.updates:
                    self._load(piece.outside, piece.inside, step)
            now[key] = piece
            if i >= count and id(view.buffer) not in self.made.inner:
                out[key] = piece
            elif view.buffer.space is Space.constant:
                self.recent[key] = piece, len(self.made.items)
            views[i] = piece.view
        call = replace(call, inputs=tuple(views[:count]), outputs=tuple(views[count:]))
        self._add(call, work_of(step.work, parts))
        for piece in out.values():
            self._store(piece.inside, piece.outside, step)
        return now

    def _known(self, key: Key) -> Piece | None:
        """A small constant that is still there from a step before."""
        piece, used = self.recent.get(key, (None, 0))
        if piece is None or len(self.made.items) - used > NEAR:
            return None
        limit = self.program.chips[piece.buffer.index - 1].machine.on_chip
        return piece if piece.buffer.nbytes * SMALL <= limit else None

    # -- items ---------------------------------------------------------------------------------------------------------

    def _add(self, step: Step, work: int = 0) -> None:
        self.made.items.append(Item(step, work))

    def _load(self, outside: View, inside: View, step: Step) -> None:
        if outside.elements == 0:
            return
        earliest = self.stored.get(id(outside.buffer), self._sent(outside.buffer))
        self.made.loads.append(Load(Item(_dma(outside, inside, step, LOAD)), len(self.made.items), earliest))

    def _sent(self, buffer: Buffer) -> int:
        """The first item after the transfer that fills a buffer."""
        for i in range(len(self.made.items) - 1, -1, -1) if buffer.space is Space.device else ():
            if any(v.buffer is buffer for v in self.made.items[i].step.outputs):
                self.stored[id(buffer)] = i + 1
                return i + 1
        return 0

    def _store(self, inside: View, outside: View, step: Step) -> None:
        if outside.elements == 0:
            return
        self._add(_dma(inside, outside, step, STORE))
        self.stored[id(outside.buffer)] = len(self.made.items)


def _dma(source: View, target: View, step: Step, op: str) -> Step:
    return Step("dma", "", (source,), (target,), origin=step.origin, op=op, device=step.device, opcode=Opcode.dma)


def whole_view(buffer: Buffer) -> View:
    """All bytes of a buffer as one run."""
    return View.dense(buffer, TensorType(DType.uint8, (buffer.nbytes,)))

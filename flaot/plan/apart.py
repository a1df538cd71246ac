"""The program of a plan with chips: what reading shows as one memory per chip, told apart into the buffers it was written from."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from flaot.plan.fields import Section
from flaot.plan.program import Buffer, Named, Space, Step, View
from flaot.plan.read import Plan


class Buffers:
    """Buffers by where they begin: an operand lies ``window`` bytes into its own. A chip's constants end where the next ones begin."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._tensors = plan, plan.section(Section.tensors)
        self._constants = plan.section(Section.constants)
        rows = plan.section(Section.chips)
        self._ranges = [(int(r["constants_offset"]), int(r["constants_offset"]) + int(r["constants_size"])) for r in rows]
        self._starts: list[list[int]] = [sorted(s) for s in self._find_starts()]
        end = min((low for low, high in self._ranges if low < high), default=len(self._constants))
        self._host = Buffer(Space.constant, end, "constants", self._constants[:end])
        self._known: dict[tuple[Space, int, int], Buffer] = {}

    def view(self, index: int) -> View:
        """The tensor record as a view of its buffer."""
        t, view = self._tensors[index], self._plan.view(index)
        if view.buffer.space is Space.constant:
            chip = self._chip_of(view.offset)
            if chip is None:
                return replace(view, buffer=self._host)
            start = view.offset - int(t["window"])
            return replace(view, buffer=self._constant(chip, start), offset=int(t["window"]))
        if view.buffer.space is Space.device:
            return replace(view, buffer=self._device(view, view.offset - int(t["window"])), offset=int(t["window"]))
        return view

    def _chip_of(self, offset: int) -> int | None:
        return next((i for i, (low, high) in enumerate(self._ranges) if low <= offset < high), None)

    def _find_starts(self) -> list[set[int]]:
        found: list[set[int]] = [{low} for low, _ in self._ranges]
        for t in self._tensors[self._tensors["space"] == Space.constant]:
            chip = self._chip_of(int(t["offset"]))
            if chip is not None:
                found[chip].add(int(t["offset"]) - int(t["window"]))
        return found

    def _constant(self, chip: int, start: int) -> Buffer:
        key = (Space.constant, chip, start)
        if key not in self._known:
            starts = self._starts[chip]
            after = bisect_right(starts, start)
            end = starts[after] if after < len(starts) else self._ranges[chip][1]
            self._known[key] = Buffer(Space.constant, end - start, data=self._constants[max(start, 0) : end], index=chip + 1)
        return self._known[key]

    def _device(self, view: View, start: int) -> Buffer:
        key = (Space.device, view.buffer.index, start)
        buffer = self._known.setdefault(key, Buffer(Space.device, 0, index=view.buffer.index, offset=start))
        buffer.nbytes = max(buffer.nbytes, view.extent()[1] - start)
        return buffer


def told_apart(plan: Plan) -> tuple[list[Step], list[Named]]:
    """Steps and names on buffers of their own."""
    buffers, operands, steps = Buffers(plan), plan.section(Section.operands), []
    for row, step in zip(plan.section(Section.steps), plan.steps, strict=True):
        first, n_in = int(row["operands"]), len(step.inputs)
        views = [buffers.view(int(i)) for i in operands[first : first + n_in + len(step.outputs)]]
        steps.append(replace(step, inputs=tuple(views[:n_in]), outputs=tuple(views[n_in:])))
    names = [replace(n, view=buffers.view(int(r["tensor"]))) for n, r in zip(plan.names, plan.section(Section.names), strict=True)]
    return steps, names

"""How a kernel's work may be cut: along which axes of the result, and what each part reads. No axis that is summed over is ever cut, so
results do not depend on tiling.

A kernel's ``cuts`` function (see :class:`flaot.kernels.base.Kernel`) looks at one call and lists its :class:`Cut` s; :func:`part_of`
makes the call of one part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flaot.plan.program import Step, View

if TYPE_CHECKING:
    from flaot.kernels.base import Kernel


@dataclass(frozen=True)
class Reach:
    """What part [a, b) of a cut needs of one axis of an operand: positions ``[a * stride - before, (b - 1) * stride - before + extent)``,
    ``per`` of them to an element, clipped to the axis. The result's own axis has the default reach; a window has its stride, begin pad
    and dilated extent; a group of n channels stride n and extent n; a transposed convolution ``per`` its stride."""

    axis: int
    stride: int = 1
    before: int = 0
    extent: int = 1
    per: int = 1

    def span(self, a: int, b: int, size: int) -> tuple[int, int]:
        """First and one-past-last index on an axis of ``size``; empty when a window lies in the padding altogether."""
        low = min(max(self.at(a) // self.per, 0), size)
        return low, max(min(-(-(self.at(b - 1) + self.extent) // self.per), size), low)

    def at(self, a: int) -> int:
        """The first position that a part beginning at ``a`` needs; padding is negative."""
        return a * self.stride - self.before


@dataclass(frozen=True)
class Listed(Reach):
    """A reach that follows no formula: result i needs ``[lows[i], highs[i])``, nothing when these are equal."""

    lows: tuple[int, ...] = ()
    highs: tuple[int, ...] = ()

    def span(self, a: int, b: int, size: int) -> tuple[int, int]:
        needed = [i for i in range(a, b) if self.lows[i] < self.highs[i]]
        return (min(self.lows[i] for i in needed), max(self.highs[i] for i in needed)) if needed else (0, 0)


@dataclass(frozen=True)
class Patch:
    """A parameter that differs from part to part: entry ``index`` of ``field`` becomes

    - ``before``: how far the part's window begins before what there is of operand ``operand`` (the pad at its begin),
    - ``after``: its own value and what the part leaves out of operand ``operand`` behind its window (the pad at its end),
    - ``shift``: its own value and the positions between the first element the part takes of operand ``operand`` and its first result,
    - ``length``: b - a,
    - ``start``: its own value + a.

    ``table`` is for an array that holds ``rows`` rows of one entry for each result from ``index`` on (negative: from its end): the part
    keeps its own entries, and in the first ``indices`` rows, indices into operand ``operand``, counts from the first element it takes.
    Negative indices stay.
    """

    field: str
    kind: str
    index: int = 0
    operand: int = 0
    rows: int = 0
    indices: int = 0


@dataclass(frozen=True)
class Cut:
    """An axis the work may be cut along. ``reaches`` has an entry for every operand (inputs first, then outputs) that parts read or write
    a part of; other operands are needed whole. ``multiple`` says that parts should begin at multiples of it where they can."""

    name: str
    size: int
    reaches: Mapping[int, Reach]
    patches: tuple[Patch, ...] = ()
    multiple: int = 1


@dataclass(frozen=True)
class Part:
    """Part [begin, end) of a cut."""

    cut: Cut
    begin: int
    end: int


def uncut(step: Step) -> Sequence[Cut]:
    """The cuts of a kernel that is always run whole."""
    return ()


def declared(step: Step) -> int:
    """The scratch of a kernel that needs no more for parts than for the whole."""
    return step.scratch


def part_of(step: Step, kernel: Kernel, parts: Sequence[Part]) -> Step:
    """The call that computes these parts, of different cuts, of a step: its views cut down, its parameters patched, its scratch enough
    for operands that lie anyhow."""
    whole = (*step.inputs, *step.outputs)
    views = list(whole)
    values = kernel.unpack(step.params)
    for part in parts:
        for patch in part.cut.patches:
            values[patch.field] = _patched(values[patch.field], patch, part, whole)
        for operand, reach in part.cut.reaches.items():
            low, high = reach.span(part.begin, part.end, views[operand].dims[reach.axis])
            views[operand] = views[operand].slice(reach.axis, low, high - low)
    count = len(step.inputs)
    cut = replace(step, inputs=tuple(views[:count]), outputs=tuple(views[count:]), params=kernel.pack(**values))
    return replace(cut, scratch=kernel.room(cut))


def _patched(value: Any, patch: Patch, part: Part, views: Sequence[View]) -> Any:
    if patch.kind == "table":
        return _rows_of(value, patch, part, views)
    if isinstance(value, tuple):
        return tuple(_patched(v, patch, part, views) if i == patch.index else v for i, v in enumerate(value))
    match patch.kind:
        case "length":
            return part.end - part.begin
        case "start":
            return value + part.begin
    reach = part.cut.reaches[patch.operand]
    size, at = views[patch.operand].dims[reach.axis], reach.at(part.begin)
    low, high = reach.span(part.begin, part.end, size)
    match patch.kind:
        case "before":
            return max(-at, 0)
        case "after":
            return value + size - high - max(at - low, 0)
        case "shift":
            return value + part.begin * reach.stride - low * reach.per
    raise ValueError(patch.kind)


def _rows_of(table: tuple[int, ...], patch: Patch, part: Part, views: Sequence[View]) -> tuple[int, ...]:
    reach, size = part.cut.reaches[patch.operand], part.cut.size
    low, _ = reach.span(part.begin, part.end, views[patch.operand].dims[reach.axis])
    first = patch.index % len(table)
    rows = [table[first + r * size + part.begin : first + r * size + part.end] for r in range(patch.rows)]
    counted = [tuple(i - low if i >= 0 else i for i in row) for row in rows[: patch.indices]]
    return (*table[:first], *(v for row in (*counted, *rows[patch.indices :]) for v in row), *table[first + patch.rows * size :])

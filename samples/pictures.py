"""Pictures of what chips do: their queues in time, and what lies where in on-chip memory. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from flaot.plan.program import Opcode, Space, Step
from flaot.plan.timeline import HOST, Span
from flaot.plan.usage import PS_PER_US
from flaot.report.chips import ChipReport

MB = 2**20
COLOURS = {
    "compute": "#2a7f3f", "compute, next node": "#8cc63f", "weights in": "#3b6fb6", "activations in": "#5cc8e0", "results out": "#e0566b",
    "host link": "#e3a62f", "host": "#9a9a9a",
}  # fmt: skip
"""By what a step does. Nodes of the model take turns in the two greens."""
INK, PEAK = "#333333", "#b00020"


@dataclass(frozen=True)
class Drawn:
    """A plan with one chip, and how it is called."""

    name: str
    report: ChipReport

    @property
    def end(self) -> float:
        """Microseconds of the whole run."""
        return self.report.line.end / PS_PER_US

    def kinds(self) -> list[str]:
        """What every step does: a key of COLOURS."""
        order: dict[tuple[str, ...], int] = {}
        return [_kind(s, order.setdefault(s.origin, len(order)) if s.opcode is Opcode.call and s.device != HOST else 0)
                for s in self.report.steps]  # fmt: skip


def _kind(step: Step, turn: int) -> str:
    if step.device == HOST:
        return "host"
    if step.opcode is Opcode.transfer:
        return "host link"
    if step.opcode is Opcode.call:
        return "compute, next node" if turn % 2 else "compute"
    if step.inputs[0].buffer.space is Space.constant:
        return "weights in"
    return "activations in" if step.outputs[0].buffer.space is Space.on_chip else "results out"


def timelines(drawn: Sequence[Drawn], path: Path) -> None:
    """One row per queue that does something, in one scale of time; below, the first part of the last chip's work from near."""
    figure = pyplot.figure(figsize=(11, 2.5 * len(drawn) + 3), layout="constrained")
    *whole, near = figure.subplots(len(drawn) + 1, 1)
    end = max(d.end for d in drawn)
    for axes, d in zip(whole, drawn, strict=True):
        _queues(axes, d, 0, end)
        use = d.report.usage.chips[0]
        axes.set_title(f"{d.name}: {use.cycles:,} cycles on the chip, {d.end:,.0f} us with the host and its link", loc="left")
    last = drawn[-1]
    begin, finish = _window(last)
    _queues(near, last, begin, finish)
    near.set_title(f"{last.name} close up: {finish - begin:.0f} us in which tiles come, are worked on, and go", loc="left")
    near.set_xlabel("microseconds")
    for x in (begin, finish):
        whole[-1].axvline(x, color=INK, linewidth=0.8, linestyle=":")
    _save(figure, path)


def _window(d: Drawn) -> tuple[float, float]:
    """A fifteenth of the chip's time, from the first load of a step that takes results out again; from its first load if none does."""
    spans, kinds = d.report.line.spans, d.kinds()
    fed = [i for i, kind in enumerate(kinds) if kind in ("weights in", "activations in")]
    out = {d.report.steps[i].origin for i, kind in enumerate(kinds) if kind == "results out"}
    first = next((i for i in fed if d.report.steps[i].origin in out), fed[0] if fed else 0)
    begin = spans[first].start / PS_PER_US
    return begin, begin + d.report.usage.chips[0].taken / PS_PER_US / 15


def _queues(axes: Axes, d: Drawn, begin: float, end: float) -> None:
    names = d.report.queues(1)
    kinds = d.kinds()
    used = sorted({s.queue for s in d.report.line.spans if s.device != HOST}, key=lambda q: (q != len(names) - 1, q))
    rows = {(HOST, 0): "host", **{(1, q): names[q] for q in used}}
    lines = {key: -i for i, key in enumerate(rows)}
    boxes: list[list[tuple[float, float]]] = []
    colours = []
    for span in d.report.line.spans:
        left, right = span.start / PS_PER_US, span.end / PS_PER_US
        if right > begin and left < end:
            boxes.append(_box(left, right, lines[_row(span)] - 0.4, lines[_row(span)] + 0.4))
            colours.append(COLOURS[kinds[span.step]])
    edge = 0.4 if end - begin < d.end / 3 else 0
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors="white", linewidths=edge))
    axes.set_yticks(list(lines.values()), list(rows.values()))
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.set_xlim(begin, end)
    _plain(axes)


def _row(span: Span) -> tuple[int, int]:
    return (HOST, 0) if span.device == HOST else (span.device, span.queue)


def memories(drawn: Sequence[Drawn], path: Path) -> None:
    """Address over time: a rectangle for what lies there, coloured by the step that wrote it, and the bytes in use."""
    sizes = [d.report.chips[0].machine.on_chip / MB for d in drawn]
    figure = pyplot.figure(figsize=(11, 1.6 + 7 * sum(sizes) / (sum(sizes) + 2)), layout="constrained")
    rows = figure.subplots(len(drawn), 1, sharex=True, squeeze=False, height_ratios=sizes)
    for (axes,), d, size in zip(rows, drawn, sizes, strict=True):
        _places(axes, d)
        peak = d.report.chips[0].machine.on_chip_peak / MB
        axes.axhline(peak, color=PEAK, linewidth=1.2, linestyle="--")
        axes.set_ylim(0, 1.06 * size)
        axes.set_ylabel("address, MiB")
        axes.set_title(f"{d.name}: {peak:.2f} of {size:.2f} MiB are used, by what wrote them", loc="left")
    rows[-1][0].set_xlim(0, max(d.end for d in drawn))
    rows[-1][0].set_xlabel("microseconds")
    lines = [Line2D([], [], color="black", label="bytes in use"), Line2D([], [], color=PEAK, linestyle="--", label="highest address")]
    _save(figure, path, lines)


def _places(axes: Axes, d: Drawn) -> None:
    held, kinds = d.report.on_chip_held(1), d.kinds()
    boxes = [_box(h.since / PS_PER_US, h.until / PS_PER_US, h.low / MB, h.high / MB) for h in held]
    colours = [COLOURS[kinds[h.step]] for h in held]
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors="white", linewidths=0.15))
    series = d.report.on_chip(1)
    times, counts = [t / PS_PER_US for t, _ in series], [n / MB for _, n in series]
    axes.step(times, counts, where="post", color="black", linewidth=1, path_effects=[withStroke(linewidth=2.5, foreground="white")])
    _plain(axes)


def _box(left: float, right: float, low: float, high: float) -> list[tuple[float, float]]:
    return [(left, low), (right, low), (right, high), (left, high)]


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=0, colors=INK)


def _save(figure: Figure, path: Path, lines: Sequence[Line2D] = ()) -> None:
    """Writes the picture, with what the colours in it mean."""
    shown = {to_hex(colour) for axes in figure.axes for part in axes.collections for colour in part.get_facecolor()}
    handles = [*(Patch(color=c, label=name) for name, c in COLOURS.items() if c in shown), *lines]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)

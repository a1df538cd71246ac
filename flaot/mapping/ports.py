"""Model inputs fed in another storage order than the model's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flaot.errors import UnsupportedError, UsageError, printable
from flaot.hcd import Board
from flaot.hcd.rules import active_units
from flaot.hcd.text import nearest
from flaot.ir.graph import Graph, Value
from flaot.ir.ops.transpose import Transpose
from flaot.mapping.orders import ChipLayouts


def feed_as(graph: Graph, asked: Mapping[str, str], board: Board) -> None:
    """Makes inputs take the layouts asked for by name: ``{"x": "NHWC"}`` gives x the shape [batch, height, width, channels].

    Raises UnsupportedError for a layout no chip of the board lists, UsageError for an input the model lacks or one that is not of rank 4.
    """
    chips = [ChipLayouts(h) for h in board.chips or board.all]
    for name, layout in asked.items():
        value = next((v for v in graph.inputs if v.name == name), None)
        if value is None:
            known = [v.name for v in graph.inputs]
            raise UsageError(f"--input-layout {printable(name)}={printable(layout)}: no such input; {nearest(name, known)}")
        chip = next((c for c in chips if layout in c.every), None)
        if chip is None:
            raise _unlisted(name, layout, chips)
        if value.type.rank != 4:
            raise UsageError(f"--input-layout {printable(name)}={layout}: the input has rank {value.type.rank}; layouts are of rank 4")
        _turn(graph, value, chip.order(layout, 4))


def _unlisted(name: str, layout: str, chips: Sequence[ChipLayouts]) -> UnsupportedError:
    listed = "; ".join(f"{c.hcd.name} lists {', '.join(c.every)}" for c in chips)
    split = any(layout in c.blocked(u) for c in chips for u in active_units(c.hcd.full))
    units = chips[0].hcd.full.compute_units
    unit = next((u for u, d in active_units(chips[0].hcd.full).items() if d.supported_layouts), next(iter(units)))
    return UnsupportedError(
        f"layout {printable(layout)}{', which is blocked or padded' if split else ''}; {listed}", where=f"input '{printable(name)}'",
        origin=chips[0].origin(unit), hint="it is not converted silently: feed one of the listed layouts",
    )


def _turn(graph: Graph, value: Value, order: tuple[int, ...]) -> None:
    """Gives the input the permuted shape, with a Transpose back before everything that reads it."""
    readers = graph.consumers(value)
    value.type = value.type.with_shape(tuple(value.type.shape[a] for a in order))
    if order == tuple(range(4)):
        return
    back = tuple(order.index(a) for a in range(4))
    turned = graph.add_node(Transpose(back), [value]).outputs[0]
    for node, slot in readers:
        graph.set_input(node, slot, turned)
    for output in graph.outputs:
        if output.value is value:
            output.value = turned

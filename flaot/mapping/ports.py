"""Model inputs fed in another storage order than the model's own."""

from __future__ import annotations

from collections.abc import Mapping

from flaot.errors import UnsupportedError, UsageError, printable
from flaot.hcd import Hcd
from flaot.hcd.rules import active_units
from flaot.hcd.text import nearest
from flaot.ir.graph import Graph, Value
from flaot.ir.ops.transpose import Transpose
from flaot.mapping.orders import ChipLayouts


def feed_as(graph: Graph, asked: Mapping[str, str], hcd: Hcd) -> None:
    """Makes inputs take the layouts asked for by name: ``{"x": "NHWC"}`` gives x the shape [batch, height, width, channels].

    Raises UnsupportedError for a layout the chip does not list, UsageError for an input the model lacks or one that is not of rank 4.
    """
    chip = ChipLayouts(hcd)
    for name, layout in asked.items():
        value = next((v for v in graph.inputs if v.name == name), None)
        if value is None:
            known = [v.name for v in graph.inputs]
            raise UsageError(f"--input-layout {printable(name)}={printable(layout)}: no such input; {nearest(name, known)}")
        if layout not in chip.every:
            listed = ", ".join(chip.every)
            units = active_units(hcd.full)
            unit = next((u for u, d in units.items() if d.supported_layouts), next(iter(hcd.full.compute_units)))
            blocked = ", which is blocked or padded" if any(layout in chip.blocked(u) for u in units) else ""
            raise UnsupportedError(
                f"layout {printable(layout)}{blocked}; {hcd.name} lists {listed}", where=f"input '{printable(name)}'",
                origin=chip.origin(unit), hint="it is not converted silently: feed one of the listed layouts",
            )
        if value.type.rank != 4:
            raise UsageError(f"--input-layout {printable(name)}={layout}: the input has rank {value.type.rank}; layouts are of rank 4")
        _turn(graph, value, chip.order(layout, 4))


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

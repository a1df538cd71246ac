"""The layouts stage: a storage order for every value of rank 3 to 5, as one labelling problem, then explicit Relayout nodes.

A Transpose is free when its two sides carry layouts in which it only renames the axes, and so is a Reshape that strides express.
"""

from __future__ import annotations

from collections.abc import Mapping

from flaot.errors import UnsupportedError
from flaot.ir.graph import HOST, Graph, Node, Place, Value
from flaot.ir.ops.relayout import Relayout
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import Layout, dense_strides, row_major
from flaot.kernels.base import Implementation, Storage
from flaot.mapping.assign import Solution, solve
from flaot.mapping.cost import CostModel
from flaot.mapping.decisions import Inserted
from flaot.mapping.layout_costs import INFINITE, RANKS, Labelling, same
from flaot.targets.devices import memory_of

NOTHING = Solution({}, 0.0, True)


def assign_layouts(
    graph: Graph, ways: Mapping[int, Implementation], model: CostModel | None = None
) -> tuple[list[Inserted], Solution]:
    """Sets ``Value.layout`` everywhere and inserts Relayout nodes, which get no entry in ``ways``. ``model`` describes the chips of
    the nodes that are not on the host."""
    nodes = graph.nodes()
    work = Labelling(graph, ways, model)
    on_chip = any(n.place.device != HOST.device for n in nodes)
    if not on_chip and not any(ways[n.id].storage(n) is Storage.last for n in nodes):
        for node in nodes:
            work.leave_as_view(node)
        return [], NOTHING
    problem = work.problem(nodes)
    solution = solve(problem)
    return Materialiser(work, {n.id: work.labels(n)[solution.labels[n.id]] for n in nodes}).run(nodes), solution


def same_storage(value: Value, layout: Layout) -> bool:
    """Whether the value's bytes lie as ``layout`` says (axes of size 1 do not matter)."""
    return same(value.type.shape, value.storage, layout)


class Materialiser:
    """Sets layouts and inserts what the labels ask for."""

    def __init__(self, work: Labelling, chosen: Mapping[int, str]) -> None:
        self.work, self.graph, self.chosen = work, work.graph, chosen
        self.made: dict[tuple[int, tuple[int, ...]], Value] = {}
        self.inserted: list[Inserted] = []

    def run(self, nodes: list[Node]) -> list[Inserted]:
        for node in nodes:
            label = self.chosen[node.id]
            for slot in range(len(node.inputs)):
                self._input(node, slot, label)
            for value in node.outputs:
                if value.type.rank in RANKS:
                    value.layout = self.work.order(label, value.type.rank)
            self.work.leave_as_view(node)
        for output in self.graph.outputs:
            plain = row_major(output.value.type.rank)
            if not output.value.is_constant and not same_storage(output.value, plain):
                output.value = self._convert(output.value, plain, None, f"output '{output.name}'")
        return self.inserted

    def _input(self, node: Node, slot: int, label: str) -> None:
        value = node.inputs[slot]
        if value is None or value.type.rank not in RANKS or (isinstance(node.op, Transpose | Reshape) and self.work.views(node)):
            return
        if value.is_constant and self.work.takes_plain(node):
            return
        layout = self.work.wanted(node, slot, value, label)
        if layout is None or same_storage(value, layout):
            return
        replaced = self._constant(value, layout) if value.is_constant else self._convert(value, layout, node, node.where)
        self.graph.set_input(node, slot, replaced)

    def _constant(self, value: Value, layout: Layout) -> Value:
        key = (value.id, dense_strides(value.type.shape, layout))
        if key not in self.made:
            assert value.data is not None
            copy = self.graph.add_constant(value.data, value.name, value.type.dtype)
            copy.layout = layout
            self.made[key] = copy
        return self.made[key]

    def _convert(self, value: Value, layout: Layout, reader: Node | None, wanted_by: str) -> Value:
        key = (value.id, dense_strides(value.type.shape, layout))
        if key not in self.made:
            if self.work.convert(value, value.storage, layout) == INFINITE:
                raise self._nobody(value, layout, wanted_by)
            origin = value.producer.origin if value.producer is not None else ()
            node = self.graph.add_node(Relayout(layout), [value], origin=origin)
            node.place = self._place(value, reader)
            node.outputs[0].layout, node.outputs[0].stored = layout, value.stored
            self.made[key] = node.outputs[0]
            self.inserted.append(self._record(value, layout, node, reader, wanted_by))
        return self.made[key]

    def _place(self, value: Value, reader: Node | None) -> Place:
        """Where the bytes lie."""
        if memory_of(value) == HOST.device:
            return HOST
        near = [value.producer, reader]
        return next(n.place for n in near if n is not None and n.place.device == memory_of(value))

    def _nobody(self, value: Value, layout: Layout, wanted_by: str) -> UnsupportedError:
        chip = self.work.chips[memory_of(value)]
        name, stated = chip.conversions(value.storage, layout)[0]
        found = f"'{_source(value).name}' is stored {self.work.name(value.storage)}, {wanted_by} wants {self.work.name(layout)}"
        return UnsupportedError(
            f"{found}, and on {chip.hcd.name} only {', '.join(stated.converted_by or ())} converts {name}",
            origin=chip.hcd.origin("layouts", name, "converted_by"),
            hint="add one of its units to converted_by, or route one of the two nodes to the host",
        )

    def _record(self, value: Value, layout: Layout, node: Node, reader: Node | None, wanted_by: str) -> Inserted:
        first, out = _source(value), reader is None or isinstance(reader.op, Transfer | Recast) and self._leads_out(reader)
        return Inserted(
            kind="Relayout", value=first.name, nbytes=value.stored_type.nbytes, cost_ns=self.work.convert(value, value.storage, layout),
            source=self.work.name(value.storage), target=self.work.name(layout), where=str(node.place), wanted_by=wanted_by,
            remedy="none: the model's outputs are row-major" if out else self._remedy(value, layout, reader),
            edge=out or first.producer is None,
        )

    def _remedy(self, value: Value, layout: Layout, reader: Node | None) -> str:
        """What would make a Relayout unnecessary."""
        first, held, wanted = _source(value), self.work.name(value.storage), self.work.name(layout)
        if first.producer is None and value.type.rank == 4:
            return f"feed the input as {wanted}: --input-layout {first.name}={wanted}"
        ends = [n for n in (reader, value.producer) if n is not None and n.place.device != HOST.device]
        if not ends:
            return f"none: the fastest kernels around it store {wanted} and {held}"
        for node, missing in zip(ends, (held, wanted), strict=False):
            chip = self.work.chips[node.place.device]
            if missing not in chip.readable(node):
                listed, origin = chip.listing(node)
                return f"list {missing} among {listed} ({origin})"
        chip = self.work.chips[ends[0].place.device]
        origin = chip.hcd.origin("tensor", "default_layout")
        return f"none: both ends take {held} and {wanted}, and the chip prefers {chip.every[0]} ({origin})"

    def _leads_out(self, node: Node) -> bool:
        """Whether a conversion ends at a model output."""
        while isinstance(node.op, Transfer | Recast):
            (value,) = node.outputs
            if self.graph.is_output(value):
                return True
            readers = self.graph.consumers(value)
            if not readers:
                return False
            node = readers[0][0]
        return False


def _source(value: Value) -> Value:
    """The value before transfers and casts."""
    while value.producer is not None and isinstance(value.producer.op, Transfer | Recast) and value.producer.inputs[0] is not None:
        value = value.producer.inputs[0]
    return value

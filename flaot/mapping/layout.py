"""The layouts stage: a storage order for every value of rank 3 to 5, as one labelling problem, then explicit Relayout nodes.

A node's label is the layout of its outputs. On the host kernels decide what they can have (fast convolutions want channels last,
element-wise ops take either); on a chip the descriptor does. A disagreement on an edge costs the time to rearrange the bytes where they
lie. A Transpose is free when its two sides carry layouts in which it only renames the axes, and so is a Reshape that strides express.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from flaot.ir.graph import HOST, Graph, Node, Place, Value
from flaot.ir.ops.relayout import Relayout
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import Layout, channels_last, dense_strides, row_major
from flaot.kernels.base import Implementation, Storage
from flaot.mapping.assign import Problem, Solution, solve
from flaot.mapping.cost import HOST_BYTES, CostModel
from flaot.mapping.decisions import Inserted
from flaot.mapping.orders import LAST, PLAIN, ChipLayouts
from flaot.plan.program import Buffer, Space, View
from flaot.targets.devices import memory_of

RANKS = range(3, 6)
INFINITE = float("inf")
OTHER = 0.05
"""What a layout other than the chip's default one costs at a node, as a part of what rearranging its outputs would."""

NOTHING = Solution({}, 0.0, True)


def assign_layouts(
    graph: Graph, ways: Mapping[int, Implementation], model: CostModel | None = None
) -> tuple[list[Inserted], Solution]:
    """Sets ``Value.layout`` everywhere and inserts Relayout nodes, which get no entry in ``ways``. ``model`` describes the chip of the
    nodes that are not on the host."""
    nodes = graph.nodes()
    work = _Labelling(graph, ways, model)
    on_chip = any(n.place.device != HOST.device for n in nodes)
    if not on_chip and not any(ways[n.id].storage(n) is Storage.last for n in nodes):
        for node in nodes:
            work.leave_as_view(node)
        return [], NOTHING
    problem = work.problem(nodes)
    solution = solve(problem)
    return _Materialiser(work, {n.id: work.labels(n)[solution.labels[n.id]] for n in nodes}).run(nodes), solution


def same_storage(value: Value, layout: Layout) -> bool:
    """Whether the value's bytes lie as ``layout`` says (axes of size 1 do not matter)."""
    return _same(value.type.shape, value.storage, layout)


@cache
def _same(shape: tuple[int, ...], a: Layout, b: Layout) -> bool:
    return a == b or dense_strides(shape, a) == dense_strides(shape, b)


class _Labelling:
    """What labels nodes may have, and what they cost."""

    def __init__(self, graph: Graph, ways: Mapping[int, Implementation], model: CostModel | None) -> None:
        self.graph, self.ways, self.model = graph, ways, model
        self.chip = ChipLayouts(model.hcd) if model is not None else None
        self._labels: dict[int, tuple[str, ...]] = {}

    def order(self, name: str, rank: int) -> Layout:
        if rank not in RANKS or name == PLAIN:
            return row_major(rank)
        return channels_last(rank) if name == LAST or self.chip is None else self.chip.order(name, rank)

    def labels(self, node: Node) -> tuple[str, ...]:
        if node.id not in self._labels:
            self._labels[node.id] = self._find_labels(node)
        return self._labels[node.id]

    def _find_labels(self, node: Node) -> tuple[str, ...]:
        moves = isinstance(node.op, Transfer | Recast)
        if self.chip is None or (node.place.device == HOST.device and not moves):
            return (PLAIN, LAST)
        return tuple(dict.fromkeys((*self.chip.every, PLAIN, LAST))) if node.place.device == HOST.device else self.chip.written(node)

    # -- costs ---------------------------------------------------------------------------------------------------------

    def problem(self, nodes: list[Node]) -> Problem:
        problem = Problem({n.id: self._own(n) for n in nodes}, [], {n.id: self.labels(n) for n in nodes})
        for node in nodes:
            for slot, value in enumerate(node.inputs):
                if value is None or value.is_constant or value.type.rank not in RANKS:
                    continue
                made = [value.storage] if value.producer is None else self._made(value)
                table = [[self._reading(node, slot, value, layout, label) for label in self.labels(node)] for layout in made]
                if not any(map(any, table)):
                    continue
                if value.producer is None:
                    problem.costs[node.id] = [c + t for c, t in zip(problem.costs[node.id], table[0], strict=True)]
                else:
                    problem.edges.append((value.producer.id, node.id, np.array(table)))
        for output in self.graph.outputs:
            value, maker = output.value, output.value.producer
            if maker is not None:
                wrong = [self._convert(value, layout, row_major(value.type.rank)) for layout in self._made(value)]
                problem.costs[maker.id] = [c + w for c, w in zip(problem.costs[maker.id], wrong, strict=True)]
        return problem

    def _made(self, value: Value) -> list[Layout]:
        assert value.producer is not None
        return [self.order(name, value.type.rank) for name in self.labels(value.producer)]

    def _own(self, node: Node) -> list[float]:
        if isinstance(node.op, Transfer | Recast):
            return [0.0] * len(self.labels(node))
        if node.place.device != HOST.device:
            assert self.chip is not None
            moved = sum(self.copying(v) for v in node.outputs if v.type.rank == 4)
            return [0.0 if name == self.chip.every[0] else OTHER * moved for name in self.labels(node)]
        storage = self.ways[node.id].storage(node)
        plain_only = storage is Storage.plain or not any(v.type.rank in RANKS for v in node.outputs)
        return [INFINITE if storage is Storage.last else 0.0, INFINITE if plain_only else 0.0]

    def _reading(self, node: Node, slot: int, value: Value, layout: Layout, label: str) -> float:
        """What it costs the node, so labelled, to read the value stored in ``layout``."""
        if isinstance(node.op, Transpose | Reshape) and self.views(node):
            return 0.0 if self.view(node, layout, label) else self.copying(value)
        wanted = self.wanted(node, slot, value, label)
        return 0.0 if wanted is None else self._convert(value, layout, wanted)

    def views(self, node: Node) -> bool:
        return isinstance(node.op, Transpose) or node.place.device != HOST.device

    def wanted(self, node: Node, slot: int, value: Value, label: str) -> Layout | None:
        """The layout the node, so labelled, wants an input in; None for any."""
        rank = value.type.rank
        if node.place.device != HOST.device:
            assert self.chip is not None
            return self.order(self.chip.read(node, label), rank)
        if isinstance(node.op, Transfer | Recast):
            return self.order(label, rank)
        match self.wants(node, slot):
            case Storage.plain:
                return row_major(rank)
            case Storage.last:
                return channels_last(rank)
            case Storage.either:
                return self.order(label, rank)
        return None

    def wants(self, node: Node, slot: int) -> Storage:
        """How a host node wants an input stored."""
        value = node.inputs[slot]
        storage = self.ways[node.id].input_storage(node, slot)
        if storage is Storage.either and (value is None or value.type.rank != node.outputs[0].type.rank):
            return Storage.any
        return storage

    def view(self, node: Node, layout: Layout, label: str) -> bool:
        """Whether a Transpose or Reshape is nothing but another view of its input."""
        (x, y) = (node.inputs[0], node.outputs[0])
        assert x is not None
        wanted = self.order(label, y.type.rank)
        if isinstance(node.op, Transpose):
            return _same(y.type.shape, tuple(node.op.perm.index(axis) for axis in layout), wanted)
        shown = View.dense(Buffer(Space.arena, 0), x.type, layout).reshaped(y.type.shape)
        return shown is not None and shown.same_memory(View.dense(shown.buffer, y.type, wanted))

    def _convert(self, value: Value, held: Layout, wanted: Layout) -> float:
        return 0.0 if _same(value.type.shape, held, wanted) else self.copying(value)

    def copying(self, value: Value) -> float:
        rate = HOST_BYTES if memory_of(value) == HOST.device or self.model is None else self.model.bandwidth
        return 2 * value.stored_type.nbytes / rate

    def leave_as_view(self, node: Node) -> None:
        """Lets a Transpose on the host be a mere view, in whatever order that is, when every reader takes any strides."""
        if not isinstance(node.op, Transpose) or node.place.device != HOST.device or node.inputs[0] is None:
            return
        (y,) = node.outputs
        readers = self.graph.consumers(y)
        free = all(n.place.device == HOST.device and not isinstance(n.op, Transfer | Recast) for n, _ in readers)
        if readers and free and not self.graph.is_output(y) and all(self.wants(n, slot) is Storage.any for n, slot in readers):
            y.layout = tuple(node.op.perm.index(axis) for axis in node.inputs[0].storage)

    def name(self, layout: Layout) -> str:
        """How the record names a layout."""
        known = (PLAIN, LAST) if self.chip is None else tuple(dict.fromkeys((PLAIN, LAST, *self.chip.every)))
        return next((n for n in known if self.order(n, len(layout)) == layout), str(layout))


class _Materialiser:
    """Sets layouts and inserts what the labels ask for."""

    def __init__(self, work: _Labelling, chosen: Mapping[int, str]) -> None:
        self.work, self.graph, self.chosen = work, work.graph, chosen
        self.made: dict[tuple[int, Layout], Value] = {}
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
        if value.is_constant and node.place.device != HOST.device and self.work.chip is not None and PLAIN in self.work.chip.every:
            return
        layout = self.work.wanted(node, slot, value, label)
        if layout is None or same_storage(value, layout):
            return
        replaced = self._constant(value, layout) if value.is_constant else self._convert(value, layout, node, node.where)
        self.graph.set_input(node, slot, replaced)

    def _constant(self, value: Value, layout: Layout) -> Value:
        key = (value.id, layout)
        if key not in self.made:
            assert value.data is not None
            copy = self.graph.add_constant(value.data, value.name, value.type.dtype)
            copy.layout = layout
            self.made[key] = copy
        return self.made[key]

    def _convert(self, value: Value, layout: Layout, reader: Node | None, wanted_by: str) -> Value:
        key = (value.id, layout)
        if key not in self.made:
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

    def _record(self, value: Value, layout: Layout, node: Node, reader: Node | None, wanted_by: str) -> Inserted:
        first, edge = _source(value), reader is None or isinstance(reader.op, Transfer | Recast) and self._leads_out(reader)
        held, wanted = self.work.name(value.storage), self.work.name(layout)
        if edge:
            remedy = "none: the model's outputs are row-major"
        elif first.producer is None:
            remedy = f"feed the input in that order: --input-layout {first.name}={wanted}"
        else:
            chip = self.work.chip
            at = f" ({chip.origin(node.place.unit)})" if chip is not None and node.place.unit else ""
            remedy = f"let {wanted_by} take {held}{at}"
        return Inserted(
            kind="Relayout", value=first.name, nbytes=value.stored_type.nbytes, cost_ns=self.work.copying(value), source=held,
            target=wanted, where=str(node.place), wanted_by=wanted_by, remedy=remedy, edge=edge or first.producer is None,
        )

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

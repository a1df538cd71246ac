"""The labelling problem of the layouts stage: which layouts nodes may have, and what they cost.

A node's label is the layout of its outputs. On the host kernels decide what they can have (fast convolutions want channels last,
element-wise ops take either); on a chip the descriptor does. A disagreement on an edge costs the time to rearrange the bytes where they
lie, once for every layout a value is read in, however many readers share it: a value that several nodes read has a label of its own, the
set of layouts it exists in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import combinations

import numpy as np

from flaot.ir.graph import HOST, Graph, Node, Value
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import Layout, channels_last, dense_strides, row_major
from flaot.kernels.base import Implementation, Storage
from flaot.mapping.assign import Problem
from flaot.mapping.cost import CostModel, nanoseconds
from flaot.mapping.orders import LAST, PLAIN, ChipLayouts, order_of
from flaot.plan.program import Buffer, Space, View
from flaot.targets.devices import HostSpeed, memory_of

RANKS = range(3, 6)
INFINITE = float("inf")
OTHER = 0.05
"""What a layout other than the chip's default one costs at a node, as a part of what rearranging its outputs would."""


@cache
def same(shape: tuple[int, ...], a: Layout, b: Layout) -> bool:
    """Whether two layouts store a tensor of this shape alike (axes of size 1 do not matter)."""
    return a == b or dense_strides(shape, a) == dense_strides(shape, b)


def _one_of(known: list[Layout], value: Value, layout: Layout | None) -> set[Layout]:
    """The layout as the one among the known that stores the value like it, to which it is added; nothing for None."""
    if layout is None:
        return set()
    found = next((k for k in known if same(value.type.shape, k, layout)), None)
    if found is None:
        known.append(layout)
    return {found or layout}


class Labelling:
    """What labels nodes may have, and what they cost."""

    def __init__(self, graph: Graph, ways: Mapping[int, Implementation], model: CostModel | None) -> None:
        self.graph, self.ways, self.model = graph, ways, model
        self.chips = {h.name: ChipLayouts(h) for h in model.board.chips} if model is not None else {}
        self.every = tuple(dict.fromkeys(n for c in self.chips.values() for n in c.every))
        self._axes = {n: axes for c in self.chips.values() for n, axes in c.axes.items()}
        self._labels: dict[int, tuple[str, ...]] = {}

    def order(self, name: str, rank: int) -> Layout:
        """What a name means, on every chip of the plan."""
        if rank not in RANKS or name == PLAIN:
            return row_major(rank)
        return channels_last(rank) if name == LAST or not self._axes else order_of(name, self._axes[name], rank)

    def labels(self, node: Node) -> tuple[str, ...]:
        if node.id not in self._labels:
            self._labels[node.id] = self._find_labels(node)
        return self._labels[node.id]

    def _find_labels(self, node: Node) -> tuple[str, ...]:
        if node.place.device != HOST.device:
            return self.chips[node.place.device].written(node) or (PLAIN,)
        moves = isinstance(node.op, Transfer | Recast)
        return tuple(dict.fromkeys((*self.every, PLAIN, LAST))) if moves else (PLAIN, LAST)

    # -- costs ---------------------------------------------------------------------------------------------------------

    def problem(self, nodes: list[Node]) -> Problem:
        """Labels are indices into :meth:`labels`; the sets of layouts a value exists in are labels under the negative of its id - 1."""
        problem = Problem({n.id: self._own(n) for n in nodes}, [], {n.id: self.labels(n) for n in nodes})
        for value in (*self.graph.inputs, *(v for n in nodes for v in n.outputs)):
            if value.type.rank in RANKS:
                self._add_readers(problem, value)
        return problem

    def _add_readers(self, problem: Problem, value: Value) -> None:
        """Edges from the value's producer to what reads it."""
        made = [value.storage] if value.producer is None else self._made(value)
        wanted: dict[int, list[set[Layout]]] = {}
        known: list[Layout] = []
        for node, slot in self.graph.consumers(value):
            if isinstance(node.op, Transpose | Reshape) and self.views(node):
                table = [[0.0 if self.view(node, m, label) else self.copying(value) for label in self.labels(node)] for m in made]
                self._link(problem, value.producer, node.id, table)
                continue
            asked = wanted.setdefault(node.id, [set() for _ in self.labels(node)])
            for layouts, label in zip(asked, self.labels(node), strict=True):
                layouts |= _one_of(known, value, self.wanted(node, slot, value, label))
        always = _one_of(known, value, row_major(value.type.rank) if self.graph.is_output(value) else None)
        if all(same(value.type.shape, m, layout) for m in made for layout in known):
            return
        wanted = {n: needs for n, needs in wanted.items() if any(needs)}
        if len(wanted) + bool(always) == 1:
            reader, needs = next(iter(wanted.items()), (None, [always]))
            self._link(problem, value.producer, reader, [[self._copies(value, m, layouts) for layouts in needs] for m in made])
            return
        sets = [set(s) for n in range(len(known) + 1) for s in combinations(known, n) if always <= set(s)]
        hub = -value.id - 1
        problem.costs[hub] = [0.0] * len(sets)
        self._link(problem, value.producer, hub, [[self._copies(value, m, s) for s in sets] for m in made])
        for reader, needs in wanted.items():
            problem.edges.append((hub, reader, np.array([[0.0 if layouts <= s else INFINITE for layouts in needs] for s in sets])))

    def _link(self, problem: Problem, maker: Node | None, reader: int | None, table: list[list[float]]) -> None:
        """Adds a table of costs [label of the maker, label of the reader]; without one of them it is of the other alone."""
        if not any(map(any, table)) or (maker is None and reader is None):
            return
        if maker is not None and reader is not None:
            problem.edges.append((maker.id, reader, np.array(table)))
            return
        n, added = (reader or 0, table[0]) if maker is None else (maker.id, [row[0] for row in table])
        problem.costs[n] = [c + x for c, x in zip(problem.costs[n], added, strict=True)]

    def _copies(self, value: Value, held: Layout, wanted: set[Layout]) -> float:
        """What it costs to have the value in all these layouts."""
        return sum(self.convert(value, held, layout) for layout in wanted)

    def _made(self, value: Value) -> list[Layout]:
        assert value.producer is not None
        return [self.order(name, value.type.rank) for name in self.labels(value.producer)]

    def _own(self, node: Node) -> list[float]:
        if isinstance(node.op, Transfer | Recast):
            return [0.0] * len(self.labels(node))
        if node.place.device != HOST.device:
            first = self.chips[node.place.device].every[:1]
            moved = sum(self.copying(v) for v in node.outputs if v.type.rank == 4)
            return [0.0 if name in first else OTHER * moved for name in self.labels(node)]
        storage = self.ways[node.id].storage(node)
        plain_only = storage is Storage.plain or not any(v.type.rank in RANKS for v in node.outputs)
        return [INFINITE if storage is Storage.last else 0.0, INFINITE if plain_only else 0.0]

    def views(self, node: Node) -> bool:
        return isinstance(node.op, Transpose) or node.place.device != HOST.device

    def wanted(self, node: Node, slot: int, value: Value, label: str) -> Layout | None:
        """The layout the node, so labelled, wants an input in; None for any."""
        rank = value.type.rank
        if node.place.device != HOST.device:
            return self.order(self.chips[node.place.device].read(node, label), rank)
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

    def takes_plain(self, node: Node) -> bool:
        """Whether a chip node reads row-major constants, whatever its label: then the plan holds them once, as the model does."""
        return node.place.device != HOST.device and PLAIN in (self.chips[node.place.device].readable(node) or (PLAIN,))

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
            return same(y.type.shape, tuple(node.op.perm.index(axis) for axis in layout), wanted)
        shown = View.dense(Buffer(Space.arena, 0), x.type, layout).reshaped(y.type.shape)
        return shown is not None and shown.same_memory(View.dense(shown.buffer, y.type, wanted))

    def convert(self, value: Value, held: Layout, wanted: Layout) -> float:
        """Nanoseconds to rearrange a value where it lies; infinite where nobody can, by the descriptor."""
        if same(value.type.shape, held, wanted):
            return 0.0
        chip = self.chips.get(memory_of(value))
        if chip is None:
            return self.copying(value)
        setup, cost = 0.0, self.copying(value)
        for _, stated in chip.conversions(held, wanted):
            if stated.converted_by is not None and set(stated.converted_by) <= {HOST.device}:
                return INFINITE
            if stated.convert_gb_per_s is not None:
                cost = max(cost, value.stored_type.nbytes / stated.convert_gb_per_s)
            setup = max(setup, nanoseconds(stated.convert_setup_cycles, chip.hcd.full.clock_mhz))
        return setup + cost

    def copying(self, value: Value) -> float:
        """Nanoseconds to read and write every byte of a value where it lies."""
        rate = self.model.bandwidth(memory_of(value)) if self.model is not None else HostSpeed.bytes
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
        known = tuple(dict.fromkeys((PLAIN, LAST, *self.every)))
        return next((n for n in known if self.order(n, len(layout)) == layout), str(layout))

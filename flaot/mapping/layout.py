"""The layouts stage: row-major or channels last for every rank 3 to 5 value, by minimum cut, then explicit Relayout nodes.

A node's label is the storage of its outputs. Kernels that fix it (fast convolutions want channels last) are the terminals of the cut;
element-wise ops and their like take either. A disagreement on an edge costs the bytes that would have to be rearranged. A Transpose
between NCHW and NHWC is free when its two sides carry opposite labels: the same bytes under another name.
"""

from __future__ import annotations

from dataclasses import dataclass

from flaot.ir.graph import Graph, Node, Value
from flaot.ir.ops.relayout import Relayout
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import Layout, channels_last, dense_strides, row_major
from flaot.kernels.base import Implementation, Storage
from flaot.mapping.cut import Pair, assign

RANKS = range(3, 6)
INFINITE = float("inf")


@dataclass(frozen=True)
class Conversion:
    """A Relayout the stage inserted: the value's name, its bytes and the node that wanted it."""

    value: str
    nbytes: int
    wanted_by: str


def assign_layouts(graph: Graph, ways: dict[int, Implementation]) -> list[Conversion]:
    """Sets ``Value.layout`` everywhere and inserts Relayout nodes (which get no entry in ``ways``)."""
    nodes = graph.nodes()
    if not any(ways[n.id].storage(n) is Storage.last for n in nodes):
        for node in nodes:
            _leave_as_view(graph, node, ways)
        return []
    labels = assign(_unary(graph, nodes, ways), _pairs(nodes, ways))
    return _Materialiser(graph, ways, labels).run(nodes)


def same_storage(value: Value, layout: Layout) -> bool:
    """Whether the value's bytes lie as ``layout`` says (axes of size 1 do not matter)."""
    shape = value.type.shape
    return dense_strides(shape, value.storage) == dense_strides(shape, layout)


def _matters(value: Value) -> bool:
    """Whether the two labels store this value differently."""
    shape = value.type.shape
    return len(shape) in RANKS and dense_strides(shape) != dense_strides(shape, channels_last(len(shape)))


def _wants(node: Node, slot: int, way: Implementation) -> Storage:
    value = node.inputs[slot]
    storage = way.input_storage(node, slot)
    if storage is Storage.either and (value is None or value.type.rank != node.outputs[0].type.rank):
        return Storage.any
    return storage


def _unary(graph: Graph, nodes: list[Node], ways: dict[int, Implementation]) -> dict[int, tuple[float, float]]:
    costs: dict[int, list[float]] = {}
    for node in nodes:
        storage = ways[node.id].storage(node)
        plain_only = storage is Storage.plain or not any(v.type.rank in RANKS for v in node.outputs)
        costs[node.id] = [INFINITE if storage is Storage.last else 0.0, INFINITE if plain_only else 0.0]
    for node in nodes:
        for slot, value in enumerate(node.inputs):
            if value is None or value.is_constant or not _matters(value) or _turn(node) is not None:
                continue
            want = _wants(node, slot, ways[node.id])
            if value.producer is None:
                if want is Storage.either:
                    costs[node.id][1] += value.type.nbytes
            elif want in (Storage.plain, Storage.last):
                costs[value.producer.id][want is Storage.plain] += value.type.nbytes
    for output in graph.outputs:
        if output.value.producer is not None and _matters(output.value):
            costs[output.value.producer.id][1] += output.value.type.nbytes
    return {n: (c[0], c[1]) for n, c in costs.items()}


def _pairs(nodes: list[Node], ways: dict[int, Implementation]) -> list[Pair]:
    pairs: list[Pair] = []
    for node in nodes:
        for slot, value in enumerate(node.inputs):
            if value is None or value.producer is None or not _matters(value):
                continue
            turn = _turn(node)
            if turn:
                pairs.append((value.producer.id, node.id, float(value.type.nbytes), False))
            elif turn is None and _wants(node, slot, ways[node.id]) is Storage.either:
                pairs.append((value.producer.id, node.id, float(value.type.nbytes), True))
    return pairs


def _turn(node: Node) -> bool | None:
    """For a Transpose: True when it turns NCHW into NHWC or back, False for another permutation; None for other ops."""
    if not isinstance(node.op, Transpose):
        return None
    rank = len(node.op.perm)
    last = channels_last(rank)
    back = tuple(last.index(i) for i in range(rank))
    return node.op.perm in (last, back) if rank in RANKS else False


def composed(node: Node) -> Layout:
    """The layout of a Transpose's output when it is nothing but a view of its input as stored."""
    assert isinstance(node.op, Transpose) and node.inputs[0] is not None
    return tuple(node.op.perm.index(axis) for axis in node.inputs[0].storage)


def _leave_as_view(graph: Graph, node: Node, ways: dict[int, Implementation]) -> None:
    """Lets a Transpose be a mere view, in whatever order that is, when every reader takes any strides."""
    if _turn(node) is None:
        return
    (y,) = node.outputs
    readers = graph.consumers(y)
    if readers and not graph.is_output(y) and all(_wants(n, slot, ways[n.id]) is Storage.any for n, slot in readers):
        y.layout = composed(node)


class _Materialiser:
    def __init__(self, graph: Graph, ways: dict[int, Implementation], labels: dict[int, int]) -> None:
        self.graph, self.ways, self.labels = graph, ways, labels
        self.made: dict[tuple[int, Layout], Value] = {}
        self.conversions: list[Conversion] = []

    def run(self, nodes: list[Node]) -> list[Conversion]:
        for node in nodes:
            label = self.labels[node.id]
            if _turn(node) is None:
                for slot in range(len(node.inputs)):
                    self._input(node, slot, label)
            for value in node.outputs:
                if value.type.rank in RANKS:
                    value.layout = channels_last(value.type.rank) if label else row_major(value.type.rank)
            _leave_as_view(self.graph, node, self.ways)
        for output in self.graph.outputs:
            if not output.value.is_constant and not same_storage(output.value, row_major(output.value.type.rank)):
                output.value = self._convert(output.value, row_major(output.value.type.rank), f"output '{output.name}'")
        return self.conversions

    def _input(self, node: Node, slot: int, label: int) -> None:
        value = node.inputs[slot]
        if value is None or not _matters(value):
            return
        want = _wants(node, slot, self.ways[node.id])
        if want is Storage.any:
            return
        last = label == 1 if want is Storage.either else want is Storage.last
        layout = channels_last(value.type.rank) if last else row_major(value.type.rank)
        if same_storage(value, layout):
            return
        if value.is_constant:
            self.graph.set_input(node, slot, self._constant(value, layout))
        else:
            self.graph.set_input(node, slot, self._convert(value, layout, node.where))

    def _constant(self, value: Value, layout: Layout) -> Value:
        key = (value.id, layout)
        if key not in self.made:
            assert value.data is not None
            copy = self.graph.add_constant(value.data, value.name, value.type.dtype)
            copy.layout = layout
            self.made[key] = copy
        return self.made[key]

    def _convert(self, value: Value, layout: Layout, wanted_by: str) -> Value:
        key = (value.id, layout)
        if key not in self.made:
            origin = value.producer.origin if value.producer is not None else ()
            node = self.graph.add_node(Relayout(layout), [value], origin=origin)
            node.outputs[0].layout = layout
            self.made[key] = node.outputs[0]
            self.conversions.append(Conversion(value.name, value.type.nbytes, wanted_by))
        return self.made[key]

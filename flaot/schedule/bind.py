"""Where every value lies: which values share memory, and the steps that remain.

Three ways to save a copy: a value that is only another view of its input (Reshape, Transpose, Slice) shows the input's memory; the
input of a Concat is written by its producer straight into its part of the result; an element-wise op overwrites an input that nobody
reads afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import HOST, Graph, GraphOutput, Node, Value
from flaot.kernels.base import Implementation
from flaot.plan.program import Buffer, Named, Port, Program, Space, View, normal_strides
from flaot.schedule.lower import Lowering
from flaot.targets.devices import Devices, memory_of

Ways = dict[int, Implementation]


def is_view(way: Implementation) -> bool:
    """Whether the implementation may declare its output a view of its input."""
    return type(way).alias is not Implementation.alias


def bind(graph: Graph, order: Sequence[Node], ways: Ways, devices: Devices) -> Program:
    """A program with every step and buffer; memory offsets are not yet planned."""
    return _Binder(graph, order, ways, devices).run()


class _Binder:
    def __init__(self, graph: Graph, order: Sequence[Node], ways: Ways, devices: Devices) -> None:
        self.graph, self.order, self.ways, self.devices = graph, order, ways, devices
        self.program = Program(alignment=devices.host.alignment, frozen=list(graph.frozen))
        self.places: dict[int, View] = {}
        self.pending: dict[int, int] = {}
        self.parents: dict[int, tuple[Node, int]] = {}
        self.lowering = Lowering(devices, self.view)
        self.late: list[tuple[GraphOutput, Buffer]] = []

    def run(self) -> Program:
        self._ports()
        self._find_parents()
        for node in self.order:
            self._node(node)
        for output, buffer in self.late:
            target = View.dense(buffer, output.value.type)
            self.lowering.on_host(output.name)
            self.lowering.copy(self.lowering.view(output.value), target)
        self.program.steps = self.lowering.steps
        return self.program

    def view(self, value: Value) -> View:
        return self.places[value.id]

    # -- ports ---------------------------------------------------------------------------------------------------------

    def _ports(self) -> None:
        for i, value in enumerate(self.graph.inputs):
            buffer = Buffer(Space.input, value.type.nbytes, value.name, index=i)
            self._place(value, View.dense(buffer, value.type))
            self.program.inputs.append(Port(value.name, self.places[value.id]))
        for i, output in enumerate(self.graph.outputs):
            value = output.value
            buffer = Buffer(Space.output, value.type.nbytes, output.name, index=i)
            view = View.dense(buffer, value.type)
            self.program.outputs.append(Port(output.name, view))
            if self._writes_output(value):
                self._place(value, view)
            else:
                self.late.append((output, buffer))

    def _writes_output(self, value: Value) -> bool:
        if value.producer is None or value.id in self.places or memory_of(value) != HOST.device:
            return False
        plain = View.dense(Buffer(Space.output, 0), value.type)
        return plain.same_memory(View.dense(plain.buffer, value.type, value.storage))

    # -- concatenations ------------------------------------------------------------------------------------------------

    def _find_parents(self) -> None:
        for node in self.order:
            way = self.ways[node.id]
            if type(way).parts is Implementation.parts or node.place.device != HOST.device:
                continue
            probe = View.dense(Buffer(Space.arena, 0), node.outputs[0].type, node.outputs[0].storage)
            for slot in way.parts(node, probe):
                value = node.inputs[slot]
                if value is not None and self._can_write_part(value, node):
                    self.parents[value.id] = (node, slot)

    def _can_write_part(self, value: Value, node: Node) -> bool:
        if value.producer is None or value.id in self.parents or value.id in self.places:
            return False
        if self.graph.is_output(value) or is_view(self.ways[value.producer.id]):
            return False
        once = sum(v is value for v in node.inputs) == 1
        return once and value.storage == node.outputs[0].storage and memory_of(value) == HOST.device

    def _locate(self, value: Value) -> View:
        """The place of a value about to be written: its part of a concatenation (allocated on demand) or a new buffer."""
        chain = [value]
        while chain[-1].id not in self.places and chain[-1].id in self.parents:
            chain.append(self.parents[chain[-1].id][0].outputs[0])
        root = chain.pop()
        if root.id not in self.places:
            self._place(root, View.dense(self.devices.buffer(root), root.stored_type, root.storage))
        for v in reversed(chain):
            node, slot = self.parents[v.id]
            self._place(v, self.ways[node.id].parts(node, self.places[node.outputs[0].id])[slot])
        return self.places[value.id]

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        way = self.ways[node.id]
        if not self._alias(node, way):
            for made in node.outputs:
                if made.id not in self.places and not self._reuse(node, way, made):
                    self._locate(made)
            self.lowering.run(node, way)
        for value in node.inputs:
            if value is not None and value.id in self.places:
                self.pending[id(self.places[value.id].buffer)] -= 1
        last = len(self.lowering.steps) - 1
        if last >= 0:
            self.program.names += [Named(name, self.places[v.id], last) for v in node.outputs for name in v.names]

    def _alias(self, node: Node, way: Implementation) -> bool:
        free = all(v.id not in self.places and v.id not in self.parents for v in node.outputs)
        if not is_view(way) or not free:
            return False
        views = way.alias(node, [None if v is None or v.is_constant else self.places[v.id] for v in node.inputs])
        if views is None or not all(self._allows(v, view) for v, view in zip(node.outputs, views, strict=True)):
            return False
        for value, view in zip(node.outputs, views, strict=True):
            self._place(value, view)
        return True

    def _allows(self, value: Value, view: View) -> bool:
        """Whether the view may stand for the value: on a chip it begins where a tensor may and fills its layout."""
        if memory_of(value) == HOST.device:
            return True
        whole = View.dense(view.buffer, value.stored_type, value.storage)
        aligned = view.offset % self.devices.chip(memory_of(value)).alignment == 0
        return aligned and normal_strides(view.dims, view.strides) == normal_strides(whole.dims, whole.strides)

    def _reuse(self, node: Node, way: Implementation, out: Value) -> bool:
        """Overwrites an input that dies here."""
        if out.slot != 0 or out.id in self.parents or node.place.device != HOST.device:
            return False
        slots = way.in_place(node)
        for slot in slots:
            value = node.inputs[slot] if slot < len(node.inputs) else None
            if value is None or value.is_constant:
                continue
            view = self.places[value.id]
            wanted = View.dense(view.buffer, out.stored_type, out.storage)
            if view.buffer.space is Space.arena and view.same_memory(wanted) and self._dies(node, view, slots):
                self._place(out, wanted)
                return True
        return False

    def _dies(self, node: Node, view: View, slots: Sequence[int]) -> bool:
        """Whether this node is the last to read the view's buffer, and reads it only as this very view through one of the slots."""
        reads = [(i, self.places[v.id]) for i, v in enumerate(node.inputs) if v is not None and not v.is_constant]
        same = [(i, v) for i, v in reads if v.buffer is view.buffer]
        return self.pending[id(view.buffer)] == len(same) and all(i in slots and v.same_memory(view) for i, v in same)

    def _place(self, value: Value, view: View) -> None:
        self.places[value.id] = view
        reads = len(self.graph.consumers(value)) + sum(o.value is value for o in self.graph.outputs)
        self.pending[id(view.buffer)] = self.pending.get(id(view.buffer), 0) + reads


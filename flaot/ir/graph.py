"""The graph: nodes and values over a private networkx.MultiDiGraph.

Order is by creation index, never by name or hash, so equal inputs give equal graphs. The MultiDiGraph has one vertex per node
(its creation index) and one edge per use, so ``Add(x, x)`` keeps both; graph inputs and constants have no vertex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

import networkx as nx
import numpy as np

from flaot.errors import printable
from flaot.ir.op import Op
from flaot.ir.place import HOST as HOST
from flaot.ir.place import Facts
from flaot.ir.place import Place as Place
from flaot.ir.types import DType, Frozen, Layout, TensorType, row_major


@dataclass(eq=False)
class Value:
    """One tensor. ``data`` is set for constants, ``producer`` for node outputs, neither for graph inputs.

    ``names`` are the ONNX value names this tensor is known by, first the main one. ``layout`` is the storage order
    chosen by the layouts stage, ``stored`` the element type chosen by the dtypes stage for memory (None: that of ``type``): a chip that
    computes float32 values in float16 keeps the type and stores float16.
    """

    id: int
    names: tuple[str, ...]
    type: TensorType
    producer: Node | None = None
    slot: int = 0
    data: np.ndarray | None = None
    layout: Layout | None = None
    stored: DType | None = None

    @property
    def stored_type(self) -> TensorType:
        """The type as it lies in memory."""
        return self.type if self.stored is None else self.type.with_dtype(self.stored)

    @property
    def name(self) -> str:
        return self.names[0] if self.names else f"%{self.id}"

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def storage(self) -> Layout:
        return self.layout if self.layout is not None else row_major(self.type.rank)

    def __repr__(self) -> str:
        return f"%{self.id}:{self.type}"


@dataclass(eq=False)
class Node:
    """One op applied to values. ``origin`` holds the names (or types, when unnamed) of the ONNX nodes it came from.

    ``place`` is set by the place stage, and with it ``facts``, what limits are about. Nodes of one ``group`` (not empty) are the match
    of one fusion of the chip's descriptor.
    """

    id: int
    op: Op
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    origin: tuple[str, ...] = ()
    place: Place = HOST
    group: str = ""
    facts: Facts = Facts()

    @property
    def where(self) -> str:
        """How messages name this node: ``node 'conv1' (Conv)``."""
        return f"node '{printable(self.origin[0]) if self.origin else self.id}' ({self.op.name})"

    @property
    def input_types(self) -> list[TensorType | None]:
        return [v.type if v is not None else None for v in self.inputs]

    @property
    def output_types(self) -> list[TensorType]:
        return [v.type for v in self.outputs]

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.outputs))} = {self.op}({', '.join(map(repr, self.inputs))})"


@dataclass
class GraphOutput:
    """A named result of the graph; several may show the same value."""

    name: str
    value: Value


class Graph:
    """A dataflow graph with static types. Edited through the methods here, or atomically through a :class:`Patch`."""

    def __init__(self, name: str = "", digest: bytes = bytes(32)) -> None:
        """``digest`` identifies the model the graph was read from (SHA-256, zeros when unknown). ``model_dtype`` is float16 or bfloat16
        when reading widened a model of that type to float32."""
        self.name = name
        self.digest = digest
        self.model_dtype: DType | None = None
        self.inputs: list[Value] = []
        self.outputs: list[GraphOutput] = []
        self.frozen: list[Frozen] = []
        self._dag: nx.MultiDiGraph = nx.MultiDiGraph()
        self._order: list[Node] | None = None
        self._nodes: dict[int, Node] = {}
        self._uses: dict[int, dict[tuple[int, int], None]] = {}
        self._next = 0

    def _id(self) -> int:
        self._next += 1
        return self._next - 1

    # -- building ------------------------------------------------------------------------------------------------------

    def add_input(self, name: str, type: TensorType) -> Value:
        value = Value(self._id(), (name,), type)
        self.inputs.append(value)
        return value

    def add_constant(self, data: np.ndarray, name: str = "", dtype: DType | None = None) -> Value:
        """A constant. ``dtype`` is only needed for types numpy does not carry (bfloat16 as uint16 bits)."""
        array = np.asarray(data)
        array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        kind = dtype if dtype is not None else DType.of(array.dtype)
        return Value(self._id(), (name,) if name else (), TensorType(kind, array.shape), data=array)

    def add_node(
        self, op: Op, inputs: Sequence[Value | None], *, names: Sequence[str] = (), origin: tuple[str, ...] = ()
    ) -> Node:
        """Applies ``op``; output types are inferred. ``names`` are ONNX names of the outputs, '' where there is none.

        Raises OpTypeError when the op refuses the input types.
        """
        types = op.infer([v.type if v is not None else None for v in inputs])
        node = Node(self._id(), op, tuple(inputs), (), origin)
        node.outputs = tuple(
            Value(self._id(), (names[i],) if i < len(names) and names[i] else (), t, node, i) for i, t in enumerate(types)
        )
        self._nodes[node.id] = node
        self._order = None
        self._dag.add_node(node.id)
        for slot, value in enumerate(inputs):
            self._connect(node, slot, value)
        return node

    def set_output(self, name: str, value: Value) -> None:
        self.outputs.append(GraphOutput(name, value))

    # -- reading -------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._nodes)

    def nodes(self) -> list[Node]:
        """All nodes, producers first, ties by creation index."""
        if self._order is None:
            order = nx.lexicographical_topological_sort(self._dag, key=lambda i: i)
            self._order = [self._nodes[i] for i in order]
        return list(self._order)

    def consumers(self, value: Value) -> list[tuple[Node, int]]:
        """Every (node, input slot) that reads the value, in creation order."""
        uses = self._uses.get(value.id, {})
        return [(self._nodes[n], slot) for n, slot in sorted(uses)]

    def uses(self, value: Value) -> int:
        """How many node inputs read the value."""
        return len(self._uses.get(value.id, ()))

    def is_output(self, value: Value) -> bool:
        return any(o.value is value for o in self.outputs)

    def contains(self, node: Node) -> bool:
        return self._nodes.get(node.id) is node

    def values(self) -> Iterator[Value]:
        """Graph inputs, then for each node its constants not seen before and its outputs, then output-only constants."""
        seen: set[int] = set()
        yield from self.inputs
        for node in self.nodes():
            for v in node.inputs:
                if v is not None and v.is_constant and v.id not in seen:
                    seen.add(v.id)
                    yield v
            yield from node.outputs
        for o in self.outputs:
            if o.value.is_constant and o.value.id not in seen:
                seen.add(o.value.id)
                yield o.value

    # -- editing -------------------------------------------------------------------------------------------------------

    def set_input(self, node: Node, slot: int, value: Value | None) -> None:
        """Redirects one input of a node."""
        old = node.inputs[slot]
        if old is not None:
            self._disconnect(node, slot, old)
        node.inputs = (*node.inputs[:slot], value, *node.inputs[slot + 1 :])
        self._connect(node, slot, value)

    def replace(self, old: Value, new: Value) -> None:
        """Redirects every use of ``old``, graph outputs included, to ``new``; ``new`` inherits the names of ``old``."""
        for node, slot in self.consumers(old):
            self.set_input(node, slot, new)
        for output in self.outputs:
            if output.value is old:
                output.value = new
        new.names = tuple(dict.fromkeys((*new.names, *old.names)))
        new.stored = new.stored if new.stored is not None else old.stored

    def remove(self, node: Node) -> None:
        """Removes a node none of whose outputs is used; KeyError otherwise."""
        if any(self._uses.get(v.id) for v in node.outputs) or any(self.is_output(v) for v in node.outputs):
            raise KeyError(f"{node.where} is still used")
        for slot, value in enumerate(node.inputs):
            if value is not None:
                self._disconnect(node, slot, value)
        self._order = None
        self._dag.remove_node(node.id)
        del self._nodes[node.id]

    def prune(self) -> int:
        """Removes every node from which no graph output can be reached; returns how many."""
        live: set[int] = set()
        todo = [o.value.producer for o in self.outputs if o.value.producer is not None]
        while todo:
            node = todo.pop()
            if node.id in live:
                continue
            live.add(node.id)
            todo.extend(v.producer for v in node.inputs if v is not None and v.producer is not None)
        dead = [n for n in reversed(self.nodes()) if n.id not in live]
        for node in dead:
            self.remove(node)
        return len(dead)

    def _connect(self, node: Node, slot: int, value: Value | None) -> None:
        if value is None:
            return
        self._uses.setdefault(value.id, {})[node.id, slot] = None
        self._order = None
        if value.producer is not None:
            self._dag.add_edge(value.producer.id, node.id, key=(value.slot, slot))

    def _disconnect(self, node: Node, slot: int, value: Value) -> None:
        del self._uses[value.id][node.id, slot]
        self._order = None
        if value.producer is not None:
            self._dag.remove_edge(value.producer.id, node.id, key=(value.slot, slot))


@dataclass
class Patch:
    """New nodes and replacements collected by a rule, checked and applied by :meth:`apply` as one edit.

    Nodes are created in the graph at once (they are unused until applied, and removed again by :meth:`discard`), so a rule can
    inspect the types of what it builds.
    """

    graph: Graph
    label: str
    origin: tuple[str, ...] = ()
    sources: tuple[Node, ...] = ()
    """The nodes of the matched pattern; new nodes run where the last one runs, and belong to the group of the last that has one."""
    _new: list[Node] = field(default_factory=list)
    _replace: list[tuple[Value, Value]] = field(default_factory=list)

    def node(
        self, op: Op, inputs: Sequence[Value | None], names: Sequence[str] = (), origin: tuple[str, ...] | None = None
    ) -> Value:
        """Adds a node and returns its first output; see :attr:`last` for the node itself. ``origin`` is the patch's by default."""
        node = self.graph.add_node(op, inputs, names=names, origin=self.origin if origin is None else origin)
        if self.sources:
            node.place = self.sources[-1].place
            node.group = next((n.group for n in reversed(self.sources) if n.group), "")
            node.facts = reduce(Facts.joined, (n.facts for n in self.sources))
            for value in node.outputs if node.place.dtype is not DType.float32 else ():
                value.stored = node.place.dtype if value.type.dtype is DType.float32 else None
        self._new.append(node)
        return node.outputs[0]

    @property
    def last(self) -> Node:
        return self._new[-1]

    @property
    def new_nodes(self) -> list[Node]:
        """The nodes made so far, in order."""
        return list(self._new)

    def constant(self, data: np.ndarray, name: str = "") -> Value:
        return self.graph.add_constant(data, name)

    def replace(self, old: Value, new: Value) -> None:
        """Schedules the redirection of every use of ``old`` to ``new``; types must be equal."""
        if old.type != new.type:
            raise TypeError(f"{self.label}: {old.type} replaced by {new.type}")
        self._replace.append((old, new))

    def apply(self) -> None:
        """Performs the replacements and removes what became dead, new nodes that nothing reads included."""
        for old, new in self._replace:
            self.graph.replace(old, new)
        for node in reversed(self._new):
            self._collect(node)
        for old, _ in self._replace:
            if old.producer is not None and self.graph.contains(old.producer):
                self._collect(old.producer)

    def neighbours(self) -> list[Node]:
        """The nodes whose surroundings the patch changes: its own, the readers of what it replaces, and the producers around."""
        near = {n.id: n for n in self._new}
        for old, new in self._replace:
            for reader, _ in self.graph.consumers(old):
                near[reader.id] = reader
            for value in (new, *(old.producer.inputs if old.producer is not None else ())):
                if value is not None and value.producer is not None:
                    near[value.producer.id] = value.producer
        return [near[i] for i in sorted(near)]

    def discard(self) -> None:
        """Removes the nodes created so far."""
        for node in reversed(self._new):
            self.graph.remove(node)

    def _collect(self, node: Node) -> None:
        todo = [node]
        while todo:
            n = todo.pop()
            used = any(self.graph.consumers(v) or self.graph.is_output(v) for v in n.outputs)
            if used or not self.graph.contains(n):
                continue
            self.graph.remove(n)
            todo.extend(v.producer for v in n.inputs if v is not None and v.producer is not None)

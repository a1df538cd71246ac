"""The place stage: a device, a unit and an element type for every node, as one labelling problem; then the Transfer and Recast nodes
that the labels ask for.

A value exists in *forms*: a device and the element type it is stored in. Producing it in one form and reading it in another costs what
the conversion costs, once per form however many readers share it; between two chips it leads over the host. Model inputs and outputs lie
on the host, and bringing them over is not charged: a node whose neighbours are the model's own ends goes where it computes best, and an
island of cheap nodes between two host nodes stays on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from flaot.ir.graph import HOST, Graph, GraphOutput, Node, Place, Value
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.ir.types import DType
from flaot.mapping.assign import Problem, Solution, solve
from flaot.mapping.cost import CostModel
from flaot.mapping.decisions import Inserted

INFINITE = float("inf")


@dataclass(frozen=True)
class Option:
    """A place a node may have. ``penalty`` (nanoseconds) is added to its cost; ``emulated`` says its element type is not the unit's own."""

    place: Place
    penalty: float = 0.0
    emulated: bool = False


@dataclass(frozen=True)
class Form:
    """Where a value lies and how it is stored."""

    device: str
    dtype: DType


@dataclass(frozen=True)
class Placed:
    """What the stage decided: the options with their costs (nanoseconds) by node id, the labelling, what was inserted."""

    costs: Mapping[int, Sequence[tuple[Option, float]]]
    solution: Solution
    inserted: list[Inserted]


def form_of(value: Value, place: Place) -> Form:
    """The form a node at ``place`` makes or reads a value in."""
    return Form(place.device, place.dtype if value.type.dtype is DType.float32 else value.type.dtype)


def outside(value: Value) -> Form:
    """The form of a model input or output."""
    return Form(HOST.device, value.type.dtype)


def place(graph: Graph, options: Mapping[int, Sequence[Option]], model: CostModel) -> Placed:
    """Places every node and inserts conversions. ``options`` lists at least one option for every node id, the preferred one first.

    Where chips share a bus, every set of them is tried with the bus priced for that set alone, and the cheapest placement taken.
    """
    nodes = graph.nodes()
    problem, costs = labelling(graph, options, model)
    solution = solve(problem)
    for fewer in model.fewer():
        other = solve(labelling(graph, options, fewer)[0])
        if other.energy < solution.energy:
            model, solution = fewer, other
    for node in nodes:
        node.place = options[node.id][solution.labels[node.id]].place
    return Placed(costs, solution, _Conversions(graph, model).run(nodes))


def labelling(
    graph: Graph, options: Mapping[int, Sequence[Option]], model: CostModel
) -> tuple[Problem, dict[int, list[tuple[Option, float]]]]:
    """The problem whose labels are indices into the options of every node, and the options' own costs. Places on chips that the model
    leaves out are not allowed.

    A value with several readers that may differ has a label of its own, a set of forms it exists in, under the negative of its id - 1.
    """
    costs = {n.id: [(o, model.node(n, o.place, o.emulated) + o.penalty) for o in options[n.id]] for n in graph.nodes()}
    problem = Problem({n: [c if model.uses(o.place.device) else INFINITE for o, c in given] for n, given in costs.items()}, [])
    for node in graph.nodes():
        for value in node.outputs:
            readers = list(dict.fromkeys(n.id for n, _ in graph.consumers(value)))
            made = [form_of(value, o.place) for o in options[node.id]]
            read = {r: [form_of(value, o.place) for o in options[r]] for r in readers}
            forms = list(dict.fromkeys(f for fs in (made, *read.values()) for f in fs))
            if len(forms) < 2:
                continue
            if len(readers) == 1:
                (reader,) = readers
                problem.edges.append((node.id, reader, np.array([[conversion(value, a, b, model) for b in read[reader]] for a in made])))
                continue
            sets = [s for n in range(1, len(forms) + 1) for s in combinations(forms, n)]
            hub = -value.id - 1
            problem.costs[hub] = [0.0] * len(sets)
            problem.edges.append((node.id, hub, np.array([[_copies(value, a, s, model) for s in sets] for a in made])))
            for reader in readers:
                problem.edges.append((reader, hub, np.array([[0.0 if f in s else INFINITE for s in sets] for f in read[reader]])))
    return problem, costs


def _copies(value: Value, made: Form, wanted: Sequence[Form], model: CostModel) -> float:
    """What it costs to have the value in all these forms; what two ways share is paid once."""
    if made not in wanted:
        return INFINITE
    steps = dict.fromkeys(s for f in wanted for s in pairwise((made, *route(made, f))))
    return sum(_step(value, a, b, model) for a, b in steps)


def conversion(value: Value, source: Form, target: Form, model: CostModel) -> float:
    """Nanoseconds from one form to another; the element type changes on the host, or where both forms lie."""
    return sum(_step(value, a, b, model) for a, b in pairwise((source, *route(source, target))))


def _step(value: Value, source: Form, target: Form, model: CostModel) -> float:
    """Nanoseconds of one transfer or one change of the element type."""
    if source.device != target.device:
        chip = target.device if source.device == HOST.device else source.device
        return model.transfer(value.type.with_dtype(source.dtype), chip)
    return model.recast(value.type.elements, source.dtype, target.dtype, source.device)


def route(source: Form, target: Form) -> list[Form]:
    """The forms between two, the last one included: over the host between two chips, element types changed there when it takes part."""
    if source.device == target.device:
        return [target] if source != target else []
    if HOST.device not in (source.device, target.device):
        middle = Form(HOST.device, source.dtype)
        return [middle, *route(middle, target)]
    middle = Form(HOST.device, target.dtype if source.device == HOST.device else source.dtype)
    return [f for f in dict.fromkeys((middle, target)) if f != source]


class _Conversions:
    """Inserts the nodes between forms that differ."""

    def __init__(self, graph: Graph, model: CostModel) -> None:
        self.graph, self.model = graph, model
        self.made: dict[tuple[int, Form], Value] = {}
        self.inserted: list[Inserted] = []

    def run(self, nodes: Sequence[Node]) -> list[Inserted]:
        for node in nodes:
            for made in node.outputs:
                dtype = form_of(made, node.place).dtype
                made.stored = dtype if dtype is not made.type.dtype else None
        for node in nodes:
            for slot, value in enumerate(node.inputs):
                if value is not None and not value.is_constant:
                    self.graph.set_input(node, slot, self._in_form(value, form_of(value, node.place), node))
        for output in self.graph.outputs:
            if not output.value.is_constant:
                output.value = self._in_form(output.value, outside(output.value), output)
        return self.inserted

    def _in_form(self, value: Value, wanted: Form, reader: Node | GraphOutput) -> Value:
        held = outside(value) if value.producer is None else form_of(value, value.producer.place)
        if held == wanted:
            return value
        current, at = value, held
        for form in route(held, wanted):
            key = (value.id, form)
            if key not in self.made:
                self.made[key] = self._convert(current, at, form, value, reader)
            current, at = self.made[key], form
        return current

    def _convert(self, value: Value, held: Form, form: Form, source: Value, reader: Node | GraphOutput) -> Value:
        moves = held.device != form.device
        free = moves and self.model.chips[form.device if held.device == HOST.device else held.device].zero_copy
        origin = source.producer.origin if source.producer is not None else ()
        node = self.graph.add_node(Transfer(form.device) if moves else Recast(form.dtype), [value], origin=origin)
        if not moves and form.device != HOST.device:
            assert source.producer is not None
            node.place = Place(form.device, source.producer.place.unit, form.dtype)
        (out,) = node.outputs
        out.stored = form.dtype if form.dtype is not out.type.dtype else None
        self.inserted.append(
            Inserted(
                kind="Transfer" if moves else "Cast",
                value=source.name,
                nbytes=0 if free else value.stored_type.nbytes,
                cost_ns=conversion(value, held, form, self.model),
                source=held.device if moves else held.dtype.name,
                target=form.device if moves else form.dtype.name,
                where=form.device,
                wanted_by=reader.where if isinstance(reader, Node) else f"output '{reader.name}'",
                remedy=self._remedy(source, reader, moves),
                edge=source.producer is None or not isinstance(reader, Node),
                zero_copy=free,
            )
        )
        return out

    def _remedy(self, source: Value, reader: Node | GraphOutput, moves: bool) -> str:
        """What would make the conversion unnecessary."""
        if source.producer is None or not isinstance(reader, Node):
            end = "inputs" if source.producer is None else "outputs"
            held = "on the host" if moves else f"in {source.type.dtype.name}"
            return f"none: the model's {end} are {held}"
        ends = [n.where for n in (source.producer, reader) if n.place.device == HOST.device]
        if ends:
            return f"run {' and '.join(ends)} on the chip"
        if source.producer.place.device != reader.place.device:
            return f"run {source.producer.where} and {reader.where} on one chip"
        return f"let {source.producer.where} and {reader.where} compute in one element type"

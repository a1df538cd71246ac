"""What a chip says about operators: for people (``flaot query``, ``flaot ops``) and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flaot.hcd import Board, Hcd
from flaot.hcd.operators import Operator, Predicate
from flaot.hcd.rules import kind_of
from flaot.ir.graph import HOST, Graph, Place
from flaot.ir.op import OPS, READERS, Op
from flaot.ir.ops.attention import Attention
from flaot.ir.ops.compare import Where, _Comparison
from flaot.ir.ops.functions import _Test
from flaot.ir.ops.integer import ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul
from flaot.ir.ops.quantize import DequantizeLinear, QuantizeLinear
from flaot.ir.types import DType
from flaot.kernels.base import IMPLEMENTATIONS
from flaot.kernels.base import load_all as load_kernels
from flaot.mapping.assign import solve
from flaot.mapping.capability import Capability
from flaot.mapping.cost import CostModel
from flaot.mapping.defaults import default_operators
from flaot.mapping.legalize import Verdict, legalize, legalize_cpu
from flaot.mapping.names import READ_AS, known_operators, onnx_name, ops_named
from flaot.mapping.orders import ChipLayouts
from flaot.mapping.placement import Option, labelling
from flaot.mapping.policy import Policy
from flaot.mapping.predicates import spelled
from flaot.rules.expand import expandable

EXPANDED = "expanded into simpler operators"

FOREIGN: tuple[tuple[tuple[type[Op], ...], str, DType], ...] = (
    ((_Comparison, _Test), "its results are", DType.bool),
    ((Where,), "its condition is", DType.bool),
    ((ConvInteger, MatMulInteger), "its results are", DType.int32),
)
"""Operators with values of one element type whatever the model's is."""

SCALED = (DequantizeLinear, QLinearConv, QLinearMatMul, QuantizeLinear)
"""Operators with scales."""


@dataclass(frozen=True)
class Fact:
    """One thing a chip says about an operator, and the line it says it in."""

    name: str
    value: str
    origin: str = ""


@dataclass
class Described:
    """How a chip runs an operator ("native on fp16", "expanded into simpler operators", "on the host", "read as Reshape", or "read as
    others": several, or constants computed when compiling), and what limits it."""

    verdict: str
    units: tuple[str, ...] = ()
    facts: list[Fact] = field(default_factory=list)

    def lines(self) -> list[str]:
        width = max((len(f.name) for f in self.facts), default=0)
        return [f"{f.name.ljust(width)}  {f.value}{f' ({f.origin})' if f.origin else ''}" for f in self.facts]

    def to_json(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "units": list(self.units), "facts": [f.__dict__ for f in self.facts]}


def describe(name: str, hcd: Hcd) -> Described:
    """What the chip says about an ONNX operator."""
    load_kernels()
    found, parts = ops_named(name), READ_AS.get(name, ())
    if not found or parts:
        verdict = f"read as {', '.join(parts)}" if parts else "read as others"
        return Described(verdict, (), [f for p in parts for f in describe(p, hcd).facts[:3]])
    if hcd.full.chip.device_type == "cpu":
        return _on_cpu(found[0], hcd)
    return _on_chip(name, found, Capability(hcd))


def _on_cpu(op: type[Op], hcd: Hcd) -> Described:
    if op is Attention or not any(cls in IMPLEMENTATIONS for cls in op.__mro__):
        return Described(EXPANDED)
    table = hcd.full.operators
    if table is not None and not {op.__name__, onnx_name(op)} & set(table):
        line = Fact("reason", f"{hcd.name} does not list {onnx_name(op)}", hcd.origin("operators"))
        return Described(EXPANDED if expandable(op) else "refused", (), [line])
    return Described("native on cpu", ("cpu",), [Fact("kernels", "portable and those of its ISA features", hcd.origin("compute_units"))])


def _on_chip(name: str, found: Sequence[type[Op]], chip: Capability) -> Described:
    hcd, table = chip.hcd, chip.hcd.full.operators
    names = [name, *(op.__name__ for op in found)]
    entry = next(((n, table[n]) for n in names if table is not None and n in table), None)
    facts: list[Fact] = []
    if table is not None and (entry is None or entry[1].supported is False):
        units: tuple[str, ...] = ()
        reason = entry[1].reason if entry is not None else None
        line = hcd.origin("operators", entry[0]) if entry is not None else hcd.origin("operators")
        facts.append(Fact("reason", reason or f"{chip.name} does not list {name}", line))
    else:
        units = _units(chip, found, entry[1] if entry is not None else None)
        if not units:
            facts.append(Fact("reason", f"no unit of {chip.name} runs {name}", hcd.origin("compute_units")))
        elif (foreign := _foreign(chip, found[0], units)) is not None:
            units = ()
            facts.append(foreign)
    if units:
        facts += _unit_facts(chip, units)
        if entry is not None:
            facts += _entry_facts(hcd, *entry)
        facts += _limits(chip, name)
        return Described(f"native on {', '.join(units)}", units, facts)
    verdict = EXPANDED if any(map(expandable, found)) else "on the host"
    return Described(verdict, (), facts)


def _foreign(chip: Capability, op: type[Op], units: Sequence[str]) -> Fact | None:
    """Why none of the units runs an operator that always has values of an element type they lack."""
    for classes, what, dtype in FOREIGN:
        if issubclass(op, classes) and dtype not in chip.dtypes:
            return Fact("reason", f"{what} {dtype.name}, which {chip.name} does not list", chip.hcd.origin("tensor", "supported_dtypes"))
    if issubclass(op, SCALED) and not any(chip.floats_of(u) for u in units):
        return Fact("reason", f"its scales are float32, which {', '.join(units)} cannot read", chip.hcd.origin("compute_units", units[0]))
    return None


def _units(chip: Capability, found: Sequence[type[Op]], entry: Operator | None) -> tuple[str, ...]:
    if entry is not None and entry.units is not None:
        return tuple(u for u in entry.units if u in chip.units)
    names = {op.__name__ for op in found}
    fitting = []
    for unit, stated in chip.units.items():
        kind = kind_of(unit, stated)
        listed = default_operators(kind)
        if listed is None or names & listed or (entry is not None and kind != "attention" and "Attention" not in names):
            fitting.append(unit)
    return tuple(fitting)


def _unit_facts(chip: Capability, units: Sequence[str]) -> list[Fact]:
    hcd, layouts, facts = chip.hcd, ChipLayouts(chip.hcd), []
    for unit in units:
        stated = chip.units[unit]
        kinds = [f"{d.name}{' (emulated)' if emulated else ''}" for d, emulated in chip.floats_of(unit)]
        kind = kind_of(unit, stated)
        dtypes = kinds or [d.name for d in chip.dtypes if not d.is_float and d.name.startswith(kind)]
        facts.append(Fact(f"{unit} dtypes", ", ".join(dtypes) or "none", hcd.origin("tensor", "supported_dtypes")))
        if kind != "attention":
            facts.append(Fact(f"{unit} layouts", layouts.shown(unit), layouts.origin(unit)))
        if stated.supported_heads is not None:
            heads = ", ".join(map(str, stated.supported_heads))
            facts.append(Fact(f"{unit} heads", heads, hcd.origin("compute_units", unit, "supported_heads")))
        if stated.max_sequence_length is not None:
            origin = hcd.origin("compute_units", unit, "max_sequence_length")
            facts.append(Fact(f"{unit} max_sequence_length", str(stated.max_sequence_length), origin))
    return facts


def _entry_facts(hcd: Hcd, name: str, entry: Operator) -> list[Fact]:
    facts = []
    for key in ("layouts_in", "layouts_out", "min_rank", "max_rank", "in_place", "precision", "reason"):
        value = getattr(entry, key)
        if value is not None:
            shown = ", ".join(value) if isinstance(value, tuple) else str(value)
            facts.append(Fact(key, shown, hcd.origin("operators", name, key)))
    for i, combination in enumerate(entry.dtypes or ()):
        shown = f"{', '.join(combination.inputs)} -> {', '.join(combination.outputs)}"
        facts.append(Fact("element types", shown, hcd.origin("operators", name, "dtypes", i)))
    return facts + [Fact("requires", sentence(p), hcd.origin("operators", name, "requires", i)) for i, p in enumerate(entry.requires or ())]


def sentence(p: Predicate) -> str:
    """A condition in words: ``kernel_shape at most 7``."""
    parts = []
    for condition in (p, p.when):
        if condition is None:
            continue
        words = [condition.attribute or f"input {condition.input}"]
        words += [f"at least {condition.at_least:g}"] if condition.at_least is not None else []
        words += [f"at most {condition.at_most:g}"] if condition.at_most is not None else []
        words += [f"one of {', '.join(map(spelled, condition.one_of))}"] if condition.one_of is not None else []
        words += [f"a multiple of {condition.multiple_of}"] if condition.multiple_of is not None else []
        words += [f"a product of at most {condition.max_product}"] if condition.max_product is not None else []
        words += ["constant" if condition.constant else "not constant"] if condition.constant is not None else []
        parts.append(" ".join(words))
    return " when ".join(parts) + (f": {p.reason}" if p.reason else "")


def _limits(chip: Capability, name: str) -> list[Fact]:
    hcd, limits = chip.hcd, chip.constraints
    rows = [("max_rank", chip.tensor.max_rank, "tensor"), ("max_batch_size", limits.max_batch_size, "constraints")]
    if name != "Attention":
        rows.append(("max_sequence_length", limits.max_sequence_length, "constraints"))
    rows.append(("memory_alignment_bytes", limits.memory_alignment_bytes, "constraints"))
    return [Fact(key, str(value), hcd.origin(group, key)) for key, value, group in rows if value is not None]


def verdict_rows(graph: Graph, board: Board, policy: Policy, precision: str = "default") -> list[dict[str, Any]]:
    """One row per node of a recognised graph, which is legalized: node, operator, verdict, device, unit, dtype, reason and origin; with
    several chips the device is the one the node would be placed on. Refused nodes are rows."""
    if not board.chips:
        verdicts = legalize_cpu(graph, board.first, policy, refuse=False)
    else:
        verdicts = legalize(graph, [Capability(h, precision) for h in board.chips], policy, refuse=False, host=board.cpu)
    places = _best(graph, verdicts) if len(board.chips) < 2 else _placed(graph, board, verdicts)
    rows = []
    for node in graph.nodes():
        v, place = verdicts[node.id], places.get(node.id)
        dtype = place.dtype.name if place is not None and place.dtype is not DType.float32 else _dtype(node)
        note = v.answer.note(place) if place is not None and v.answer.options else ""
        where = (place.device, place.unit) if place is not None else ("", "")
        rows.append(_row(node.origin, v.op, v.kind, *where, dtype, v.reason or note, v.origin))
    return rows


def _best(graph: Graph, verdicts: Mapping[int, Verdict]) -> dict[int, Place]:
    """The first place of every node that has one."""
    return {n.id: verdicts[n.id].options[0].place for n in graph.nodes() if verdicts[n.id].options}


def _placed(graph: Graph, board: Board, verdicts: Mapping[int, Verdict]) -> dict[int, Place]:
    """Where every node would be placed; refused ones count as on the host and are left out."""
    options = {n.id: verdicts[n.id].options or (Option(HOST),) for n in graph.nodes()}
    labels = solve(labelling(graph, options, CostModel(board).used_by(options))[0]).labels
    return {n: options[n][labels[n]].place for n in options if verdicts[n].options}


def _dtype(node: Any) -> str:
    return str(node.outputs[0].type.dtype.name) if node.outputs else ""


def _row(node: tuple[str, ...], op: str, verdict: str, device: str, unit: str, dtype: str, reason: str, origin: str) -> dict[str, Any]:
    first = {"node": node[0] if node else "", "operator": op, "verdict": verdict}
    return {**first, "device": device, "unit": unit, "dtype": dtype, "reason": reason, "origin": origin}


def table(chips: Sequence[Hcd]) -> list[dict[str, Any]]:
    """One row per ONNX operator flaot reads: how every chip runs it."""
    known, rows = known_operators(), []
    onnx = {n for _, n in READERS}
    for name in known:
        if name in OPS and name not in onnx:
            continue
        held = {}
        for hcd in chips:
            d = describe(name, hcd)
            held[hcd.name] = {"text": d.verdict, "units": list(d.units)}
        rows.append({"operator": name, "chips": held})
    return rows


def markdown_table(chips: Sequence[Hcd]) -> str:
    """The same as a Markdown table."""
    head = ["operator", *(c.name for c in chips)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {r['operator']} | {' | '.join(r['chips'][c.name]['text'] for c in chips)} |" for r in table(chips)]
    return "\n".join(lines) + "\n"

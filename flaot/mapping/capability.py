"""What a chip can run, and why not: the answer to one node, from the descriptor's limits, its operator table and the kernels.

Every answer that is not a plain yes carries the sentence and the line of the descriptor it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from flaot.errors import UnsupportedError
from flaot.hcd import Hcd
from flaot.hcd.operators import Combination, Operator
from flaot.hcd.rules import active_units, kind_of
from flaot.hcd.schema import ComputeUnit
from flaot.ir.facts import Context, facts
from flaot.ir.graph import Node, Place, Value
from flaot.ir.ops.attention import Attention
from flaot.ir.types import DType
from flaot.mapping.accumulator import refusal, sums_in_half
from flaot.mapping.choice import choose
from flaot.mapping.defaults import default_operators
from flaot.mapping.names import names_of, onnx_name
from flaot.mapping.orders import ChipLayouts
from flaot.mapping.placement import Option
from flaot.mapping.predicates import violated
from flaot.targets.chip import chip_cpu

SIGNIFICAND = {DType.float64: 53, DType.float32: 24, DType.float16: 11, DType.bfloat16: 8}
"""Bits of the significand: how exact a floating-point type is."""

EXPAND_HINT = "it is not emulated silently: --allow-expand Attention computes it by products, --route Attention=host on the host"

OWN = {"fp16": DType.float16, "bf16": DType.bfloat16, "fp32": DType.float32}
"""Element type a kind of unit computes floating point in."""


@dataclass(frozen=True)
class Answer:
    """What a chip says of one node.

    ``options`` are the places it can run at, best first; when there is none, ``reason`` and ``origin`` say why. ``firewall`` marks a
    limit that is never worked around silently: "limit" (batch, sequence, rank, float64), "attention" or "precision". ``hint`` is the
    way out.
    """

    options: tuple[Option, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    origin: str = ""
    firewall: str = ""
    hint: str = ""

    def note(self, place: Place) -> str:
        """What is to be known about running there, or ""."""
        return next((n for o, n in zip(self.options, self.notes, strict=True) if o.place == place), "")


Reason = tuple[str, str]
"""A sentence and the line it rests on."""


@dataclass
class Capability:
    """Answers for one chip. ``precision`` "high" allows only units as exact as the model; ``too_large`` holds for every model
    node that was found not to fit on chip a sentence and the option it rests on, "" where that is the chip's size."""

    hcd: Hcd
    precision: str = "default"
    too_large: Mapping[str, Reason] = field(default_factory=dict)
    _kernels: dict[tuple[object, ...], Reason | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.units = active_units(self.hcd.full)
        assert self.hcd.full.tensor is not None and self.hcd.full.constraints is not None
        self.tensor, self.constraints = self.hcd.full.tensor, self.hcd.full.constraints
        self.dtypes = frozenset(DType[d.removeprefix("torch.")] for d in self.tensor.supported_dtypes or ())
        self.cpu = chip_cpu(self.hcd)
        self.alone = self.hcd.full.chip.device_type == "cpu"
        self.layouts = ChipLayouts(self.hcd)

    @property
    def name(self) -> str:
        return self.hcd.name

    # -- one node ------------------------------------------------------------------------------------------------------

    def ask(self, node: Node, context: Context) -> Answer:
        """Where the chip can run the node, or why not."""
        limit = self._limit(node, context)
        if limit is not None:
            return limit
        tight = next((self.too_large[n] for n in node.origin if n in self.too_large), None)
        if tight is not None:
            return Answer(reason=tight[0], origin=tight[1] or self.hcd.origin("memory", "on_chip_cache", "size_kb"))
        entry = self._entry(node)
        units, reason = self._units(node, entry)
        if not units:
            return Answer(reason=reason[0], origin=reason[1])
        if any(v is not None and v.type.rank == 4 for v in (*node.inputs, *node.outputs)):
            units, blocked = self._unblocked(units)
            if not units:
                return Answer(reason=blocked[0], origin=blocked[1])
        if isinstance(node.op, Attention):
            refused = self._attention(node, context, units)
            if refused is not None:
                return refused
        for problem in (*self._operator_problems(node, entry), *self._kernel_problems(node)):
            return Answer(reason=problem[0], origin=problem[1])
        return self._typed(node, entry, units, context)

    def _limit(self, node: Node, context: Context) -> Answer | None:
        values = [v for v in (*node.inputs, *node.outputs) if v is not None]
        rank = max((v.type.rank for v in values), default=0)
        known, limits = facts(node, context), self.constraints
        checks: list[tuple[str, int, int | None, tuple[str, ...], str]] = [
            ("a tensor of rank", rank, self.tensor.max_rank, ("tensor", "max_rank"), "reshape it to fewer dimensions"),
            ("a batch of", known.batch, limits.max_batch_size, ("constraints", "max_batch_size"), "split the batch"),
            ("a sequence of", known.sequence, limits.max_sequence_length, ("constraints", "max_sequence_length"), "split the sequence"),
        ]
        if isinstance(node.op, Attention):
            checks = checks[:2]
        for what, found, allowed, path, way in checks:
            if allowed is not None and found > allowed:
                sentence = f"{what} {found}; {self.name} allows {path[1]} {allowed}"
                return self._firewall(sentence, self.hcd.origin(*path), way)
        if DType.float64 not in self.dtypes and any(v.type.dtype is DType.float64 for v in values):
            sentence = f"float64 values, which are never narrowed; {self._listed_types()}"
            return self._firewall(sentence, self.hcd.origin("tensor", "supported_dtypes"), "export the model in float32")
        return None

    def _listed_types(self) -> str:
        return f"{self.name} lists supported_dtypes {', '.join(d.name for d in sorted(self.dtypes))}"

    def _firewall(self, sentence: str, origin: str, way: str) -> Answer:
        hint = way if self.alone else f"{way}, or let the host run it with --fallback allow"
        return Answer(reason=sentence, origin=origin, firewall="limit", hint=hint)

    # -- units ---------------------------------------------------------------------------------------------------------

    def _entry(self, node: Node) -> Operator | None:
        table = self.hcd.full.operators or {}
        return next((table[n] for n in names_of(node.op) if n in table), None)

    def entry_origin(self, node: Node, *path: str | int) -> str:
        """The line of the operator's entry in the table, or of the table."""
        table = self.hcd.full.operators or {}
        name = next((n for n in names_of(node.op) if n in table), None)
        return self.hcd.origin("operators", name, *path) if name is not None else self.hcd.origin("operators")

    def _units(self, node: Node, entry: Operator | None) -> tuple[dict[str, ComputeUnit], Reason]:
        name = onnx_name(node.op)
        if self.hcd.full.operators is not None:
            if entry is None:
                return {}, (f"{self.name} does not list {name} among its operators", self.hcd.origin("operators"))
            if entry.supported is False:
                return {}, (entry.reason or f"{self.name} does not support {name}", self.entry_origin(node, "supported"))
            if entry.units is not None:
                named = {u: self.units[u] for u in entry.units if u in self.units}
                return named, ("none of its units is in use", self.entry_origin(node, "units"))
        fitting = {u: unit for u, unit in self.units.items() if self._runs(kind_of(u, unit), node, entry)}
        return fitting, (f"no unit of {self.name} runs {name}", self.hcd.origin("compute_units"))

    def _unblocked(self, units: dict[str, ComputeUnit]) -> tuple[dict[str, ComputeUnit], Reason]:
        """The units with layouts that strides express, for tensors of rank 4."""
        kept = {u: unit for u, unit in units.items() if self.layouts.by_unit[u]}
        first = next(iter(units))
        return kept, (f"the unit {first} of {self.name} stores images as {self.layouts.shown(first)}", self.layouts.origin(first))

    def _runs(self, kind: str, node: Node, entry: Operator | None) -> bool:
        listed = default_operators(kind)
        if listed is None or node.op.name in listed:
            return True
        return entry is not None and kind != "attention" and not isinstance(node.op, Attention)

    def _attention(self, node: Node, context: Context, units: dict[str, ComputeUnit]) -> Answer | None:
        known, refusals = facts(node, context), []
        for name, unit in units.items():
            who = f"the unit {name} of {self.name}"
            if unit.supported_heads is not None and known.heads not in unit.supported_heads:
                listed = ", ".join(map(str, unit.supported_heads))
                refusals.append((f"{known.heads} heads; {who} lists {listed}", "supported_heads", name))
            elif unit.max_sequence_length is not None and known.sequence > unit.max_sequence_length:
                sentence = f"a sequence of {known.sequence}; {who} allows max_sequence_length {unit.max_sequence_length}"
                refusals.append((sentence, "max_sequence_length", name))
            else:
                return None
        sentence, key, name = refusals[0]
        return Answer(reason=sentence, origin=self.hcd.origin("compute_units", name, key), firewall="attention", hint=EXPAND_HINT)

    # -- operators and kernels -----------------------------------------------------------------------------------------

    def _operator_problems(self, node: Node, entry: Operator | None) -> Iterator[Reason]:
        if entry is None:
            return
        rank = max((v.type.rank for v in (*node.inputs[:1], *node.outputs) if v is not None), default=0)
        if entry.max_rank is not None and rank > entry.max_rank:
            yield f"rank {rank}; {onnx_name(node.op)} allows max_rank {entry.max_rank}", self.entry_origin(node, "max_rank")
        if entry.min_rank is not None and rank < entry.min_rank:
            yield f"rank {rank}; {onnx_name(node.op)} needs min_rank {entry.min_rank}", self.entry_origin(node, "min_rank")
        for i, predicate in enumerate(entry.requires or ()):
            sentence = violated(node, predicate)
            if sentence is not None:
                yield sentence, self.entry_origin(node, "requires", i)

    def _kernel_problems(self, node: Node) -> Iterator[Reason]:
        key = (node.op, *node.input_types, *(v is not None and v.is_constant for v in node.inputs))
        if key not in self._kernels:
            try:
                self._kernels[key] = self._too_deep(node, choose(node, self.cpu).axes(node))
            except UnsupportedError as e:
                self._kernels[key] = e.what, ""
        problem = self._kernels[key]
        if problem is not None:
            yield problem

    def _too_deep(self, node: Node, axes: int) -> Reason | None:
        """Why the kernel of a node may not run, which sees tensors of so many axes where the node has fewer."""
        allowed = self.tensor.max_rank
        if self.alone or allowed is None or axes <= allowed:
            return None
        sentence = f"{onnx_name(node.op)} is computed on tensors of rank {axes}; {self.name} allows max_rank {allowed}"
        return sentence, self.hcd.origin("tensor", "max_rank")

    # -- element types -------------------------------------------------------------------------------------------------

    def floats_of(self, name: str) -> list[tuple[DType, bool]]:
        """Element types a unit computes float32 values in, most exact first, and whether it only emulates them."""
        unit = self.units[name]
        kind = kind_of(name, unit)
        own: list[DType] = [OWN[kind]] if kind in OWN else []
        own += [DType[d] for a in unit.arithmetic or () for d in a.inputs if DType[d].is_float]
        if kind == "attention" and not own:
            others = [u for u in self.units if u != name and kind_of(u, self.units[u]) != "attention"]
            own = [d for u in others for d, _ in self.floats_of(u)]
        if self.alone:
            own = [DType.float32]
        elif kind in ("vector", "cpu") and not own:
            own = [d for d in SIGNIFICAND if d is not DType.float64]
        found = {d: False for d in own if d in self.dtypes and d is not DType.float64}
        if self.constraints.bfloat16_emulation and found and DType.bfloat16 in self.dtypes:
            found.setdefault(DType.bfloat16, True)
        return sorted(found.items(), key=lambda f: -SIGNIFICAND[f[0]])

    def _typed(self, node: Node, entry: Operator | None, units: dict[str, ComputeUnit], context: Context) -> Answer:
        values = [v for v in (*node.inputs, *node.outputs) if v is not None]
        foreign = next((v for v in values if v.type.dtype is not DType.float32 and v.type.dtype not in self.dtypes and not _table(v)), None)
        if foreign is not None:
            sentence = f"{foreign.type.dtype.name} values; {self._listed_types()}"
            return Answer(reason=sentence, origin=self.hcd.origin("tensor", "supported_dtypes"))
        found = [(o, note) for name in units for o, note in self._options(node, entry, name, values)]
        if not found:
            path = ("compute_units", next(iter(units)))
            return Answer(reason=f"no unit of {self.name} runs {onnx_name(node.op)} in these element types", origin=self.hcd.origin(*path))
        summed = [refusal(self.hcd, node, o.place) for o, _ in found]
        if all(summed):
            reason, origin = next(s for s in summed if s is not None)
            return Answer(reason=reason, origin=origin)
        found = [f for f, s in zip(found, summed, strict=True) if s is None]
        own = context.model_dtype
        if self.precision == "high":
            exact = [(o, n) for o, n in found if self._keeps(node, o, own)]
            if not exact:
                return self._degrades(node, found[0][0], own)
            best = max(SIGNIFICAND[o.place.dtype] for o, _ in exact)
            found = [(o, n) for o, n in exact if SIGNIFICAND[o.place.dtype] == best]

        def rank(option: Option) -> tuple[bool, bool, int]:
            foreign = option.place.dtype is not own
            return option.emulated and foreign, foreign, -SIGNIFICAND[option.place.dtype]

        found.sort(key=lambda f: rank(f[0]))
        return Answer(tuple(o for o, _ in found), tuple(n for _, n in found))

    def _options(self, node: Node, entry: Operator | None, name: str, values: Sequence[Value]) -> Iterator[tuple[Option, str]]:
        if all(v.type.dtype is not DType.float32 for v in values):
            if self._combines(node, entry, lambda d: d):
                yield Option(Place(self.name, name, DType.float32)), ""
            return
        for dtype, emulated in self.floats_of(name):
            if not self._combines(node, entry, lambda d, dtype=dtype: dtype if d is DType.float32 else d):  # type: ignore[misc]
                continue
            line = self.hcd.origin("constraints", "bfloat16_emulation")
            note = f"bfloat16 is emulated by way of float32 on unit {name} ({line})" if emulated else ""
            yield Option(Place(self.name, name, dtype), emulated=emulated), note

    def _combines(self, node: Node, entry: Operator | None, stored: Callable[[DType], DType]) -> bool:
        """Whether the operator's entry lists the element types of the node, as the chip would store them."""
        if entry is None or entry.dtypes is None:
            return True
        ins = [stored(v.type.dtype) for v in node.inputs if v is not None and not _table(v)]
        outs = [stored(v.type.dtype) for v in node.outputs]
        return any(_lists(c, ins, outs) for c in entry.dtypes)

    def _keeps(self, node: Node, option: Option, own: DType | None) -> bool:
        narrow = sums_in_half(self.hcd, node, option.place)
        return SIGNIFICAND[option.place.dtype] >= SIGNIFICAND[own or DType.float32] and not option.emulated and not narrow

    def _degrades(self, node: Node, option: Option, own: DType | None) -> Answer:
        unit, dtype = option.place.unit, option.place.dtype.name
        kept = (own or DType.float32).name
        sentence = f"the unit {unit} of {self.name} computes {kept} in {dtype}; --precision high keeps {kept} with float32 sums"
        hint = f"compile without --precision high, or --route {onnx_name(node.op)}=host"
        return Answer(reason=sentence, origin=self.hcd.origin("compute_units", unit), firewall="precision", hint=hint)


def _table(value: Value) -> bool:
    """Whether a value is a small table a kernel reads, not a tensor of the model: integer constants."""
    return value.is_constant and value.type.dtype in (DType.int32, DType.int64)


def _lists(c: Combination, ins: Sequence[DType], outs: Sequence[DType]) -> bool:
    pairs = ((c.inputs, ins), (c.outputs, outs))
    return all(d.name == held[min(i, len(held) - 1)].removeprefix("torch.") for held, given in pairs for i, d in enumerate(given))

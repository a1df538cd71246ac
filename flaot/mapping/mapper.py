"""The mapping of one model onto one chip or several: verdicts, places and layouts in turn, each written into the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flaot.errors import UnsupportedError
from flaot.hcd import Board
from flaot.ir.facts import Context, facts
from flaot.ir.graph import HOST, Graph, Node
from flaot.ir.ops.relayout import Relayout
from flaot.kernels.base import Implementation
from flaot.mapping import LEVELS
from flaot.mapping.accumulator import sums_in_half
from flaot.mapping.capability import Capability, Reason
from flaot.mapping.cost import CostModel
from flaot.mapping.decisions import Assigned, Candidate, Decision, Fused, Missed
from flaot.mapping.fusions import BoardFusions
from flaot.mapping.layout import assign_layouts
from flaot.mapping.legalize import Verdict, legalize, legalize_cpu
from flaot.mapping.names import onnx_name
from flaot.mapping.orders import ChipLayouts
from flaot.mapping.placement import Placed, place
from flaot.mapping.policy import Policy, policy_of
from flaot.mapping.record import Record
from flaot.plan.program import Chip, Opcode, Program, Step
from flaot.rewrite import Tracer
from flaot.rewrite.engine import Gate
from flaot.rewrite.trace import Event
from flaot.targets.chip import chip_cpu, chip_limits
from flaot.targets.devices import Devices, host_of

INSERTED = ("Recast", "Relayout", "Copy")
"""Steps between nodes, which are no node's own."""


@dataclass
class Mapper:
    """What is known while a model is mapped. On a board without chips all nodes stay on the host. ``too_large``: by chip, a
    sentence for every model node that does not fit in its on-chip memory."""

    board: Board
    precision: str = "default"
    policy: Policy | None = None
    fusion_level: int = 2
    record: Record = field(default_factory=Record)
    too_large: Mapping[str, Mapping[str, Reason]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_cpu = not self.board.chips
        self.policy = self.policy if self.policy is not None else policy_of(self.board)
        self.record.chip = self.board.name
        self.record.policy = {**self.policy.to_json(), "precision": self.precision, "fusion_level": LEVELS[self.fusion_level]}
        self.fusions = BoardFusions(self.board, self.fusion_level, self.record.tracer)
        self.model = None if self.is_cpu else CostModel(self.board)
        self.verdicts: dict[int, Verdict] = {}

    def devices(self) -> Devices:
        """The host and the chips beside it."""
        chips = {h.name: chip_cpu(h) for h in self.board.chips}
        return Devices(host_of(self.board, self.precision == "high"), chips, self._sums_in_half)

    def _sums_in_half(self, node: Node) -> bool:
        return node.place.device != HOST.device and sums_in_half(self.board.chip(node.place.device), node, node.place)

    # -- stages --------------------------------------------------------------------------------------------------------

    def legalize(self, graph: Graph) -> None:
        """Raises UnsupportedError or ProblemList with every refused node."""
        assert self.policy is not None
        if self.is_cpu:
            self.verdicts = legalize_cpu(graph, self.board.first, self.policy, self.record.tracer)
        else:
            chips = [Capability(h, self.precision, self.too_large.get(h.name, {})) for h in self.board.chips]
            self.verdicts = legalize(graph, chips, self.policy, host=self.board.cpu)

    def place(self, graph: Graph) -> None:
        """Devices, units and element types; Transfer and Recast nodes."""
        if self.model is None:
            return
        if not self.verdicts:  # a dump of the legalized graph holds none
            self.legalize(graph)
        nodes = graph.nodes()
        options = {n.id: self.verdicts[n.id].options for n in nodes}
        placed = place(graph, options, self.model.used_by(options))
        self.record.assigned.append(Assigned("place", len(placed.solution.labels), placed.solution.energy, placed.solution.exact))
        self.record.inserted += placed.inserted
        context = Context.of(graph)
        for node in nodes:
            node.facts = facts(node, context)
            self._decide(node, placed)

    def _decide(self, node: Node, placed: Placed) -> None:
        verdict, chosen = self.verdicts[node.id], node.place
        kind, reason, origin = verdict.kind, verdict.reason, verdict.origin
        if chosen.device == HOST.device and kind != "fallback":
            able = " or ".join(dict.fromkeys(o.place.device for o in verdict.answer.options))
            kind, reason = "fallback", f"{able} could run it, but moving its values there and back would cost more than it saves"
        paid = next(c for o, c in placed.costs[node.id] if o.place == chosen)
        candidates = tuple(
            Candidate(str(o.place), o.place.dtype.name, round(c, 1), o.place == chosen, "" if o.place == chosen else _why_not(c, paid))
            for o, c in placed.costs[node.id]
        )
        decision = Decision(
            node.origin, verdict.op, onnx_name(node.op), kind, chosen.device, chosen.unit, _dtype(node), "", reason, origin,
            verdict.answer.note(chosen) if verdict.answer.options else "", candidates,
        )
        self.record.decisions.append(decision)

    def group(self, graph: Graph) -> None:
        """Nodes of a chip that one of its fusions takes together."""
        self.fusions.group(graph)

    @property
    def gate(self) -> Gate:
        """What keeps rules from fusing what belongs apart."""
        return self.fusions.gate

    def layouts(self, graph: Graph, ways: Mapping[int, Implementation]) -> None:
        """Storage of every value; Relayout nodes where two disagree. Raises UnsupportedError for more than the policy allows."""
        inserted, solution = assign_layouts(graph, ways, self.model)
        limits = [(h.full.policy.max_relayouts, h) for h in self.board.all if h.full.policy is not None]
        limit, hcd = min(((n, h) for n, h in limits if n is not None), key=lambda x: x[0], default=(None, self.board.first))
        if limit is not None and len(inserted) > limit:
            ways_out = dict.fromkeys(f"'{i.value}' from {i.source} to {i.target}: {i.remedy}" for i in inserted)
            raise UnsupportedError(
                f"{len(inserted)} values have to be rearranged; the policy of {hcd.name} allows max_relayouts {limit}",
                origin=hcd.origin("policy", "max_relayouts"), hint="; ".join(ways_out),
            )
        self.record.inserted += inserted
        self.record.assigned.append(Assigned("layouts", len(solution.labels), solution.energy, solution.exact))

    # -- afterwards ----------------------------------------------------------------------------------------------------

    def chips(self) -> list[Chip]:
        """Limits of the chips, for the plan."""
        return [chip_limits(h, ChipLayouts(h), bus) for h, bus in zip(self.board.chips, self.board.buses, strict=True)]

    def complete(self, graph: Graph, program: Program) -> None:
        """Adds to every decision what runs in the end, and in which layout; for a CPU chip makes the decisions. Adds what was fused."""
        tracer = self.record.tracer
        self.record.model_digest, self.record.hcd_digest = graph.digest.hex(), self.board.digest.hex()
        self.record.fused = [Fused(e.rule, e.origin) for e in tracer.events if e.device == HOST.device and _fuses(tracer, e)]
        self.record.fused += self.fusions.fused(graph)
        self.record.missed = [Missed(rule, where, why) for (rule, where), why in tracer.misses.items()]
        steps: dict[str, list[Step]] = {}
        for step in program.steps:
            for name in step.origin if step.opcode is Opcode.call and step.op not in INSERTED else ():
                steps.setdefault(name, []).append(step)
        nodes = {name: n for n in graph.nodes() if n.op.name not in (*INSERTED, "Transfer") for name in n.origin}
        if self.is_cpu:
            own = [n for n in graph.nodes() if n.origin and not isinstance(n.op, Relayout)]
            self.record.decisions += [Decision(n.origin, onnx_name(n.op), "", "native", HOST.device, "", _dtype(n)) for n in own]
        for d in self.record.decisions:
            node = next((nodes[name] for name in d.node if name in nodes), None)
            if node is not None and node.outputs and node.outputs[0].type.rank in (3, 4, 5):
                d.layout = self._layout(node)
            kernels = dict.fromkeys(s.kernel for name in d.node for s in steps.get(name, ()))
            d.step = ", ".join(kernels) or "view"

    def _layout(self, node: Node) -> str:
        on_host = node.place.device == HOST.device
        known = ChipLayouts(self.board.first if on_host else self.board.chip(node.place.device))
        storage, rank = node.outputs[0].storage, node.outputs[0].type.rank
        names = [n for n in ("NCHW", "NHWC", *known.axes) if known.order(n, rank) == storage]
        return names[0] if names else str(list(storage))


def _why_not(cost: float, paid: float) -> str:
    """Why a node is not where it would cost ``cost`` nanoseconds."""
    if cost > paid:
        return f"{cost - paid:.0f} ns more"
    return "no dearer by itself, but its neighbours' values would have to be moved or converted"


def _fuses(tracer: Tracer, event: Event) -> bool:
    return tracer.rules[event.rule].stage in ("fuse", "chain")


def _dtype(node: Node) -> str:
    return node.outputs[0].stored_type.dtype.name if node.outputs else ""

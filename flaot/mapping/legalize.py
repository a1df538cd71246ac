"""The legalize stage: a verdict for every node. Native before expanded before the host before refused; the policy moves the line.

An expansion counts when every node it leads to is native, expanded again where needed; else it is undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flaot.errors import FlaotError, InternalError, ProblemList, UnsupportedError
from flaot.hcd import Hcd
from flaot.ir.facts import Context
from flaot.ir.graph import HOST, Graph, Node
from flaot.ir.ops.attention import Attention
from flaot.mapping.capability import Answer, Capability
from flaot.mapping.names import names_of, onnx_name
from flaot.mapping.placement import Option
from flaot.mapping.policy import Policy, Route, check_routes
from flaot.rewrite import Tracer
from flaot.rules.expand import expand_all, expansion

PREFERENCE = 1e9
"""Nanoseconds by which a device that is not the preferred one costs more."""

DEPTH = 4
"""Expansions within expansions."""


@dataclass(frozen=True)
class Verdict:
    """``kind`` native, expanded, fallback or refused; ``op`` is the model's operator, ``options`` where the node may be placed, best
    first."""

    kind: str
    op: str
    options: tuple[Option, ...] = ()
    answer: Answer = field(default_factory=Answer)
    reason: str = ""
    origin: str = ""


def legalize(graph: Graph, capability: Capability, policy: Policy, refuse: bool = True) -> dict[int, Verdict]:
    """Verdicts by node id; expanded nodes are replaced in the graph.

    Raises UnsupportedError or ProblemList (exit code 5) with every refused node unless ``refuse`` is False, UsageError for a
    route that names nothing.
    """
    check_routes(graph, policy)
    return _Legalizer(graph, capability, policy).run(refuse)


def legalize_cpu(graph: Graph, hcd: Hcd, policy: Policy, tracer: Tracer | None = None, refuse: bool = True) -> dict[int, Verdict]:
    """The same for a chip of device type cpu, which runs all there are kernels for unless its descriptor states operators, element types
    or limits. Attention is expanded; there is no other device to fall back to."""
    check_routes(graph, policy)
    whole = {name for n in graph.nodes() if isinstance(n.op, Attention) for name in n.origin}
    if whole:
        expand_all(graph, lambda node: isinstance(node.op, Attention), tracer)
    if _is_limited(hcd):
        return _Legalizer(graph, Capability(hcd), Policy("error")).run(refuse)
    products = "there is no unit for attention"
    return {
        n.id: Verdict("expanded", "Attention", (Option(HOST),), reason=products) if whole & set(n.origin)
        else Verdict("native", onnx_name(n.op), (Option(HOST),))
        for n in graph.nodes()
    }


def _is_limited(hcd: Hcd) -> bool:
    stated = hcd.stated
    tensor, constraints = stated.tensor, stated.constraints
    return (
        stated.operators is not None
        or (tensor is not None and (tensor.supported_dtypes is not None or (tensor.max_rank or 8) < 8))
        or (constraints is not None and (constraints.max_batch_size is not None or constraints.max_sequence_length is not None))
    )


class _Legalizer:
    def __init__(self, graph: Graph, capability: Capability, policy: Policy) -> None:
        self.graph, self.capability, self.policy = graph, capability, policy
        self.context = Context.of(graph)
        self.verdicts: dict[int, Verdict] = {}
        self.problems: list[FlaotError] = []

    def run(self, refuse: bool) -> dict[int, Verdict]:
        for node in self.graph.nodes():
            if self.graph.contains(node):
                self._node(node)
        if refuse and self.problems:
            raise self.problems[0] if len(self.problems) == 1 else ProblemList(self.problems)
        return {n.id: self.verdicts[n.id] for n in self.graph.nodes()}

    def _node(self, node: Node) -> None:
        route = self.policy.route(node)
        if route is not None and route.device == HOST.device:
            self._fall_back(node, Answer(), f"routed there by {route.where}")
            return
        if self.capability.name in self.policy.exclude:
            self._fall_back(node, Answer(), f"{self.capability.name} is excluded")
            return
        answer = self.capability.ask(node, self.context)
        if route is not None:
            answer = self._routed(node, answer, route.unit)
        if answer.options:
            self.verdicts[node.id] = Verdict("native", onnx_name(node.op), self._options(answer, pinned=route is not None), answer)
        elif not self._expand(node, answer, route):
            if route is not None:
                self._refuse(node, answer, f"routed to {route.device} by {route.where}, which cannot run it: ")
            else:
                self._not_native(node, answer)

    def _routed(self, node: Node, answer: Answer, unit: str) -> Answer:
        kept = [(o, n) for o, n in zip(answer.options, answer.notes, strict=True) if not unit or o.place.unit == unit]
        if answer.options and not kept:
            origin = self.capability.hcd.origin("compute_units", unit)
            return Answer(reason=f"the unit {unit} does not run {onnx_name(node.op)}", origin=origin)
        return Answer(tuple(o for o, _ in kept), tuple(n for _, n in kept), answer.reason, answer.origin, answer.firewall, answer.hint)

    def _options(self, answer: Answer, pinned: bool) -> tuple[Option, ...]:
        host = HOST.device not in self.policy.exclude and self.policy.fallback != "error" and not pinned
        prefers = self.policy.prefer
        chip = tuple(Option(o.place, PREFERENCE if prefers == HOST.device else 0.0, o.emulated) for o in answer.options)
        return (*chip, Option(HOST, PREFERENCE if prefers not in ("", HOST.device) else 0.0)) if host else chip

    # -- expansion -----------------------------------------------------------------------------------------------------

    def _expand(self, node: Node, answer: Answer, route: Route | None) -> bool:
        """Replaces the node by ones the chip runs, if that is allowed and works; a route to one unit does not allow it."""
        if route is not None and route.unit:
            return False
        allowed = bool(set(names_of(node.op)) & self.policy.allow_expand)
        if answer.firewall and not (allowed and answer.firewall == "attention"):
            return False
        made: list[tuple[Node, Answer]] = []
        if not self._try(node, made, DEPTH):
            return False
        reason = f"{onnx_name(node.op)} computed by {', '.join(dict.fromkeys(onnx_name(n.op) for n, _ in made))}: {answer.reason}"
        for part, found in made:
            if self.graph.contains(part):
                options = self._options(found, pinned=route is not None)
                self.verdicts[part.id] = Verdict("expanded", onnx_name(node.op), options, found, reason, answer.origin)
        return True

    def _try(self, node: Node, made: list[tuple[Node, Answer]], depth: int) -> bool:
        patch = expansion(self.graph, node) if depth > 0 else None
        if patch is None:
            return False
        parts: list[tuple[Node, Answer | None]] = []
        for part in patch.new_nodes:
            found = self.capability.ask(part, self.context)
            if not found.options and (found.firewall or not self._can(part, depth - 1)):
                patch.discard()
                return False
            parts.append((part, found if found.options else None))
        patch.apply()
        for part, answer in parts:
            if answer is not None:
                made.append((part, answer))
            elif self.graph.contains(part) and not self._try(part, made, depth - 1):
                raise InternalError("it could be expanded a moment ago", where=f"legalize, {part.where}")
        return True

    def _can(self, node: Node, depth: int) -> bool:
        """Whether an unused node expands into ones that are native; changes nothing."""
        patch = expansion(self.graph, node) if depth > 0 else None
        if patch is None:
            return False
        fine = True
        for part in patch.new_nodes:
            found = self.capability.ask(part, self.context)
            fine = fine and (bool(found.options) or (not found.firewall and self._can(part, depth - 1)))
        patch.discard()
        return fine

    # -- host and refusal ----------------------------------------------------------------------------------------------

    def _not_native(self, node: Node, answer: Answer) -> None:
        yields = not answer.firewall or (answer.firewall == "limit" and self.policy.fallback == "allow")
        if yields and self.policy.fallback != "error" and HOST.device not in self.policy.exclude:
            self._fall_back(node, answer, answer.reason)
        else:
            self._refuse(node, answer)

    def _fall_back(self, node: Node, answer: Answer, reason: str) -> None:
        if isinstance(node.op, Attention):
            patch = expansion(self.graph, node)
            assert patch is not None
            parts = patch.new_nodes
            patch.apply()
        else:
            parts = [node]
        for part in parts:
            self.verdicts[part.id] = Verdict("fallback", onnx_name(node.op), (Option(HOST),), answer, reason, answer.origin)

    def _refuse(self, node: Node, answer: Answer, before: str = "") -> None:
        hint = answer.hint or self._way_out(routed=bool(before))
        self.problems.append(UnsupportedError(before + answer.reason, where=node.where, origin=answer.origin, hint=hint))
        self.verdicts[node.id] = Verdict("refused", onnx_name(node.op), (), answer, answer.reason, answer.origin)

    def _way_out(self, routed: bool) -> str:
        if self.capability.alone:
            return "compile for another chip, or make the descriptor list it"
        if routed:
            return "route it elsewhere"
        if HOST.device in self.policy.exclude:
            return "the host, which could run it, is excluded"
        return "the policy allows no fallback; --fallback warn lets the host run it"

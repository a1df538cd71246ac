"""The legalize stage: a verdict for every node. Native before expanded before the host before refused; the policy moves the line.

An expansion counts when every node it leads to is native, expanded again where needed; else it is undone. With several chips a node is
native when any of them runs it, and expanded for those that do not refuse it for a limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flaot.errors import FlaotError, InternalError, ProblemList, UnsupportedError
from flaot.hcd import Hcd
from flaot.ir.facts import Context
from flaot.ir.graph import HOST, Graph, Node
from flaot.ir.ops.attention import Attention
from flaot.mapping.capability import Answer, Capability
from flaot.mapping.chips import Chips, together
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


def legalize(
    graph: Graph, chips: Capability | Sequence[Capability], policy: Policy, refuse: bool = True, host: Hcd | None = None
) -> dict[int, Verdict]:
    """Verdicts by node id; expanded nodes are replaced in the graph. ``host`` describes the CPU beside the chips.

    Raises UnsupportedError or ProblemList (exit code 5) with every refused node unless ``refuse`` is False, UsageError for a
    route that names nothing.
    """
    check_routes(graph, policy)
    held = Chips((chips,) if isinstance(chips, Capability) else tuple(chips))
    return _Legalizer(graph, held, policy, Capability(host) if host is not None and _is_limited(host) else None).run(refuse)


def legalize_cpu(graph: Graph, hcd: Hcd, policy: Policy, tracer: Tracer | None = None, refuse: bool = True) -> dict[int, Verdict]:
    """The same for a chip of device type cpu, which runs all there are kernels for unless its descriptor states operators, element types
    or limits. Attention is expanded; there is no other device to fall back to."""
    check_routes(graph, policy)
    whole = {name for n in graph.nodes() if isinstance(n.op, Attention) for name in n.origin}
    if whole:
        expand_all(graph, lambda node: isinstance(node.op, Attention), tracer)
    if _is_limited(hcd):
        return _Legalizer(graph, Chips((Capability(hcd),)), Policy("error")).run(refuse)
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
    def __init__(self, graph: Graph, chips: Chips, policy: Policy, host: Capability | None = None) -> None:
        self.graph, self.policy, self.host = graph, policy, host
        self.chips = chips.without(policy.exclude)
        left_out = [c.name for c in chips.every if c.name in policy.exclude]
        self.excluded = f"{' and '.join(left_out)} {'are' if len(left_out) > 1 else 'is'} excluded"
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
        chips = self.chips if route is None else self.chips.only((route.device,))
        if not chips.every:
            self._fall_back(node, Answer(), self.excluded)
            return
        answers = chips.ask(node, self.context)
        if route is not None:
            answers = {c: self._routed(node, a, c, route.unit) for c, a in answers.items()}
        answer = together(list(answers.values()))
        if answer.options:
            options = self._options(node, answer, pinned=route is not None)
            self.verdicts[node.id] = Verdict("native", onnx_name(node.op), options, answer)
        elif not self._expand(node, answers, route):
            if route is not None:
                self._refuse(node, answer, f"routed to {route.device} by {route.where}, which cannot run it: ")
            else:
                self._not_native(node, answer)

    def _routed(self, node: Node, answer: Answer, chip: str, unit: str) -> Answer:
        kept = [(o, n) for o, n in zip(answer.options, answer.notes, strict=True) if not unit or o.place.unit == unit]
        if answer.options and not kept:
            origin = self.chips.origin(chip, "compute_units", unit)
            return Answer(reason=f"the unit {unit} does not run {onnx_name(node.op)}", origin=origin)
        return Answer(tuple(o for o, _ in kept), tuple(n for _, n in kept), answer.reason, answer.origin, answer.firewall, answer.hint)

    def _options(self, node: Node, answer: Answer, pinned: bool) -> tuple[Option, ...]:
        host = HOST.device not in self.policy.exclude and self.policy.fallback != "error" and not pinned
        chip = tuple(Option(o.place, self._penalty(o.place.device), o.emulated) for o in answer.options)
        return (*chip, Option(HOST, self._penalty(HOST.device))) if host and self._refused_by_host(node) is None else chip

    def _penalty(self, device: str) -> float:
        return PREFERENCE if self.policy.prefer not in ("", device) else 0.0

    # -- expansion -----------------------------------------------------------------------------------------------------

    def _expand(self, node: Node, answers: Mapping[str, Answer], route: Route | None) -> bool:
        """Replaces the node by ones the chips run, if that is allowed and works; a route to one unit does not allow it. Chips that refuse
        the node for a limit take no part, as it is not to be worked around."""
        if route is not None and route.unit:
            return False
        allowed = ("", "attention") if set(names_of(node.op)) & self.policy.allow_expand else ("",)
        chips = self.chips.only([c for c, a in answers.items() if a.firewall in allowed])
        made: list[tuple[Node, Answer]] = []
        if not chips.every or not self._try(node, made, DEPTH, chips):
            return False
        answer = together(list(answers.values()))
        reason = f"{onnx_name(node.op)} computed by {', '.join(dict.fromkeys(onnx_name(n.op) for n, _ in made))}: {answer.reason}"
        for part, found in made:
            if self.graph.contains(part):
                options = self._options(part, found, pinned=route is not None)
                self.verdicts[part.id] = Verdict("expanded", onnx_name(node.op), options, found, reason, answer.origin)
        return True

    def _try(self, node: Node, made: list[tuple[Node, Answer]], depth: int, chips: Chips) -> bool:
        patch = expansion(self.graph, node) if depth > 0 else None
        if patch is None:
            return False
        parts: list[tuple[Node, Answer | None]] = []
        for part in patch.new_nodes:
            found = together(list(chips.ask(part, self.context).values()))
            if not found.options and (found.firewall or not self._can(part, depth - 1, chips)):
                patch.discard()
                return False
            parts.append((part, found if found.options else None))
        patch.apply()
        for part, answer in parts:
            if answer is not None:
                made.append((part, answer))
            elif self.graph.contains(part) and not self._try(part, made, depth - 1, chips):
                raise InternalError("it could be expanded a moment ago", where=f"legalize, {part.where}")
        return True

    def _can(self, node: Node, depth: int, chips: Chips) -> bool:
        """Whether an unused node expands into ones that are native; changes nothing."""
        patch = expansion(self.graph, node) if depth > 0 else None
        if patch is None:
            return False
        fine = True
        for part in patch.new_nodes:
            found = together(list(chips.ask(part, self.context).values()))
            fine = fine and (bool(found.options) or (not found.firewall and self._can(part, depth - 1, chips)))
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
            refused = self._refused_by_host(part)
            if refused is not None:
                self._refuse(part, refused, f"{reason}; the host does not run it either: ")
            else:
                self.verdicts[part.id] = Verdict("fallback", onnx_name(node.op), (Option(HOST),), answer, reason, answer.origin)

    def _refused_by_host(self, node: Node) -> Answer | None:
        """Why a host that states limits does not run the node, or None."""
        answer = self.host.ask(node, self.context) if self.host is not None else None
        return answer if answer is not None and not answer.options else None

    def _refuse(self, node: Node, answer: Answer, before: str = "") -> None:
        hint = answer.hint or self._way_out(routed=bool(before))
        self.problems.append(UnsupportedError(before + answer.reason, where=node.where, origin=answer.origin, hint=hint))
        self.verdicts[node.id] = Verdict("refused", onnx_name(node.op), (), answer, answer.reason, answer.origin)

    def _way_out(self, routed: bool) -> str:
        if any(c.alone for c in self.chips.every):
            return "compile for another chip, or make the descriptor list it"
        if routed:
            return "route it elsewhere"
        if HOST.device in self.policy.exclude:
            return "the host, which could run it, is excluded"
        return "the policy allows no fallback; --fallback warn lets the host run it"

"""Groups of nodes that a chip runs as one: the matches of its fusions. Rules fuse nodes of a chip only within a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from flaot.hcd import Board, Hcd
from flaot.ir.graph import HOST, Graph, Node
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.fused_map import FusedMap
from flaot.ir.ops.reshape import Reshape
from flaot.mapping import LEVELS
from flaot.mapping.decisions import Fused
from flaot.mapping.matching import Match, match
from flaot.mapping.names import names_of, onnx_name
from flaot.mapping.patterns import Pattern, patterns
from flaot.rewrite import Tracer
from flaot.rewrite.engine import one_place

MAX_OPERANDS = 12
"""Values from outside that a tree of element-wise ops may read."""

STAGE = "fusions"
"""What ``explain`` calls the fusions of a descriptor."""


@dataclass
class _Group:
    name: str
    pattern: Pattern
    nodes: tuple[Node, ...]
    origin: tuple[str, ...]


@dataclass
class Fusions:
    """The fusions of a chip at a level (0 to 3), and the groups they make of one graph. ``numbers`` tell groups of one fusion apart; beside
    other chips (``shared``) fusions are named with theirs."""

    hcd: Hcd
    level: int
    tracer: Tracer = field(default_factory=Tracer)
    numbers: Iterator[int] = field(default_factory=count)
    shared: bool = False

    def __post_init__(self) -> None:
        self.all = [replace(p, name=f"{p.name} on {self.hcd.name}") if self.shared else p for p in patterns(self.hcd)]
        self.trees = {p.name for p in self.all if not p.parts}
        self.groups: list[_Group] = []
        self.misses: dict[int, list[tuple[Pattern, str]]] = {}

    def group(self, graph: Graph) -> None:
        """Gives the nodes of every match a group of their own. Larger patterns come first, then those listed earlier; no node is in two."""
        self.groups.clear()
        self.misses.clear()
        for node in graph.nodes():
            node.group = "" if self._owns(node) else node.group
        for pattern in self.all:
            self.tracer.offer(pattern.name, STAGE, f"{pattern.summary}, level {LEVELS[pattern.level]} ({pattern.origin})")
        for pattern in sorted(self.all, key=lambda p: p.level > self.level):
            if pattern.parts:
                self._match_all(graph, pattern)
        chains = [p for p in self.all if not p.parts and p.level <= self.level]
        if chains:
            self._chain(graph, max(chains, key=lambda p: p.longest))
        for node in graph.nodes():
            for pattern, why in self.misses.get(node.id, ()) if not node.group else ():
                self.tracer.missed(pattern, node, why)

    def fused(self, graph: Graph) -> list[Fused]:
        """What became of every group, once rules have run: its fusion and how many steps are left of it."""
        left: dict[str, int] = {}
        for node in graph.nodes():
            if node.group and not isinstance(node.op, Reshape):
                left[node.group] = left.get(node.group, 0) + 1
        return [Fused(g.pattern.name, g.origin, g.pattern.level, g.pattern.origin, left.get(g.name, 1)) for g in self.groups]

    # -- groups --------------------------------------------------------------------------------------------------------

    def _owns(self, node: Node) -> bool:
        return node.place.device == self.hcd.name

    def _match_all(self, graph: Graph, pattern: Pattern) -> None:
        for node in graph.nodes():
            if not self._owns(node) or node.group or not pattern.parts[-1].accepts(names_of(node.op)):
                continue
            found = match(graph, pattern, node)
            if isinstance(found, Match) and not any(n.group for n in found.nodes):
                if pattern.level <= self.level:
                    self._add(pattern, found.nodes, found.between)
                    continue
                found = f"it is listed for level {LEVELS[pattern.level]}; this is level {LEVELS[self.level]}"
            if isinstance(found, str):
                self.misses.setdefault(node.id, []).append((pattern, found))

    def _add(self, pattern: Pattern, nodes: Sequence[Node], between: Sequence[Node] = ()) -> None:
        name = f"{pattern.name}.{next(self.numbers)}"
        for node in (*nodes, *between):
            node.group = name
        origin = tuple(dict.fromkeys(o for n in nodes for o in n.origin))
        self.groups.append(_Group(name, pattern, tuple(nodes), origin))
        self.tracer.fired(pattern, nodes[-1], origin)

    def _chain(self, graph: Graph, pattern: Pattern) -> None:
        """Trees of element-wise ops whose inner results have one reader and the shape of the final one."""
        tree: dict[int, list[Node]] = {}
        for node in graph.nodes():
            if node.group or not self._owns(node) or node.place.unit not in pattern.units or not isinstance(node.op, _Elementwise):
                continue
            mine = [node]
            for value in dict.fromkeys(node.inputs):
                above = tree.get(value.producer.id) if value is not None and value.producer is not None else None
                if value is None or above is None or graph.is_output(value) or above[-1].place != node.place:
                    continue
                if value.type.shape != node.outputs[0].type.shape or any(n is not node for n, _ in graph.consumers(value)):
                    continue
                joined = [*above, *mine]
                if len(joined) <= pattern.longest and _operands(joined) <= MAX_OPERANDS:
                    del tree[above[-1].id]
                    mine = joined
            tree[node.id] = mine
        for nodes in tree.values():
            if len(nodes) > 1:
                self._add(pattern, nodes)

    # -- the gate ------------------------------------------------------------------------------------------------------

    def gate(self, nodes: Sequence[Node]) -> str | None:
        """Why rules may not make one node of these, or None. Reshapes compute nothing and belong to any group."""
        elsewhere = one_place(nodes)
        if elsewhere is not None or nodes[0].place.device == HOST.device:
            return elsewhere
        computing = [n for n in nodes if not isinstance(n.op, Reshape)]
        if len(computing) < 2 or (computing[0].group and all(n.group == computing[0].group for n in computing)):
            return None
        return self._refusal(computing)

    def _refusal(self, nodes: Sequence[Node]) -> str:
        trees = self._tree_refusal(nodes)
        if trees is not None:
            return trees
        chain = [onnx_name(n.op) for n in nodes]
        shown = " -> ".join(_words(n) for n in nodes)
        known = [(p, why) for n in nodes for p, why in self.misses.get(n.id, ()) if p.holds(chain)]
        if known:
            pattern, why = known[0]
            return f"the fusion {pattern.name} ({pattern.origin}) does not apply: {why}"
        later = next((p for p in self.all if p.level > self.level and p.holds(chain)), None)
        taken = next((n for n in nodes if n.group), None)
        if taken is not None and any(p.holds(chain) for p in self.all if p.level <= self.level):
            return f"{taken.where} is taken by another match, of the fusion {taken.group.rpartition('.')[0]}"
        if later is not None:
            return f"{later.origin} lists the fusion {later.name} for level {LEVELS[later.level]}; this is level {LEVELS[self.level]}"
        if self.hcd.full.fusions is not None:
            return f"{self.hcd.origin('fusions')} lists no fusion {shown} at level {LEVELS[self.level]}"
        unit = nodes[0].place.unit
        kind = f"a unit of kind {self.hcd.full.compute_units[unit].kind} ({self.hcd.origin('compute_units', unit)})"
        return f"{self.hcd.name} lists no fusions, and the default ones of {kind} hold no {shown} at level {LEVELS[self.level]}"


    def _tree_refusal(self, nodes: Sequence[Node]) -> str | None:
        """Why element-wise ops stay apart on a unit that fuses trees of them."""
        limits = {p.level: p.longest for p in self.all if not p.parts and nodes[0].place.unit in p.units}
        if not limits or not all(isinstance(n.op, _Elementwise | FusedMap) for n in nodes):
            return None
        taken = next((n for n in nodes if n.group and n.group.rpartition(".")[0] not in self.trees), None)
        if taken is not None:
            return f"{taken.where} is taken by the fusion {taken.group.rpartition('.')[0]}"
        now = max((size for level, size in limits.items() if level <= self.level), default=0)
        more = [f"{size} at level {LEVELS[level]}" for level, size in limits.items() if level > self.level]
        held = f"at most {now}" if now else "no"
        return f"{held} element-wise operators become one at level {LEVELS[self.level]}{f', {more[0]}' if more else ''}"


class BoardFusions:
    """The fusions of every chip of a board, and the groups they make of one graph."""

    def __init__(self, board: Board, level: int, tracer: Tracer) -> None:
        numbers = count()
        self.chips = {h.name: Fusions(h, level, tracer, numbers, len(board.chips) > 1) for h in board.chips}

    def group(self, graph: Graph) -> None:
        """Groups the nodes of every chip by its own fusions."""
        for fusions in self.chips.values():
            fusions.group(graph)

    def fused(self, graph: Graph) -> list[Fused]:
        """What became of every group, once rules have run."""
        return [f for fusions in self.chips.values() for f in fusions.fused(graph)]

    def gate(self, nodes: Sequence[Node]) -> str | None:
        """Why rules may not make one node of these, or None."""
        elsewhere = one_place(nodes)
        device = nodes[0].place.device
        return elsewhere if elsewhere is not None or device == HOST.device else self.chips[device].gate(nodes)


def _operands(nodes: Sequence[Node]) -> int:
    made = {v.id for n in nodes for v in n.outputs}
    return len({v.id for n in nodes for v in n.inputs if v is not None} - made)


def _words(node: Node) -> str:
    return " -> ".join(op.name for op, _ in node.op.steps) if isinstance(node.op, FusedMap) else onnx_name(node.op)

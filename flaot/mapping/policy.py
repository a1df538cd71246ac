"""What the user allows: where nodes may go when the chip does not run them, and where they must go."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from flaot.errors import UsageError, printable
from flaot.hcd import Board, Hcd, board_of
from flaot.hcd.fields import FALLBACKS
from flaot.hcd.rules import active_units
from flaot.hcd.text import nearest, parse
from flaot.ir.graph import HOST, Graph, Node
from flaot.mapping.names import known_operators, names_of


@dataclass(frozen=True)
class Route:
    """Nodes that ``pattern`` names (an operator, a node name, or a name with * and ?) go to ``device``, and there to ``unit`` unless "".
    ``where`` is the option or the file's line it stands in."""

    pattern: str
    device: str
    unit: str
    where: str

    def names(self, node: Node) -> bool:
        if self.pattern in names_of(node.op):
            return True
        return any(name == self.pattern or fnmatch.fnmatchcase(name, self.pattern) for name in node.origin)


@dataclass(frozen=True)
class Policy:
    """``fallback``: "error", "warn" or "allow" the host to run what the chip does not. ``prefer`` and ``exclude`` name devices,
    ``allow_expand`` operators that may be computed by simpler ones even where a unit for them exists."""

    fallback: str = "warn"
    routes: tuple[Route, ...] = ()
    prefer: str = ""
    exclude: tuple[str, ...] = ()
    allow_expand: frozenset[str] = field(default_factory=frozenset)

    def route(self, node: Node) -> Route | None:
        """The last route that names the node; those by node name win over those by operator."""
        found = [r for r in self.routes if r.names(node)]
        exact = [r for r in found if r.pattern not in names_of(node.op)]
        return (exact or found)[-1] if found else None

    def to_json(self) -> dict[str, object]:
        routes = {r.pattern: f"{r.device}.{r.unit}" if r.unit else r.device for r in self.routes}
        return {
            "fallback": self.fallback, "routes": routes, "prefer": self.prefer, "exclude": list(self.exclude),
            "allow_expand": sorted(self.allow_expand),
        }


def policy_of(
    chip: Hcd | Board, *, fallback: str | None = None, routes: Sequence[str] = (), route_file: tuple[bytes, str] | None = None,
    prefer: str = "", exclude: Sequence[str] = (), allow_expand: Iterable[str] = (),
) -> Policy:
    """A policy from the texts of a command line; what it leaves out comes from the descriptor, of several chips from the strictest.

    Args:
        routes: ``PATTERN=DEVICE`` or ``PATTERN=DEVICE.UNIT``.
        route_file: content and name of a YAML mapping of the same; the texts come after it.
    Raises UsageError for a device, unit or operator that does not exist.
    """
    board = board_of(chip)
    stated = [h.full.policy.fallback for h in board.chips or board.all if h.full.policy is not None]
    chosen = fallback or next((f for f in FALLBACKS if f in stated), "warn")
    if chosen not in FALLBACKS:
        raise UsageError(f"fallback {printable(chosen)}; allowed are {', '.join(FALLBACKS)}")
    listed = _file_routes(*route_file) if route_file is not None else []
    listed += [(*_split(text), f"--route {printable(text)}") for text in routes]
    known = known_operators()
    for name in allow_expand:
        if name not in known:
            raise UsageError(f"--allow-expand {printable(name)}: no such operator; {nearest(name, known)}")
    preferred = device_of(prefer, board, f"--prefer {printable(prefer)}") if prefer else ""
    left_out = tuple(device_of(e, board, f"--exclude {printable(e)}") for e in exclude)
    devices = {HOST.device, *(h.name for h in board.chips)} if board.chips else {board.first.name}
    if devices <= set(left_out):
        raise UsageError(f"--exclude {', '.join(sorted(left_out))}: no device is left")
    if preferred in left_out:
        raise UsageError(f"--prefer {printable(prefer)}: that device is excluded")
    found = tuple(Route(p, *_place(target, board, where), where) for p, target, where in listed)
    lost = next((r for r in found if r.device in left_out), None)
    if lost is not None:
        raise UsageError(f"{lost.where}: {lost.device} is excluded")
    return Policy(chosen, found, preferred, left_out, frozenset(allow_expand))


def _split(text: str) -> tuple[str, str]:
    pattern, equals, target = text.rpartition("=")
    if not equals or not pattern or not target:
        raise UsageError(f"--route {printable(text)}: expected OP=DEVICE or NODE=DEVICE")
    return pattern, target


def _file_routes(data: bytes, source: str) -> list[tuple[str, str, str]]:
    held = parse(data, source)
    found = []
    for pattern, target in held.plain().items():
        place = held.find((pattern,)).key_place
        where = f"{PurePath(place.file).name}:{place.line}"
        if not isinstance(target, str):
            raise UsageError("expected a device, such as host", where=f"{place.file}:{place.line}")
        found.append((str(pattern), target, where))
    return found


def _place(target: str, board: Board, where: str) -> tuple[str, str]:
    """Device and unit of ``DEVICE`` or ``DEVICE.UNIT``. A chip's own name may have dots."""
    device, unit = (target, "") if target.lower() in _words(board) else target.partition(".")[::2]
    name = device_of(device, board, where)
    units = sorted(active_units(board.chip(name).full)) if any(h.name == name for h in board.chips) else []
    if unit and unit not in units:
        raise UsageError(f"{where}: {name} has no unit '{printable(unit)}'; {nearest(unit, units)}")
    return name, unit


def device_of(word: str, chip: Hcd | Board, where: str) -> str:
    """The device a word means: ``host``, or a chip by its name, its descriptor's name, its device type or that type's family (npu), unless
    several chips have it; the descriptor of the host means the host."""
    board = board_of(chip)
    words = _words(board)
    found = words.get(word.lower()) or words.get(word.lower().replace("-", "_"))
    if found is None:
        raise UsageError(f"{where}: no device '{printable(word)}'; {nearest(word, ['host', *map(_stem, board.all)])}")
    if len(found) > 1:
        raise UsageError(f"{where}: '{printable(word)}' may be {' or '.join(found)}", hint="name one of them")
    return found[0]


def _words(board: Board) -> dict[str, list[str]]:
    """Devices by what they may be called; a name goes before a file's name, and that before a device type."""
    words: dict[str, list[str]] = {}
    for called in (_kinds, lambda h: [_stem(h).lower()], lambda h: [h.name.lower()]):
        level: dict[str, list[str]] = {}
        for hcd in board.all:
            device = HOST.device if hcd is board.cpu and board.chips else hcd.name
            for word in called(hcd):
                level.setdefault(word, []).append(device)
        words |= level
    return words | {"host": [HOST.device]}


def _kinds(hcd: Hcd) -> list[str]:
    kind = hcd.full.chip.device_type
    return list(dict.fromkeys((kind, kind.split("_")[0])))


def _stem(hcd: Hcd) -> str:
    return hcd.source.rsplit("/", 1)[-1].removesuffix(".hcd")


def check_routes(graph: Graph, policy: Policy) -> None:
    """Raises UsageError for a route that names no node and no operator of the model."""
    nodes = graph.nodes()
    operators = set(known_operators())
    for route in policy.routes:
        if route.pattern in operators or any(route.names(n) for n in nodes):
            continue
        names = sorted({name for n in nodes for name in n.origin})
        hint = nearest(route.pattern, names) if len(names) < 2000 else ""
        hint = hint if hint.startswith("did") else "flaot query MODEL lists them"
        raise UsageError(f"{route.where}: the model has no node or operator '{printable(route.pattern)}'; {hint}")

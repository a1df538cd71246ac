"""What the user allows: where nodes may go when the chip does not run them, and where they must go."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from flaot.errors import UsageError, printable
from flaot.hcd import Hcd
from flaot.hcd.fields import FALLBACKS
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
    hcd: Hcd, *, fallback: str | None = None, routes: Sequence[str] = (), route_file: tuple[bytes, str] | None = None, prefer: str = "",
    exclude: Sequence[str] = (), allow_expand: Iterable[str] = (),
) -> Policy:
    """A policy from the texts of a command line; what it leaves out comes from the descriptor.

    Args:
        routes: ``PATTERN=DEVICE`` or ``PATTERN=DEVICE.UNIT``.
        route_file: content and name of a YAML mapping of the same; the texts come after it.
    Raises UsageError for a device, unit or operator that does not exist.
    """
    stated = hcd.full.policy.fallback if hcd.full.policy is not None else None
    chosen = fallback or stated or "warn"
    if chosen not in FALLBACKS:
        raise UsageError(f"fallback {printable(chosen)}; allowed are {', '.join(FALLBACKS)}")
    listed = _file_routes(*route_file) if route_file is not None else []
    listed += [(*_split(text), f"--route {printable(text)}") for text in routes]
    known = known_operators()
    for name in allow_expand:
        if name not in known:
            raise UsageError(f"--allow-expand {printable(name)}: no such operator; {nearest(name, known)}")
    preferred = device_of(prefer, hcd, f"--prefer {printable(prefer)}") if prefer else ""
    left_out = tuple(device_of(e, hcd, f"--exclude {printable(e)}") for e in exclude)
    devices = {hcd.name} if hcd.full.chip.device_type == "cpu" else {HOST.device, hcd.name}
    if devices <= set(left_out):
        raise UsageError(f"--exclude {', '.join(sorted(left_out))}: no device is left")
    if preferred in left_out:
        raise UsageError(f"--prefer {printable(prefer)}: that device is excluded")
    return Policy(
        chosen, tuple(Route(p, *_place(target, hcd, where), where) for p, target, where in listed),
        preferred, left_out, frozenset(allow_expand),
    )


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


def _place(target: str, hcd: Hcd, where: str) -> tuple[str, str]:
    device, _, unit = target.partition(".")
    name = device_of(device, hcd, where)
    units = sorted(hcd.full.compute_units)
    if unit and (name == HOST.device or unit not in units):
        raise UsageError(f"{where}: {name} has no unit '{printable(unit)}'; {nearest(unit, units)}")
    return name, unit


def device_of(word: str, hcd: Hcd, where: str) -> str:
    """The device a word means: ``host``, or the chip by its name, its descriptor's name, its device type or that type's family (npu)."""
    stem, kind = hcd.source.rsplit("/", 1)[-1].removesuffix(".hcd"), hcd.full.chip.device_type
    names = {**dict.fromkeys((hcd.name.lower(), stem.lower(), kind, kind.split("_")[0]), hcd.name), "host": HOST.device}
    found = names.get(word.lower()) or names.get(word.lower().replace("-", "_"))
    if found is None:
        raise UsageError(f"{where}: no device '{printable(word)}'; {nearest(word, ['host', stem])}")
    return found


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

"""Single decisions as data: what the record of a compilation is made of."""

from __future__ import annotations

from dataclasses import dataclass

VERDICTS = ("native", "expanded", "fallback", "refused")


@dataclass(frozen=True)
class Candidate:
    """A place a node could have had, what it would have cost there in nanoseconds, and why it was not taken ("" for the chosen one)."""

    place: str
    dtype: str
    cost_ns: float
    chosen: bool
    why_not: str = ""


@dataclass
class Decision:
    """Where one node of the graph went: ``node`` are the model's node names, ``op`` the model's operator, ``step`` what runs. ``origin``
    is the line of the descriptor the reason rests on."""

    node: tuple[str, ...]
    op: str
    step: str
    verdict: str
    device: str = ""
    unit: str = ""
    dtype: str = ""
    layout: str = ""
    reason: str = ""
    origin: str = ""
    note: str = ""
    candidates: tuple[Candidate, ...] = ()

    def lines(self) -> list[str]:
        """As a person reads it."""
        place = f"{self.device}.{self.unit}" if self.unit else self.device
        form = " ".join(x for x in (self.dtype, self.layout) if x)
        lines = [f"{self.op} -> {self.step}: {self.verdict}, on {place or 'nothing'}{f' in {form}' if form else ''}"]
        if self.reason:
            lines.append(f"  because {self.reason}{at(self.origin)}")
        if self.note:
            lines.append(f"  note: {self.note}")
        for c in self.candidates:
            cost = f"{c.cost_ns:.0f} ns{f'; {c.why_not}' if c.why_not else ''}"
            lines.append(f"  {'chosen' if c.chosen else 'not'} {c.place} in {c.dtype}: {cost}")
        return lines


@dataclass(frozen=True)
class Inserted:
    """A Transfer, Cast or Relayout that the model does not hold: the value, its bytes as they are read, estimated nanoseconds, the device
    (Transfer), element type (Cast) or layout (Relayout) on both sides, where it runs, who wanted it, and what would remove it.
    ``edge`` says that one side is an input or output of the model, ``zero_copy`` that host and chip see the same memory, so that bytes and
    nanoseconds are 0."""

    kind: str
    value: str
    nbytes: int
    cost_ns: float
    source: str
    target: str
    where: str
    wanted_by: str
    remedy: str
    edge: bool = False
    zero_copy: bool = False

    def line(self) -> str:
        """As a person reads it."""
        what = f"{self.kind} of '{self.value}' from {self.source} to {self.target}"
        price = "zero-copy: nothing is moved" if self.zero_copy else f"{self.nbytes} bytes, {self.cost_ns:.0f} ns"
        return f"{what}, {price}; removed by: {self.remedy}"


@dataclass(frozen=True)
class Fused:
    """Nodes that became one step, by a rule or a fusion of the descriptor with its level and line; ``steps`` is more than 1 where the
    chip would take them as one and no kernel does."""

    name: str
    nodes: tuple[str, ...]
    level: int = 0
    origin: str = ""
    steps: int = 1

    def line(self) -> str:
        """As a person reads it."""
        text = f"fused by {self.name}{at(self.origin)}: {', '.join(self.nodes)}"
        return f"{text}; runs as {self.steps} steps, as no kernel takes them as one" if self.steps > 1 else text


@dataclass(frozen=True)
class Missed:
    """A rule or fusion that nearly applied at a node, and the sentence why not."""

    name: str
    node: str
    why: str


@dataclass(frozen=True)
class Assigned:
    """One labelling problem: nodes, energy in nanoseconds, and whether no labelling is better for certain."""

    stage: str
    nodes: int
    energy_ns: float
    exact: bool


@dataclass(frozen=True)
class Way:
    """One way to take a step through on-chip memory: its path (resident, tiled or pipelined), the axes it is cut along and into how many
    parts, bytes of on-chip memory, bytes moved, estimated nanoseconds, and why it was not taken."""

    path: str
    tiling: str
    memory_bytes: int
    traffic_bytes: int
    time_ns: float
    chosen: bool
    why_not: str = ""


@dataclass(frozen=True)
class Pathed:
    """How a step on a chip passes through on-chip memory, of which ``free_bytes`` were not taken by what stays there, and why."""

    node: tuple[str, ...]
    op: str
    device: str
    unit: str
    path: str
    tiling: str
    free_bytes: int
    reason: str
    ways: tuple[Way, ...] = ()

    def lines(self) -> list[str]:
        """As a person reads it."""
        lines = [f"path {self.path} ({self.tiling}) on {self.device}.{self.unit}: {self.reason}"]
        for w in self.ways:
            figures = f"{w.memory_bytes} bytes on chip, {w.traffic_bytes} moved, {w.time_ns:.0f} ns"
            lines.append(f"  {'chosen' if w.chosen else 'not'} {w.path} ({w.tiling}): {figures}{f'; {w.why_not}' if w.why_not else ''}")
        return lines


@dataclass(frozen=True)
class Powered:
    """What a chip draws when its descriptor says so: microjoules, milliwatts on average, at most and allowed (0: no cap), and the
    microseconds it works beside those without the cap."""

    device: str
    energy_uj: float
    average_mw: float
    peak_mw: float
    cap_mw: float
    time_us: float
    uncapped_us: float


def at(origin: str) -> str:
    """`` (npu_v3.hcd:12)``, or nothing."""
    return f" ({origin})" if origin else ""

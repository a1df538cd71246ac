"""Storage orders by name: what NHWC means for a tensor of some rank, and which of them a node may have on a chip."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flaot.hcd import Hcd
from flaot.hcd.layouts import Layout as Stated
from flaot.hcd.rules import active_units
from flaot.ir.graph import Node
from flaot.ir.types import Layout, channels_last, row_major
from flaot.mapping.names import names_of

PLAIN, LAST = "NCHW", "NHWC"


def order_of(name: str, axes: str, rank: int) -> Layout:
    """The permutation that stores a tensor of this rank in the layout. Ranks other than 4 have two: channels last where the layout puts
    them there (ranks 3 and 5), else row-major."""
    if rank == 4:
        return tuple("NCHW".index(a) for a in axes)
    return channels_last(rank) if axes.endswith("C") and rank in (3, 5) else row_major(rank)


@dataclass(frozen=True)
class ChipLayouts:
    """The layouts a descriptor allows; blocked and padded ones are left out, as tensors are dense and axes whole."""

    hcd: Hcd

    @cached_property
    def axes(self) -> dict[str, str]:
        """Axes from the slowest to the fastest, by layout name."""
        found = {n: n for n in ("NCHW", "NHWC", "NHCW")}
        found |= {n: layout.axes for n, layout in (self.hcd.full.layouts or {}).items()}
        padded = {n for n, layout in (self.hcd.full.layouts or {}).items() if layout.pad_to}
        return {n: a for n, a in found.items() if sorted(a) == sorted("NCHW") and n not in padded}

    @cached_property
    def by_unit(self) -> dict[str, tuple[str, ...]]:
        """Names by unit in use, the chip's default first."""
        units = active_units(self.hcd.full)
        every = [n for u in units.values() for n in u.supported_layouts or ()]
        return {name: self._sorted(u.supported_layouts or tuple(dict.fromkeys(every)) or (PLAIN,)) for name, u in units.items()}

    def blocked(self, unit: str) -> tuple[str, ...]:
        """Names the unit lists whose axes are split or padded."""
        return tuple(n for n in self.hcd.full.compute_units[unit].supported_layouts or () if n not in self.axes)

    def shown(self, unit: str) -> str:
        """What the unit offers, in words."""
        blocked = self.blocked(unit)
        offered = ", ".join(self.by_unit[unit]) or "none"
        return f"{offered}; {', '.join(blocked)} not offered: blocked or padded" if blocked else offered

    def _sorted(self, names: tuple[str, ...]) -> tuple[str, ...]:
        first = self.hcd.full.tensor.default_layout if self.hcd.full.tensor is not None else None
        kept = [n for n in names if n in self.axes]
        return tuple(sorted(kept, key=lambda n: (n != first, kept.index(n))))

    @cached_property
    def every(self) -> tuple[str, ...]:
        """Names any unit takes, the chip's default first."""
        return self._sorted(tuple(dict.fromkeys(n for names in self.by_unit.values() for n in names)))

    def written(self, node: Node) -> tuple[str, ...]:
        """Names the node may write, best first."""
        return self._listed(node, "layouts_out") or self.by_unit[node.place.unit]

    def read(self, node: Node, written: str) -> str:
        """The name the node reads when it writes ``written``."""
        listed = self._listed(node, "layouts_in")
        return written if not listed or written in listed else listed[0]

    def readable(self, node: Node) -> tuple[str, ...]:
        """Names the node may read."""
        return self._listed(node, "layouts_in") or self.by_unit[node.place.unit]

    def listing(self, node: Node) -> tuple[str, str]:
        """Where a node's layouts are listed, in words, and the line."""
        table = self.hcd.full.operators or {}
        name = next((n for n in names_of(node.op) if n in table and table[n].layouts_in), None)
        if name is not None:
            return f"layouts_in of operators.{name}", self.hcd.origin("operators", name, "layouts_in")
        return f"supported_layouts of compute_units.{node.place.unit}", self.origin(node.place.unit)

    def conversions(self, held: Layout, wanted: Layout) -> list[tuple[str, Stated]]:
        """What the descriptor states about converting between two layouts, by layout name; nothing about row-major."""
        stated = self.hcd.full.layouts or {}
        orders = {n: self.order(n, len(held)) for n in stated if n in self.axes}
        return [(n, stated[n]) for n, o in orders.items() if o in (held, wanted) and o != row_major(len(held))]

    def _listed(self, node: Node, key: str) -> tuple[str, ...]:
        table = self.hcd.full.operators or {}
        entry = next((table[n] for n in names_of(node.op) if n in table), None)
        names = getattr(entry, key) if entry is not None else None
        return self._sorted(names) if names else ()

    def order(self, name: str, rank: int) -> Layout:
        return order_of(name, self.axes[name], rank)

    def origin(self, unit: str) -> str:
        """The line that lists a unit's layouts."""
        return self.hcd.origin("compute_units", unit, "supported_layouts")

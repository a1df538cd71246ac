"""The descriptors one plan is compiled for: a chip, several, or chips and the CPU beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flaot.errors import HcdError, UsageError
from flaot.hcd.library import load_hcd
from flaot.hcd.loader import Hcd

MAX_CHIPS = 3
"""Chips beside the host in one plan: the plan format holds four devices."""


@dataclass(frozen=True)
class Board:
    """``chips`` are devices 1 to 3 of the plan, in this order; ``cpu`` describes device 0, the host, where it is known. A CPU alone is a
    board without chips.

    Raises UsageError for more than the format holds, two hosts, or two descriptors of one name, HcdError for chips that give one layout's
    name to two orders of axes.
    """

    chips: tuple[Hcd, ...] = ()
    cpu: Hcd | None = None

    def __post_init__(self) -> None:
        if len(self.chips) > MAX_CHIPS:
            raise UsageError(f"{len(self.chips)} chips; a plan holds at most {MAX_CHIPS} beside the host")
        names = [h.name for h in self.all]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise UsageError(f"two descriptors are named {twice}", hint="a descriptor that extends it may state another chip.name")
        for name, found in self._layouts().items():
            if len({axes for axes, _ in found}) > 1:
                (axes, hcd), (others, _) = found[0], next(f for f in found if f[0] != found[0][0])
                sentence = f"the layout {name} stores {axes} on {hcd.name} and {others} on another chip of the plan"
                raise HcdError(sentence, origin=hcd.origin("layouts", name), hint="give one of them another name")

    def _layouts(self) -> dict[str, list[tuple[str, Hcd]]]:
        found: dict[str, list[tuple[str, Hcd]]] = {}
        for hcd in self.chips:
            stated = {name: layout.axes for name, layout in (hcd.full.layouts or {}).items()}
            for name, axes in ({n: n for n in ("NCHW", "NHWC", "NHCW")} | stated).items():
                found.setdefault(name, []).append((axes, hcd))
        return found

    @property
    def all(self) -> tuple[Hcd, ...]:
        """Every descriptor in the order of the plan's devices."""
        return (self.cpu, *self.chips) if self.cpu is not None else self.chips

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all descriptors and of what they extend."""
        return tuple(str(path) for hcd in self.all for path in hcd.files)

    @property
    def first(self) -> Hcd:
        """The first chip, or the CPU where there is none."""
        return (*self.chips, *self.all)[0]

    @property
    def name(self) -> str:
        """``NPU-V3 + NPU-V2``."""
        return " + ".join(h.name for h in self.all)

    @property
    def digest(self) -> bytes:
        """The digest of the one descriptor; of several the SHA-256 over their digests in the order of the plan's devices."""
        digests = [h.digest for h in self.all]
        return digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(digests)).digest()

    @property
    def buses(self) -> tuple[int, ...]:
        """The number of the bus of every chip's transfers: chips that name the same one share it, others have one of their own."""
        names = [(h.full.host.bus if h.full.host is not None else None) or i for i, h in enumerate(self.chips)]
        known = list(dict.fromkeys(names))
        return tuple(known.index(n) for n in names)

    def chip(self, name: str) -> Hcd:
        """The chip of that name. Raises KeyError."""
        return {h.name: h for h in self.chips}[name]


Given = Hcd | Board | str | Path
"""A descriptor: loaded, by its name, or its file; or a board."""


def board_of(given: Given | Sequence[Hcd | str | Path]) -> Board:
    """The board of one descriptor or several. Raises what loading raises, UsageError and HcdError."""
    if isinstance(given, Board):
        return given
    listed = [given] if isinstance(given, Hcd | str | Path) else list(given)
    if not listed:
        raise UsageError("no descriptor of a chip is given")
    held = [h if isinstance(h, Hcd) else load_hcd(h) for h in listed]
    cpus, chips = ([h for h in held if (h.full.chip.device_type == "cpu") == is_cpu] for is_cpu in (True, False))
    if len(cpus) > 1:
        raise UsageError(f"{' and '.join(h.name for h in cpus)}: a plan has one host", hint="name one descriptor of device type cpu")
    return Board(tuple(chips), cpus[0] if cpus else None)

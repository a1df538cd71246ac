"""Where on a chip something can be probed: an operator it claims, the unit that runs it, the element type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flaot.hcd import Hcd
from flaot.hcd.rules import kind_of
from flaot.ir.graph import Place
from flaot.ir.types import DType
from flaot.mapping.capability import Capability
from flaot.mapping.describe import describe

SUMS = ("Add", "Sub", "Mul")
"""Operators that double a number when it is given twice, negated, or with 2."""


@dataclass(frozen=True)
class Site:
    """The operator by its ONNX name, and its place."""

    operator: str
    place: Place


def sites(hcd: Hcd, operators: Sequence[str]) -> Iterator[Site]:
    """Everywhere one of the operators runs on floating point, operators listed first coming first."""
    chip = Capability(hcd)
    for name in operators:
        described = describe(name, hcd)
        for unit in described.units if described.verdict.startswith("native") else ():
            if kind_of(unit, chip.units[unit]) == "attention":
                continue
            for dtype, _ in chip.floats_of(unit):
                if _listed(hcd, name, dtype):
                    yield Site(name, Place(hcd.name, unit, dtype))


def site(hcd: Hcd, operators: Sequence[str], dtype: DType | None = None, unit: str = "") -> Site | None:
    """The first of them, in this element type and on this unit where that is asked for."""
    found = (s for s in sites(hcd, operators) if dtype in (None, s.place.dtype) and unit in ("", s.place.unit))
    return next(found, None)


def _listed(hcd: Hcd, name: str, dtype: DType) -> bool:
    entry = (hcd.full.operators or {}).get(name)
    if entry is None or entry.dtypes is None:
        return True
    return any(c.inputs[0].removeprefix("torch.") == dtype.name for c in entry.dtypes)

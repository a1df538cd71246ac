"""A descriptor's limits as cases are made from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flaot.hcd import Hcd
from flaot.hcd.operators import Operator, Predicate
from flaot.hcd.rules import active_units, kind_of
from flaot.ir.types import DType
from flaot.mapping.capability import Capability
from flaot.mapping.describe import describe
from flaot.mapping.names import READ_AS, ops_named
from flaot.mapping.orders import ChipLayouts

HALVES = ("float16", "bfloat16")
NO_LIMIT = {"rank": 6, "batch": 64, "sequence": 512}
"""Sizes tried where the descriptor states no limit."""
ON_CHIP = 1 << 20
"""Bytes of on-chip memory of a chip that states none."""


@dataclass(frozen=True)
class Limits:
    """What a chip says about one operator. ``floats`` are the element types float32 values may be stored in, the one taken first;
    ``dtypes`` every element type
    it lists, ``layouts`` orders of rank 4 tensors; ``on_chip`` and ``alignment`` bytes; ``heads`` and ``attention``
    those of the attention unit."""

    max_rank: int
    max_batch: int
    max_sequence: int
    layouts: tuple[str, ...]
    floats: tuple[str, ...]
    dtypes: frozenset[str]
    on_chip: int
    alignment: int
    heads: tuple[int, ...] = (1, 2, 4)
    attention: int = 512
    flush: bool = False
    half_sums: bool = False
    requires: tuple[Predicate, ...] = ()

    @property
    def element(self) -> int:
        """Bytes a float32 value takes on the chip."""
        return 2 if self.floats and self.floats[0] in HALVES else 4

    @property
    def awkward(self) -> int:
        """Elements of a row that ends between two aligned addresses."""
        return self.alignment // self.element + 1

    def bounds_of(self, attribute: str) -> Iterator[Any]:
        """Values at the edge of what the operator's conditions allow of an attribute."""
        for p in self.requires:
            if p.attribute != attribute:
                continue
            yield from (int(v) for v in (p.at_least, p.at_most) if v is not None)
            yield from (p.multiple_of,) if p.multiple_of is not None else ()
            yield from p.one_of or ()

    def product_of(self, attribute: str) -> int | None:
        """The largest product of an attribute's entries that is allowed, or None."""
        return min((p.max_product for p in self.requires if p.attribute == attribute and p.max_product is not None), default=None)


def limits_of(hcd: Hcd, operator: str) -> Limits:
    """The limits of an operator on a chip."""
    chip, full = Capability(hcd), hcd.full
    tensor, constraints, numerics, memory = chip.tensor, chip.constraints, full.numerics, full.memory
    units = describe(operator, hcd).units or tuple(chip.units)
    entry = _entry(hcd, operator)
    attention = [u for n, u in active_units(full).items() if kind_of(n, u) == "attention"]
    floats = dict.fromkeys(d.name for unit in units if unit in chip.units for d, _ in chip.floats_of(unit))
    return Limits(
        max_rank=min(x for x in (tensor.max_rank or NO_LIMIT["rank"], entry.max_rank if entry is not None else None) if x is not None),
        max_batch=constraints.max_batch_size or NO_LIMIT["batch"],
        max_sequence=constraints.max_sequence_length or NO_LIMIT["sequence"],
        layouts=ChipLayouts(hcd).every,
        floats=tuple(floats),
        dtypes=frozenset(d.name for d in chip.dtypes or DType),
        on_chip=memory.on_chip_cache.size_kb * 1024 if memory is not None and memory.on_chip_cache is not None else ON_CHIP,
        alignment=constraints.memory_alignment_bytes or 64,
        heads=tuple(sorted({h for u in attention for h in u.supported_heads or ()})) or (1, 2, 4),
        attention=max((u.max_sequence_length or 0 for u in attention), default=0) or NO_LIMIT["sequence"],
        flush=numerics is not None and numerics.denormals == "flush",
        half_sums=_half_sums(hcd, entry),
        requires=tuple(entry.requires or ()) if entry is not None else (),
    )


def claims(hcd: Hcd) -> list[str]:
    """The ONNX operators the chip claims: those its units run, and those that reading turns into nothing else."""
    from flaot.ir.op import READERS
    from flaot.mapping.names import known_operators

    known = known_operators()  # which loads the readers
    onnx = {name for _, name in READERS}
    native = {n for n in known if describe(n, hcd).verdict.startswith("native")}
    read = {n for n, parts in READ_AS.items() if all(p in native for p in parts)}
    return sorted((native | read) & onnx)


def is_claimed(name: str, operator: str, hcd: Hcd) -> bool:
    """Whether a claim of ``operator`` takes in a node ``name``: the operator itself, what it is always read as, or another claim."""
    return name == operator or name in READ_AS.get(operator, ()) or describe(name, hcd).verdict.startswith("native")


def _entry(hcd: Hcd, operator: str) -> Operator | None:
    table = hcd.full.operators or {}
    names = [operator, *(op.__name__ for op in ops_named(operator)), *READ_AS.get(operator, ())]
    return next((table[n] for n in names if n in table), None)


def _half_sums(hcd: Hcd, entry: Operator | None) -> bool:
    """Whether anything says that float16 is summed in float16."""
    half = DType.float16.name
    stated = [a.accumulator for u in hcd.full.compute_units.values() for a in u.arithmetic or ()]
    stated += [hcd.full.numerics.float16_accumulator or ""] if hcd.full.numerics is not None else []
    return half in stated if entry is None or entry.accumulator is None else entry.accumulator == half

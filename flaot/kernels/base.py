"""Kernels and implementations.

A *kernel* is a family of C functions with one calling contract (``fl_<name>_<variant>`` for each variant and one ``fl_<name>_check``).
An *implementation* says how an op is done with kernels: when it applies, what it costs, which steps it emits.
Both are declared in the folder that holds the C sources: ``flaot/kernels/<folder>/__init__.py`` beside ``generic.c``,
``avx2.c``, ``avx512.c``.
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from flaot.ir.graph import Node, Value
from flaot.ir.op import Op
from flaot.ir.types import DType, Rounding
from flaot.kernels.tiling import Cut, declared, uncut
from flaot.plan.program import Step, View

VARIANTS = ("generic", "avx2", "avx512")
"""Instruction-set variants, slowest first; a chip's HCD says which it runs."""

PORTABLE = ("generic", "half")
"""Variants of a portable kernel that sums: in float32, or in float16 for chips whose descriptor says so. CPUs never run the second."""

LANES = {"avx2": 8, "avx512": 16}
"""Floats per vector of a variant."""


@dataclass(frozen=True)
class Param:
    """One field of a kernel's parameter record: ``kind`` is i32, u32 or f32; ``count`` 0 is a trailing array of any length."""

    name: str
    kind: str = "i32"
    count: int = 1


@dataclass(frozen=True)
class Kernel:
    """Declaration of a kernel. Its parameter record becomes the C struct ``fl_<name>_params``."""

    name: str
    params: tuple[Param, ...] = ()
    variants: tuple[str, ...] = ("generic",)
    enums: Mapping[str, type[enum.IntEnum]] = field(default_factory=dict, compare=False)
    """Python enumerations by the prefix under which C sees them: ``FL_<PREFIX>_<MEMBER>``, and ``FL_<PREFIX>_COUNT`` where they count
    from 0. Other kernels may use them too."""
    cuts: Callable[[Step], Sequence[Cut]] = field(default=uncut, compare=False)
    """How a call may be cut into parts."""
    room: Callable[[Step], int] = field(default=declared, compare=False)
    """Bytes of scratch a call takes however its operands lie."""
    moves: bool = False
    """Whether it only moves elements, so that a chip's DMA engine can do it too."""
    transposed: bool = False
    """Whether it reads matrices with their last two axes in either order."""
    updates: bool = False
    """Whether its outputs hold elements before the call that it keeps or combines with others."""

    def __post_init__(self) -> None:
        if self.name in KERNELS:
            raise ValueError(f"two kernels named {self.name}")
        KERNELS[self.name] = self

    def pack(self, **values: Any) -> bytes:
        """The parameter record as little-endian bytes. Raises TypeError unless every field is given, with as many entries as declared."""
        if set(values) != {p.name for p in self.params}:
            raise TypeError(f"{self.name} takes {[p.name for p in self.params]}, got {sorted(values)}")
        out = b""
        for p in self.params:
            given = values[p.name]
            items = [given] if p.count == 1 else list(given)
            if p.count not in (0, len(items)):
                raise TypeError(f"{self.name}.{p.name} has {p.count} entries, got {len(items)}")
            out += struct.pack(f"<{len(items)}{_CODES[p.kind]}", *items)
        return out

    def unpack(self, record: bytes) -> dict[str, Any]:
        """The fields of a parameter record: numbers, and tuples where ``count`` is not 1."""
        values: dict[str, Any] = {}
        at = 0
        for p in self.params:
            count = p.count or (len(record) - at) // 4
            items = struct.unpack_from(f"<{count}{_CODES[p.kind]}", record, at)
            values[p.name], at = items[0] if p.count == 1 else items, at + 4 * count
        return values


_CODES = {"i32": "i", "u32": "I", "f32": "f"}
KERNELS: dict[str, Kernel] = {}


class Storage(enum.Enum):
    """How an implementation wants its rank-3..5 tensors stored."""

    plain = "row-major"
    last = "channels last"
    either = "row-major or channels last, the same for all operands"
    any = "any strides at full speed, each operand its own"


class CpuChip(Protocol):
    """What implementations may ask about the chip (see flaot.targets.cpu)."""

    @property
    def variants(self) -> tuple[str, ...]:
        """Variants it runs, slowest first; always contains 'generic'."""

    @property
    def precision_high(self) -> bool:
        """True when approximating kernels (Winograd) must not be used."""

    @property
    def rounding(self) -> Rounding:
        """How float32 values are rounded where they are stored as float16 or bfloat16."""

    @property
    def flush_denormals(self) -> bool:
        """True when denormal float16 and bfloat16 numbers are stored as zero."""


class Builder(Protocol):
    """What an implementation lowers with."""

    @property
    def chip(self) -> CpuChip: ...

    def view(self, value: Value | None) -> View:
        """Where a value lies (constants included), with the value's logical dims. Raises InternalError for None."""

    def constant(self, data: np.ndarray, dtype: DType | None = None) -> View:
        """A new constant in the plan (packed weights); equal bytes are stored once."""

    def temp(self, dtype: DType, dims: Sequence[int]) -> View:
        """A dense arena buffer that lives from its first to its last use in this node's steps."""

    def variant(self, kernel: Kernel) -> str:
        """The fastest variant of the kernel this chip runs (packing may depend on it). Raises InternalError when there is none."""

    def step(
        self,
        kernel: Kernel,
        inputs: Sequence[View],
        outputs: Sequence[View],
        *,
        scratch: int = 0,
        parallel: bool = False,
        variant: str | None = None,
        **params: Any,
    ) -> None:
        """Appends a kernel call, of the fastest variant unless one is named. ``scratch`` is bytes per part; ``parallel`` says that
        dividing the call over threads pays."""

    def copy(self, source: View, target: View) -> None:
        """Appends a strided copy (equal dims and dtypes)."""

    def transfer(self, source: View, target: View) -> None:
        """Appends a move of the same bytes between the memories of two devices."""

    def dense(self, view: View) -> View:
        """The view itself when row-major, else a row-major copy of it."""


class Implementation:
    """One way to run one op (subclasses of the op included) with kernels. Subclassing with ``op`` set registers it."""

    op: ClassVar[type[Op]]
    requires: ClassVar[str] = "generic"
    """Variant the chip must run."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "op" in cls.__dict__:
            IMPLEMENTATIONS.setdefault(cls.op, []).append(cls())

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        """Why this way does not fit the node (a sentence), or None."""
        return None

    def storage(self, node: Node) -> Storage:
        """Wanted storage of activations; ``plain`` unless the kernels take any strides."""
        return Storage.plain

    def input_storage(self, node: Node, slot: int) -> Storage:
        """Wanted storage of one input; the node's own unless a kernel reads more kinds than it writes."""
        return self.storage(node)

    def alias(self, node: Node, inputs: Sequence[View | None]) -> Sequence[View] | None:
        """Output views onto the memory of the inputs when the op is nothing but another view of them, else None.

        The views have the logical dims of the outputs. Constant inputs come as None.
        """
        return None

    def parts(self, node: Node, output: View) -> dict[int, View]:
        """For each input slot that may be written straight into a part of output 0 by its producer: that part."""
        return {}

    def cost(self, node: Node, chip: CpuChip) -> float:
        """Estimated nanoseconds on one core; smaller wins among the ways that fit."""
        c = node.op.cost(node.input_types, node.output_types)
        return c.flops / 2.0 + c.bytes / 8.0

    def in_place(self, node: Node) -> tuple[int, ...]:
        """Input slots whose buffer output 0 may reuse (same type and storage, element by element)."""
        return ()

    def axes(self, node: Node) -> int:
        """Most axes a tensor of the calls has, where that may be more than those of the node's own."""
        return 0

    def lower(self, node: Node, b: Builder) -> None:
        """Emits the steps. Must write every output of the node."""
        raise NotImplementedError


IMPLEMENTATIONS: dict[type[Op], list[Implementation]] = {}


def candidates(op: Op) -> list[Implementation]:
    """Every implementation declared for the op's class, then for its bases."""
    return [i for cls in type(op).__mro__ if issubclass(cls, Op) for i in IMPLEMENTATIONS.get(cls, ())]


def float32_only(node: Node) -> str | None:
    """What :meth:`Implementation.reject` says of a node whose first output is of another dtype."""
    dtype = node.outputs[0].type.dtype
    return None if dtype is DType.float32 else f"{node.op.name} of {dtype.name}; the CPU kernels take float32"


def load_all() -> None:
    """Imports every kernel folder; idempotent."""
    package = importlib.import_module("flaot.kernels")
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg):
        importlib.import_module(f"flaot.kernels.{module}")

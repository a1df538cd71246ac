"""What an op is: one frozen dataclass with typed attributes, inference, tolerance and cost.

An op file lives in ``flaot/ir/ops``; importing the package registers every op and every ONNX reader in it.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flaot.ir.types import TensorType

if TYPE_CHECKING:
    from flaot.ir.reading import NodeReader

OPS: dict[str, type[Op]] = {}
"""Every op by name, filled by subclassing."""

READERS: dict[tuple[str, str], Reader] = {}
"""ONNX (domain, op_type) -> reader; the domain of ONNX itself is the empty string."""


class OpTypeError(ValueError):
    """Inputs an op cannot take: one sentence saying what was found and what is allowed."""


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How far a result may be from the reference: ``|got - want| <= atol * scale + rtol * |want|``.

    ``length`` is the accumulation length by which float32 errors grow; ``scale`` is the caller's magnitude of ``want``, at least
    ``magnitude``: the natural range of a bounded function, whose error near 0 is that of its whole range.
    """

    rtol: float = 1e-4
    atol: float = 1e-5
    length: int = 1
    magnitude: float = 0.0


@dataclasses.dataclass(frozen=True)
class Cost:
    """Work of one node: floating or integer operations (a multiply-add counts as two) and bytes touched once."""

    flops: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Op:
    """Base of all ops. Subclasses are frozen dataclasses whose fields are ints, floats, bools, strings, DTypes,
    enums, other ops, None or tuples of these: that is what the text form can print and parse."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            OPS[cls.__name__] = cls

    @property
    def name(self) -> str:
        return type(self).__name__

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        """Output types from input types (None for an optional input left out). Raises OpTypeError."""
        raise NotImplementedError

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        """The op's declared error against the reference; the default suits float32 results of a few rounded operations."""
        return Tolerance()

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        """Operations and bytes; the default is one operation per output element, every input read and every output written once."""
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(sum(t.elements for t in outputs), moved)


Reader = Callable[["NodeReader"], None]
R = TypeVar("R", bound=Reader)


def reads(*op_types: str, domain: str = "") -> Callable[[R], R]:
    """Registers a function that turns an ONNX node of these types into IR nodes through a NodeReader.

    Raises ValueError when one of them has a reader already. The function raises through ``r.fail`` and ``r.unsupported``.
    """

    def register(fn: R) -> R:
        for op_type in op_types:
            key = (domain, op_type)
            if key in READERS:
                raise ValueError(f"two readers for {key}")
            READERS[key] = fn
        return fn

    return register


def load_all() -> None:
    """Imports every module of ``flaot.ir.ops``; idempotent."""
    package = importlib.import_module("flaot.ir.ops")
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"flaot.ir.ops.{module}")


def require(condition: bool, sentence: str) -> None:
    """Raises OpTypeError with the sentence unless the condition holds."""
    if not condition:
        raise OpTypeError(sentence)

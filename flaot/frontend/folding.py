"""Adding nodes to the graph, or computing them at once when everything they read is constant."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from flaot.errors import LimitError, ModelError, RunInputError, UnsupportedError
from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op, OpTypeError
from flaot.ir.types import MAX_ELEMENTS, MAX_RANK, DType, TensorType

MAX_FOLDED = 256 * 2**20
"""Highest byte count of a constant computed at compile time."""

FREE_BYTES, BYTES_PER_WEIGHT = 128 * 2**20, 4
"""Bytes all computed constants may have together: a fixed part, and so many for every byte of the model's own constants."""


class Evaluate(Protocol):
    """Runs an op on arrays (flaot.schedule.evaluate.evaluate)."""

    def __call__(
        self, op: Op, inputs: Sequence[np.ndarray | None], *, dtypes: Sequence[DType | None] | None = None
    ) -> list[np.ndarray]: ...


class Emitter:
    """Applies ops to values of one graph."""

    def __init__(self, graph: Graph, evaluate: Evaluate | None) -> None:
        self._graph, self._evaluate = graph, evaluate
        self._budget = FREE_BYTES
        self.unfolded: dict[int, str] = {}
        """Why a node of constants could not be computed, by the id of its outputs."""

    def allow(self, nbytes: int) -> None:
        """Raises the budget by what a constant of the model justifies."""
        self._budget += BYTES_PER_WEIGHT * nbytes

    def emit(self, op: Op, inputs: Sequence[Value | None], where: str, origin: tuple[str, ...]) -> tuple[Value, ...]:
        """Outputs of ``op``. Raises ModelError for inputs it refuses, LimitError for sizes no plan can hold."""
        present = [v for v in inputs if v is not None]
        reason = ""
        _check_attributes(op, where)
        try:
            if self._evaluate is not None and present and all(v.is_constant for v in present):
                types = op.infer([v.type if v is not None else None for v in inputs])
                _check_sizes(types, where)
                folded = self._fold(op, inputs, types, where)
                if not isinstance(folded, str):
                    return folded
                reason = folded
            node = self._graph.add_node(op, inputs, origin=origin)
        except OpTypeError as e:
            raise ModelError(str(e), where=where) from None
        _check_sizes([v.type for v in node.outputs], where)
        if reason:
            self.unfolded.update((v.id, reason) for v in node.outputs)
        return node.outputs

    def check_constant(self, nbytes: int, where: str) -> None:
        """Raises LimitError for a constant too large to compute at compile time."""
        limit = min(MAX_FOLDED, self._budget)
        if nbytes > limit:
            raise LimitError(f"a constant result of {nbytes} bytes; what may be computed at compile time is {limit}", where=where)

    def _fold(
        self, op: Op, inputs: Sequence[Value | None], types: Sequence[TensorType], where: str
    ) -> tuple[Value, ...] | str:
        self.check_constant(sum(t.nbytes for t in types), where)
        self._budget -= sum(t.nbytes for t in types)
        assert self._evaluate is not None
        try:
            arrays = self._evaluate(
                op,
                [v.data if v is not None else None for v in inputs],
                dtypes=[v.type.dtype if v is not None else None for v in inputs],
            )
        except UnsupportedError as e:
            return e.what
        except RunInputError as e:
            raise ModelError(f"cannot be computed from its constant inputs: {e.what}", where=where) from None
        return tuple(self._graph.add_constant(a, dtype=t.dtype) for a, t in zip(arrays, types, strict=True))


def _check_attributes(op: Op, where: str) -> None:
    """Plans store attributes in 32 bits."""
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, int) and not -(2**31) <= item < 2**31:
                raise LimitError(f"{field.name} of {item}; the limit is {2**31 - 1}", where=where)


def _check_sizes(types: Sequence[TensorType], where: str) -> None:
    for t in types:
        if t.rank > MAX_RANK:
            raise UnsupportedError(f"a result of rank {t.rank}; the highest supported rank is {MAX_RANK}", where=where)
        if t.elements > MAX_ELEMENTS or any(d > MAX_ELEMENTS for d in t.shape):
            raise LimitError(f"a result of {t.elements} elements; the limit is {MAX_ELEMENTS}", where=where)

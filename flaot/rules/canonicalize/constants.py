"""Constants: nodes that read only constants are computed, and constants that repeat themselves are made small.

Folding runs the portable kernels through the injected ``evaluate``, so the bytes are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from flaot.errors import FlaotError, RunInputError, UnsupportedError
from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.expand import Expand
from flaot.ir.types import DType, broadcast_shapes
from flaot.rewrite import Miss, Rule
from flaot.rules.match import operand

MAX_FOLDED = 256 * 2**20
"""Bytes a folded result may have."""


class Evaluate(Protocol):
    """Runs an op on arrays (flaot.schedule.evaluate.evaluate)."""

    def __call__(
        self, op: Op, inputs: Sequence[np.ndarray | None], *, dtypes: Sequence[DType | None] | None = None
    ) -> list[np.ndarray]: ...


class Fold(Rule):
    """A node of constants."""

    anchors = (Op,)

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        present = [v for v in node.inputs if v is not None]
        if not present or not all(v.is_constant for v in present):
            return None
        if sum(t.nbytes for t in node.output_types) > MAX_FOLDED:
            return Miss(f"the result has more than {MAX_FOLDED} bytes")
        try:
            results = self._evaluate(
                node.op,
                [v.data if v is not None else None for v in node.inputs],
                dtypes=[v.type.dtype if v is not None else None for v in node.inputs],
            )
        except UnsupportedError as e:
            return Miss(e.what)
        except RunInputError as e:
            raise FlaotError(e.what, where=node.where) from None
        patch = self.patch(graph, node)
        for old, data in zip(node.outputs, results, strict=True):
            patch.replace(old, graph.add_constant(data, dtype=old.type.dtype))
        return patch


class Shrink(Rule):
    """A constant that is the same all along an axis, where another operand has that axis anyway, is broadcast instead."""

    anchors = (_Elementwise,)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        small = [_shrunk(v) if v is not None and v.data is not None and v.data.size > 1 else v for v in node.inputs]
        full = node.outputs[0].type.shape
        patch = self.patch(graph, node)
        inputs: list[Value | None] = list(node.inputs)
        for i, data in enumerate(small):
            if not isinstance(data, np.ndarray):
                continue
            rest = [v.type.shape for j, v in enumerate(inputs) if j != i and v is not None]
            if broadcast_shapes(*rest, data.shape) == full:
                old = operand(node, i)
                inputs[i] = graph.add_constant(data, old.name if old.names else "", old.type.dtype)
        if inputs == list(node.inputs):
            return None
        patch.replace(node.outputs[0], patch.node(node.op, inputs))
        return patch


def _shrunk(value: Value) -> np.ndarray | None:
    """The constant with every constant axis cut to 1; None when there is no such axis."""
    data = value.data
    assert data is not None
    bits = data.view(f"u{data.dtype.itemsize}")
    cut = False
    for axis in range(data.ndim):
        first = bits[(slice(None),) * axis + (slice(0, 1),)]
        if bits.shape[axis] > 1 and (bits == first).all():
            bits, cut = first, True
    return np.ascontiguousarray(bits).view(data.dtype) if cut else None


class ExpandIntoBroadcast(Rule):
    """f(Expand(x), y) = f(x, y) where broadcasting widens x anyway."""

    anchors = (_Elementwise,)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        for slot, value in enumerate(node.inputs):
            source = value.producer if value is not None else None
            if source is None or not isinstance(source.op, Expand):
                continue
            inputs = [source.inputs[0] if i == slot else v for i, v in enumerate(node.inputs)]
            if broadcast_shapes(*(v.type.shape for v in inputs if v is not None)) != node.outputs[0].type.shape:
                continue
            patch = self.patch(graph, source, node)
            patch.replace(node.outputs[0], patch.node(node.op, inputs))
            return patch
        return None

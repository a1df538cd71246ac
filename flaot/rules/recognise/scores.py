"""What stands between Q K^T and the softmax: scales, a cap and masks, in whatever order and shape a model writes them.

    s * k,  s / k           the scale, while no mask is added yet
    tanh(s / c) * c         the cap
    s + m                   a mask
    where(hide, -big, s)    the mask where(hide, -big, 0); likewise where(see, s, -big)
    reshape(s)              of the axes before the last two
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.ops.activations import Tanh
from flaot.ir.ops.arithmetic import Add, Div, Mul
from flaot.ir.ops.compare import Where
from flaot.ir.ops.matmul import MatMul
from flaot.ir.ops.reshape import Reshape
from flaot.rules.match import made_by, number, operand, single_use
from flaot.rules.recognise.products import scaled

DEEPEST = 12
"""Nodes looked through."""

LOW, LOWEST = -1e4, -1e8
"""A number added to a score hides the key: up to LOW where every query sees some key, up to LOWEST always."""


@dataclass(frozen=True)
class Mask:
    """Added to scores of shape ``shape``: ``value`` as it is, or ``fill`` where the bool ``value`` is true (false with ``sees``)."""

    value: Value
    shape: tuple[int, ...]
    fill: float | None = None
    sees: bool = False

    def data(self) -> np.ndarray | None:
        """The numbers, if they are known."""
        if self.value.data is None or self.fill is None:
            return self.value.data
        hidden = ~self.value.data if self.sees else self.value.data
        return np.where(hidden, np.float32(self.fill), np.float32(0))

    def added(self, patch: Patch) -> Value:
        """The mask as float32 numbers."""
        known = self.data()
        if self.fill is None:
            return self.value
        if known is not None:
            return patch.constant(known.astype(np.float32))
        fill, zero = (patch.constant(np.array(n, np.float32)) for n in (self.fill, 0.0))
        return patch.node(Where(), [self.value, zero, fill] if self.sees else [self.value, fill, zero])


@dataclass(frozen=True)
class Scores:
    """softcap tanh(scale P / softcap) + masks for the product P of ``product``. ``lead`` is the longest form of the axes before the last
    two that was met; ``nodes`` are all between, the last one first."""

    product: Node
    lead: tuple[int, ...]
    scale: float = 1.0
    softcap: float = 0.0
    masks: tuple[Mask, ...] = ()
    nodes: tuple[Node, ...] = ()


def scores_of(graph: Graph, value: Value, depth: int = DEEPEST) -> Scores | None:
    """How ``value`` comes from a MatMul through nodes that serve nothing else."""
    node = value.producer
    if node is None or depth == 0 or not single_use(graph, value):
        return None
    if isinstance(node.op, MatMul):
        return Scores(node, value.type.shape[:-2])
    found = next((s for s in _steps(graph, node, depth) if s is not None), None)
    return replace(found, nodes=(node, *found.nodes)) if found is not None else None


def _steps(graph: Graph, node: Node, depth: int) -> Iterator[Scores | None]:
    """Every way to read the node as a step from the scores before it."""
    op, shape = node.op, node.outputs[0].type.shape
    if isinstance(op, Mul | Div):
        yield _capped(graph, node, depth)
        for slot in (0, 1) if isinstance(op, Mul) else (0,):
            k = number(node.inputs[1 - slot])
            inner = scores_of(graph, operand(node, slot), depth - 1) if k is not None else None
            if k and inner is not None and not inner.masks and not inner.softcap:
                yield replace(inner, scale=inner.scale * (k if isinstance(op, Mul) else 1 / k))
    elif isinstance(op, Add):
        for slot in (0, 1):
            inner = scores_of(graph, operand(node, slot), depth - 1) if operand(node, slot).type.shape == shape else None
            if inner is not None:
                yield replace(inner, masks=(*inner.masks, Mask(operand(node, 1 - slot), shape)))
    elif isinstance(op, Where):
        for slot in (1, 2):
            fill = number(node.inputs[3 - slot])
            if fill is None or fill > LOW or operand(node, slot).type.shape != shape:
                continue
            inner = scores_of(graph, operand(node, slot), depth - 1)
            if inner is not None:
                mask = Mask(operand(node, 0), shape, fill, sees=slot == 1)
                if fill <= LOWEST or _all_see(mask):
                    yield replace(inner, masks=(*inner.masks, mask))
    elif isinstance(op, Reshape) and operand(node, 0).type.shape[-2:] == shape[-2:]:
        inner = scores_of(graph, operand(node, 0), depth - 1)
        if inner is not None:
            yield replace(inner, lead=max(inner.lead, shape[:-2], key=len))


def _capped(graph: Graph, node: Node, depth: int) -> Scores | None:
    """tanh(k s) c: the cap c of the scale k c."""
    cap, value = scaled(node.outputs[0])
    tanh = made_by(value, Tanh)
    if tanh is None or not cap > 0 or not single_use(graph, value):
        return None
    k, inside = scaled(operand(tanh, 0))
    inner = scores_of(graph, inside, depth - 1)
    if inner is None or inner.masks or inner.softcap or not k > 0:
        return None
    scale = inner.scale * k * cap
    return replace(inner, scale=1.0 if math.isclose(scale, 1.0, rel_tol=1e-6) else scale, softcap=cap)


def _all_see(mask: Mask) -> bool:
    data = mask.data()
    return data is not None and data.ndim > 0 and bool((data > LOW).any(axis=-1).all())


def causal_offset(mask: np.ndarray, queries: int, keys: int) -> int | None:
    """The offset of a mask that hides exactly the keys after query i + offset, for all batches and heads alike; None for others."""
    if math.prod(mask.shape[:-2]) != 1 or mask.shape[-2:] != (queries, keys):
        return None
    plain = mask.reshape(queries, keys)
    sees = plain == 0
    if not (sees | (plain <= LOW)).all():
        return None
    offset = int(sees[0].sum()) - 1
    fits = (sees == (np.arange(keys) <= np.arange(queries)[:, None] + offset)).all()
    return offset if offset >= 0 and fits else None

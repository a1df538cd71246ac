"""Which implementation runs a node on a CPU chip: among those that fit, the cheapest."""

from __future__ import annotations

from flaot.errors import UnsupportedError
from flaot.ir.graph import Node
from flaot.kernels.base import Implementation, Storage, candidates
from flaot.targets.cpu import Cpu

RELAYOUT = 0.1
"""Nanoseconds per byte to rearrange a row-major tensor channels last."""


def choose(node: Node, chip: Cpu) -> Implementation:
    """Raises UnsupportedError with every candidate's reason when none fits."""
    reasons, best, lowest = [], None, float("inf")
    for way in candidates(node.op):
        if way.requires not in chip.variants:
            continue
        reason = way.reject(node, chip)
        if reason is not None:
            reasons.append(reason)
            continue
        cost = way.cost(node, chip) + _entry(node, way)
        if cost < lowest:
            best, lowest = way, cost
    if best is None:
        sentence = "; ".join(dict.fromkeys(reasons)) or f"there is no kernel for {node.op.name}"
        raise UnsupportedError(sentence, where=node.where)
    return best


def _entry(node: Node, way: Implementation) -> float:
    """What it costs to bring model inputs, which come row-major, into the storage the way wants; the layouts stage settles others."""
    outside = [(i, v) for i, v in enumerate(node.inputs) if v is not None and v.producer is None and not v.is_constant]
    return sum(RELAYOUT * v.type.nbytes for i, v in outside if v.type.rank > 2 and way.input_storage(node, i) is Storage.last)

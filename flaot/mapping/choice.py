"""Which implementation runs a node on a CPU chip: among those that fit, the cheapest."""

from __future__ import annotations

from flaot.errors import UnsupportedError
from flaot.ir.graph import Node
from flaot.kernels.base import Implementation, candidates
from flaot.targets.cpu import Cpu


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
        cost = way.cost(node, chip)
        if cost < lowest:
            best, lowest = way, cost
    if best is None:
        sentence = "; ".join(dict.fromkeys(reasons)) or f"there is no kernel for {node.op.name}"
        raise UnsupportedError(sentence, where=node.where)
    return best

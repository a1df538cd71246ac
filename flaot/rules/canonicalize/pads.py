"""Padding with a constant goes into the window op after it.

    Conv(Pad(x, 0)) = Conv with larger pads
    AveragePool(Pad(x, 0)) = AveragePool with larger pads   where padding counts as zeros, or where it had none
    MaxPool(Pad(x, -inf)) = MaxPool with larger pads        its own padding never wins, so zeros must stay
    Pad(Pad(x, k), k) = Pad(x, k)

Only pads of spatial axes can move, and an overhanging window (``ceil``) counts from the end of what was padded.
"""

from __future__ import annotations

import dataclasses
import math

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.op import OpTypeError
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.pad import Pad
from flaot.ir.ops.pool import AveragePool, MaxPool
from flaot.rewrite import Miss, Rule
from flaot.rules.match import made_by, number, operand


class IntoWindow(Rule):
    """Pad before Conv, AveragePool or MaxPool."""

    anchors = (Conv, AveragePool, MaxPool)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        pad = made_by(node.inputs[0], Pad)
        op = node.op
        if pad is None or not isinstance(op, Conv | AveragePool | MaxPool):
            return None
        assert isinstance(pad.op, Pad)
        fill, zero = number(pad.inputs[1]), 0.0
        if fill != (-math.inf if isinstance(op, MaxPool) else zero):
            return Miss(f"the padding is {fill}, not what {op.name} pads with")
        if any((*pad.op.before[:2], *pad.op.after[:2])):
            return Miss("batch or channels are padded too")
        if isinstance(op, MaxPool) and op.indices:
            return Miss("its indices count the padding")
        new = _padded(op, pad.op)
        if isinstance(new, str):
            return Miss(new)
        try:
            new.infer([pad.inputs[0].type if pad.inputs[0] else None, *node.input_types[1:]])
        except OpTypeError as e:
            return Miss(str(e))
        patch = self.patch(graph, pad, node)
        patch.replace(node.outputs[0], patch.node(new, [pad.inputs[0], *node.inputs[1:]]))
        return patch


def _padded(op: Conv | AveragePool | MaxPool, pad: Pad) -> Conv | AveragePool | MaxPool | str:
    more = (*pad.before[2:], *pad.after[2:])
    pads = tuple(a + b for a, b in zip(op.pads, more, strict=True))
    if isinstance(op, Conv):
        return dataclasses.replace(op, pads=pads)
    if op.ceil:
        return "its last window may overhang"
    n = len(op.kernel)
    if any(p >= k for p, k in zip(pads, (*op.kernel, *op.kernel), strict=True)):
        return f"pads {list(pads)} are not smaller than the window {list(op.kernel)}"
    if isinstance(op, AveragePool):
        if not op.count_include_pad and any(op.pads[: 2 * n]):
            return "its own padding does not count, that of the Pad does"
        return dataclasses.replace(op, pads=pads, count_include_pad=True)
    return dataclasses.replace(op, pads=pads)


class Twice(Rule):
    """A Pad of a Pad with the same fill."""

    anchors = (Pad,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        inner = made_by(node.inputs[0], Pad)
        if inner is None:
            return None
        assert isinstance(node.op, Pad) and isinstance(inner.op, Pad)
        a, b = number(node.inputs[1]), number(inner.inputs[1])
        if a is None or a != b:
            return Miss("the two fills differ")
        before = tuple(x + y for x, y in zip(node.op.before, inner.op.before, strict=True))
        after = tuple(x + y for x, y in zip(node.op.after, inner.op.after, strict=True))
        patch = self.patch(graph, inner, node)
        patch.replace(node.outputs[0], patch.node(Pad(before, after), [operand(inner, 0), node.inputs[1]]))
        return patch

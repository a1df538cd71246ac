"""act(Conv(x) + residual) = FusedConv(x, residual): what follows a convolution is done while its result is in registers or L1.

Each rule takes one more op into a convolution whose result nothing else needs, so the order in which they fire does not matter:
1. a residual Add of the same shape, while there is neither residual nor activation;
2. an activation of one input;
3. PRelu with constant slopes per channel;
4. x * Sigmoid(x) and x * HardSigmoid(x) with slope 1/6 and offset 1/2, where x is the convolution.
"""

from __future__ import annotations

import math

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.activations import Gelu, HardSigmoid, HardSwish, LeakyRelu, Relu, Sigmoid, Silu, Tanh
from flaot.ir.ops.arithmetic import Add, Mul, PRelu
from flaot.ir.ops.clip import Clip
from flaot.ir.ops.conv import Act, Conv, FusedConv
from flaot.ir.types import DType
from flaot.rewrite import Miss, Rule

Activation = tuple[Act, float, float]


def activation(op: Op) -> Activation | None:
    """The op as an activation of FusedConv with its alpha and beta."""
    match op:
        case Relu():
            return Act.clamp, 0.0, math.inf
        case Clip():
            return (Act.clamp, op.low, op.high) if op.low <= op.high else None
        case Silu():
            return (Act.silu, 0.0, 0.0) if op.alpha == 1.0 else None
        case HardSigmoid():
            return Act.hard_sigmoid, op.alpha, op.beta
        case LeakyRelu():
            return Act.leaky_relu, op.alpha, 0.0
        case Sigmoid() | Tanh() | Gelu() | HardSwish():
            return {Sigmoid: Act.sigmoid, Tanh: Act.tanh, Gelu: Act.gelu, HardSwish: Act.hard_swish}[type(op)], 0.0, 0.0
    return None


def convolution(graph: Graph, value: Value | None, uses: int = 1) -> Node | Miss | None:
    """The float32 convolution without activation that makes ``value`` for these uses alone."""
    conv = value.producer if value is not None else None
    if value is None or conv is None or not isinstance(conv.op, Conv) or value.type.dtype is not DType.float32:
        return None
    if len(graph.consumers(value)) != uses or graph.is_output(value):
        return Miss("the convolution's result is also used elsewhere")
    if isinstance(conv.op, FusedConv) and conv.op.act is not Act.none:
        return Miss("the convolution already has an activation")
    return conv


def fused(conv: Node, act: Activation) -> FusedConv:
    op = conv.op
    assert isinstance(op, Conv)
    return FusedConv(op.strides, op.pads, op.dilations, op.group, *act)


def operands(conv: Node) -> list[Value | None]:
    """The inputs of a convolution as the five of FusedConv."""
    return [*conv.inputs, *[None] * (5 - len(conv.inputs))]


class ResidualIntoConv(Rule):
    """Case 1. Of two convolutions the later one takes the sum, so that the other can run before it, one of the same group first."""

    anchors = (Add,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        found = [(slot, convolution(graph, v)) for slot, v in enumerate(node.inputs)]
        misses = [c for _, c in found if isinstance(c, Miss)]
        for slot, conv in sorted(((s, c) for s, c in found if isinstance(c, Node)), key=lambda f: (f[1].group != node.group, -f[1].id)):
            residual = node.inputs[1 - slot]
            if residual is None or residual.type != node.outputs[0].type or residual.is_constant:
                misses.append(Miss("the other summand is a constant or of another shape"))
            elif operands(conv)[3] is not None:
                misses.append(Miss("the convolution already has a residual"))
            elif residual.type == conv.outputs[0].type:
                patch = self.patch(graph, conv, node)
                inputs = operands(conv)
                inputs[3] = residual
                patch.replace(node.outputs[0], patch.node(fused(conv, (Act.none, 0.0, 0.0)), inputs))
                return patch
        return misses[0] if misses else None


class ActivationIntoConv(Rule):
    """Case 2."""

    anchors = (Relu, Clip, Sigmoid, Tanh, Silu, Gelu, HardSigmoid, HardSwish, LeakyRelu)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        conv = convolution(graph, node.inputs[0])
        if not isinstance(conv, Node):
            return conv
        act = activation(node.op)
        if act is None:
            return Miss(f"{node.op} has no place in FusedConv")
        patch = self.patch(graph, conv, node)
        patch.replace(node.outputs[0], patch.node(fused(conv, act), operands(conv)))
        return patch


class SlopesIntoConv(Rule):
    """Case 3."""

    anchors = (PRelu,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        conv = convolution(graph, node.inputs[0])
        if not isinstance(conv, Node):
            return conv
        slope, type = node.inputs[1], conv.outputs[0].type
        if slope is None or slope.data is None or node.outputs[0].type != type:
            return Miss("the slopes are not constant")
        per_channel = (type.shape[1], *[1] * (type.rank - 2))
        if math.prod(slope.type.shape) != 1 and slope.type.shape not in (per_channel, (1, *per_channel)):
            return Miss(f"the slopes have shape {list(slope.type.shape)}; one per channel is needed")
        patch = self.patch(graph, conv, node)
        inputs = operands(conv)
        inputs[4] = patch.constant(np.broadcast_to(slope.data.reshape(-1), type.shape[1:2]).copy())
        patch.replace(node.outputs[0], patch.node(fused(conv, (Act.prelu, 0.0, 0.0)), inputs))
        return patch


class GateIntoConv(Rule):
    """Case 4."""

    anchors = (Mul,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        found = gated(graph, node)
        if not isinstance(found, tuple):
            return found
        value, gate, act = found
        conv = convolution(graph, value, uses=2)
        if not isinstance(conv, Node):
            return conv
        patch = self.patch(graph, conv, gate, node)
        patch.replace(node.outputs[0], patch.node(fused(conv, (act, 0.0, 0.0)), operands(conv)))
        return patch


def gated(graph: Graph, node: Node) -> tuple[Value, Node, Act] | Miss | None:
    """When the product ``node`` is x * op(x): x, the node of op, and both as one activation."""
    for value, factor in (node.inputs, node.inputs[::-1]):
        gate = factor.producer if factor is not None else None
        act = times(gate.op) if gate is not None else None
        if value is None or factor is None or gate is None or act is None or gate.inputs[0] is not value:
            continue
        if len(graph.consumers(factor)) != 1 or graph.is_output(factor):
            return Miss("the gate is also used elsewhere")
        return value, gate, act
    return None


def times(op: Op) -> Act | None:
    """What x * op(x) is."""
    if isinstance(op, Sigmoid):
        return Act.silu
    if isinstance(op, HardSigmoid) and math.isclose(op.alpha, 1 / 6, rel_tol=1e-6) and op.beta == 0.5:
        return Act.hard_swish
    return None

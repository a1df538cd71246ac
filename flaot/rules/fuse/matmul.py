"""act(scale A B + bias + residual) = FusedMatMul(A, B, bias, residual), taken in step by step from a product nothing else needs:
1. a constant scalar factor or divisor, while nothing else was taken in;
2. a bias: an Add of a constant vector along the columns, or the C of a Gemm;
3. a residual Add of the same shape, while there is no activation;
4. an activation of one input;
5. x * Sigmoid(x) and x * HardSigmoid(x) with slope 1/6 and offset 1/2, where x is the product;
6. the reshapes around a product over the rows of all stacked matrices: Reshape(Reshape(A) B) = A B;
7. what works element by element on a reshaped product moves before the reshape: f(Reshape(A B), r) = Reshape(f(A B, Reshape(r))).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.ops.activations import Gelu, HardSigmoid, HardSwish, LeakyRelu, Relu, Sigmoid, Silu, Tanh
from flaot.ir.ops.arithmetic import Add, Div, Mul
from flaot.ir.ops.clip import Clip
from flaot.ir.ops.conv import Act
from flaot.ir.ops.matmul import FusedMatMul, Gemm, _Product
from flaot.ir.ops.reshape import Reshape
from flaot.ir.types import DType
from flaot.rewrite import Miss, Rule
from flaot.rules.fuse.conv import activation, gated

ACTIVATIONS = (Relu, Clip, Sigmoid, Tanh, Silu, Gelu, HardSigmoid, HardSwish, LeakyRelu)
Fused = tuple[FusedMatMul, list[Value | None]]


def fused_form(node: Node, patch: Patch) -> Fused | None:
    """The product as FusedMatMul and its four inputs."""
    op, inputs = node.op, list(node.inputs)
    if isinstance(op, FusedMatMul):
        return op, inputs
    if not isinstance(op, Gemm):
        return FusedMatMul(), [*inputs, None, None]
    plain = FusedMatMul(op.trans_a, op.trans_b, op.alpha)
    c = inputs[2] if len(inputs) > 2 and op.beta != 0 else None
    if c is None:
        return plain, [*inputs[:2], None, None]
    y = node.outputs[0].type
    bias = vector(c, y.shape[1])
    if bias is not None:
        return plain, [*inputs[:2], patch.constant(bias * np.float32(op.beta)), None]
    return (plain, [*inputs[:2], None, c]) if c.type == y and op.beta == 1 else None


def producer(graph: Graph, value: Value | None, uses: int = 1) -> Node | Miss | None:
    """The float32 product without activation that makes ``value`` for these uses alone."""
    node = value.producer if value is not None else None
    if value is None or node is None or not isinstance(node.op, _Product) or value.type.dtype is not DType.float32:
        return None
    if len(graph.consumers(value)) != uses or graph.is_output(value):
        return Miss("the product is also used elsewhere")
    if isinstance(node.op, FusedMatMul) and node.op.act is not Act.none:
        return Miss("the product already has an activation")
    return node


def scalar(value: Value | None) -> float | None:
    """The content of a constant of one element."""
    return float(value.data.reshape(-1)[0]) if value is not None and value.data is not None and value.type.elements == 1 else None


def vector(value: Value, n: int) -> np.ndarray | None:
    """A constant that is the same for every row, as [n]."""
    if value.data is None or value.type.elements not in (1, n) or (value.type.elements == n > 1 and value.type.shape[-1] != n):
        return None
    return np.broadcast_to(value.data.reshape(-1), (n,)).copy()


class _IntoProduct(Rule):
    def finish(self, graph: Graph, node: Node, product: Node, *between: Node) -> tuple[Patch, Fused] | Miss:
        patch = self.patch(graph, product, *between, node)
        form = fused_form(product, patch)
        return (patch, form) if form is not None else Miss("the C of the Gemm is neither a bias nor a residual")

    def replace(self, patch: Patch, node: Node, op: FusedMatMul, inputs: list[Value | None]) -> Patch:
        patch.replace(node.outputs[0], patch.node(op, inputs))
        return patch


class ScaleIntoProduct(_IntoProduct):
    """Case 1."""

    anchors = (Mul, Div)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        for slot in (0, 1) if isinstance(node.op, Mul) else (0,):
            product, factor = producer(graph, node.inputs[slot]), scalar(node.inputs[1 - slot])
            if not isinstance(product, Node) or factor is None or node.outputs[0].type != product.outputs[0].type:
                continue
            done = self.finish(graph, node, product)
            if isinstance(done, Miss):
                return done
            patch, (op, inputs) = done
            if inputs[2] is not None or inputs[3] is not None or (isinstance(node.op, Div) and factor == 0):
                return Miss("the product already has a bias or residual")
            scale = op.scale * (factor if isinstance(node.op, Mul) else 1.0 / factor)
            return self.replace(patch, node, dataclasses.replace(op, scale=scale), inputs)
        return None


class SumIntoProduct(_IntoProduct):
    """Cases 2 and 3. Of two products the later one takes the sum, so that the other can run before it, one of the same group first."""

    anchors = (Add,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        found = [(slot, producer(graph, v)) for slot, v in enumerate(node.inputs)]
        misses = [p for _, p in found if isinstance(p, Miss)]
        for slot, product in sorted(((s, p) for s, p in found if isinstance(p, Node)), key=lambda f: (f[1].group != node.group, -f[1].id)):
            other, y = node.inputs[1 - slot], product.outputs[0].type
            if other is None or node.outputs[0].type != y:
                continue
            done = self.finish(graph, node, product)
            if isinstance(done, Miss):
                return done
            patch, (op, inputs) = done
            bias = vector(other, y.shape[-1])
            if bias is not None and inputs[2] is None:
                inputs[2] = patch.constant(bias)
            elif other.type == y and inputs[3] is None:
                inputs[3] = other
            else:
                misses.append(Miss("the other summand is neither a bias nor of the product's shape, or there is one already"))
                continue
            return self.replace(patch, node, op, inputs)
        return misses[0] if misses else None


class ActivationIntoProduct(_IntoProduct):
    """Case 4."""

    anchors = ACTIVATIONS

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        product = producer(graph, node.inputs[0])
        if not isinstance(product, Node):
            return product
        act = activation(node.op)
        if act is None:
            return Miss(f"{node.op} has no place in FusedMatMul")
        done = self.finish(graph, node, product)
        if isinstance(done, Miss):
            return done
        patch, (op, inputs) = done
        return self.replace(patch, node, dataclasses.replace(op, act=act[0], alpha=act[1], beta=act[2]), inputs)


class ReshapesIntoProduct(_IntoProduct):
    """Case 6, which brings what follows the second reshape beside the product."""

    anchors = (Reshape,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        product, y = producer(graph, node.inputs[0]), node.outputs[0].type
        first = product.inputs[0].producer if isinstance(product, Node) and product.inputs[0] is not None else None
        if not isinstance(product, Node) or first is None or not isinstance(first.op, Reshape) or product.outputs[0].type.rank != 2:
            return None
        a, b = first.inputs[0], product.inputs[1]
        if a is None or b is None or a.type.rank < 3 or y.shape[:-1] != a.type.shape[:-1] or getattr(product.op, "trans_a", False):
            return None
        done = self.finish(graph, node, product, first)
        if isinstance(done, Miss):
            return done
        patch, (op, inputs) = done
        if a.type.shape[-1] != first.outputs[0].type.shape[-1]:
            return Miss("the reshape before the product changes the depth")
        residual = patch.node(Reshape(y.shape), [inputs[3]]) if inputs[3] is not None else None
        return self.replace(patch, node, op, [a, b, inputs[2], residual])


class BeforeReshape(_IntoProduct):
    """Case 7, for an activation or a sum with a run-time value of the same type."""

    anchors = (Add, *ACTIVATIONS)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        y = node.outputs[0].type
        if any(v is None or v.type != y or v.is_constant for v in node.inputs):
            return None
        for slot, value in enumerate(node.inputs):
            reshape = value.producer if value is not None else None
            if value is None or reshape is None or not isinstance(reshape.op, Reshape) or graph.consumers(value) != [(node, slot)]:
                continue
            product = producer(graph, reshape.inputs[0])
            if not isinstance(product, Node) or graph.is_output(value):
                continue
            if isinstance(product.op, FusedMatMul) and isinstance(node.op, Add) and product.inputs[3] is not None:
                continue
            patch = self.patch(graph, node)
            shape = Reshape(product.outputs[0].type.shape)
            inputs = [product.outputs[0] if i == slot else patch.node(shape, [v]) for i, v in enumerate(node.inputs)]
            patch.replace(node.outputs[0], patch.node(Reshape(y.shape), [patch.node(node.op, inputs)]))
            return patch
        return None


class GateIntoProduct(_IntoProduct):
    """Case 5."""

    anchors = (Mul,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        found = gated(graph, node)
        if not isinstance(found, tuple):
            return found
        value, gate, act = found
        product = producer(graph, value, uses=2)
        if not isinstance(product, Node):
            return product
        done = self.finish(graph, node, product, gate)
        if isinstance(done, Miss):
            return done
        patch, (op, inputs) = done
        return self.replace(patch, node, dataclasses.replace(op, act=act), inputs)

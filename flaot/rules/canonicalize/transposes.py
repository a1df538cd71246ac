"""Transposes move toward the outputs until they meet their inverse.

    T_q(T_p(x)) = T_r(x),  r[i] = p[q[i]];  nothing when r is the identity
    f(T_p(x), T_p(y), k) = T_p(f(x, y, k'))     f element by element, k' the constant k with the permutation undone
    Concat_a(T_p(x), ...) = T_p(Concat_p[a](x, ...)),  Pad(T_p(x)) = T_p(Pad'(x))
    Reduce_A(T_p(x)) = T_p(Reduce_p[A](x)),  without kept axes T orders what is left
    T_q(R(T_p(x))) = R'(T(x))                   R only inserts or removes axes of length 1

They only move down and only where no other node needs the permuted value, so the rules end.
"""

from __future__ import annotations

import dataclasses

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.pad import Pad
from flaot.ir.ops.reduce import _Reduce
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.rewrite import Miss, Rule
from flaot.rules.match import made_by, operand

Perm = tuple[int, ...]


def inverse(perm: Perm) -> Perm:
    return tuple(perm.index(i) for i in range(len(perm)))


class Compose(Rule):
    """A Transpose of a Transpose."""

    anchors = (Transpose,)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        inner = made_by(node.inputs[0], Transpose)
        if inner is None:
            return None
        assert isinstance(node.op, Transpose) and isinstance(inner.op, Transpose)
        perm = tuple(inner.op.perm[q] for q in node.op.perm)
        x = operand(inner, 0)
        patch = self.patch(graph, inner, node)
        patch.replace(node.outputs[0], x if perm == tuple(range(len(perm))) else patch.node(Transpose(perm), [x]))
        return patch


class Sink(Rule):
    """A node all of whose run-time inputs are transposed alike."""

    anchors = (_Elementwise, Concat, Pad, _Reduce)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        perm = _common_perm(node)
        if perm is None or len(node.outputs) != 1:
            return None
        for value in node.inputs:
            source = made_by(value, Transpose)
            if source is not None and any(user is not node for user, _ in graph.consumers(source.outputs[0])):
                return Miss(f"the result of {source.where} is also used elsewhere")
            if source is not None and graph.is_output(source.outputs[0]):
                return Miss(f"the result of {source.where} is a graph output")
        sources = [p for p in (made_by(v, Transpose) for v in node.inputs) if p is not None]
        patch = self.patch(graph, *sources, node)
        inputs = [_undone(patch, v, perm) for v in node.inputs]
        result = patch.node(_moved(node.op, perm), inputs, origin=node.origin)
        after = _left(node.op, perm)
        if after != tuple(range(len(after))):
            result = patch.node(Transpose(after), [result], origin=tuple(dict.fromkeys(o for p in sources for o in p.origin)))
        patch.replace(node.outputs[0], result)
        return patch


def _common_perm(node: Node) -> Perm | None:
    perms = set()
    for value in node.inputs:
        if value is None or (value.is_constant and isinstance(node.op, Concat)):
            return None
        if value.is_constant:
            continue
        source = made_by(value, Transpose)
        if source is None or not (isinstance(node.op, _Reduce) or value.type.rank == node.outputs[0].type.rank):
            return None
        assert isinstance(source.op, Transpose)
        perms.add(source.op.perm)
    return perms.pop() if len(perms) == 1 else None


def _moved(op: Op, perm: Perm) -> Op:
    """The op on the value before the permutation."""
    if isinstance(op, Concat):
        return dataclasses.replace(op, axis=perm[op.axis])
    if isinstance(op, _Reduce):
        return dataclasses.replace(op, axes=tuple(sorted(perm[a] for a in op.axes)))
    if isinstance(op, Pad):
        back = inverse(perm)
        return dataclasses.replace(op, before=tuple(op.before[b] for b in back), after=tuple(op.after[b] for b in back))
    return op


def _left(op: Op, perm: Perm) -> Perm:
    """The permutation of the moved op's result."""
    if not isinstance(op, _Reduce) or op.keepdims:
        return perm
    kept = [p for i, p in enumerate(perm) if i not in op.axes]
    return tuple(sorted(kept).index(p) for p in kept)


def _undone(patch: Patch, value: Value | None, perm: Perm) -> Value | None:
    source = made_by(value, Transpose)
    if source is not None:
        return source.inputs[0]
    if value is None or value.data is None or value.data.size == 1:
        return value
    full = value.data.reshape((1,) * (len(perm) - value.data.ndim) + value.data.shape)
    return patch.graph.add_constant(full.transpose(inverse(perm)), value.name if value.names else "", value.type.dtype)


class ThroughReshape(Rule):
    """Transpose, insertion or removal of axes of length 1, Transpose: the two permutations become one."""

    anchors = (Transpose,)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        middle = made_by(node.inputs[0], Reshape)
        first = made_by(middle.inputs[0], Transpose) if middle is not None else None
        if middle is None or first is None:
            return None
        assert isinstance(node.op, Transpose) and isinstance(first.op, Transpose)
        x, before, after = operand(first, 0), first.outputs[0].type.shape, middle.outputs[0].type.shape
        if [d for d in before if d != 1] != [d for d in after if d != 1]:
            return None
        long = [first.op.perm[i] for i, d in enumerate(before) if d != 1]
        places = iter(long)
        origin = [next(places) if d != 1 else None for d in after]
        order = [origin[q] for q in node.op.perm]
        kept = [a for a in order if a is not None]
        perm = (*kept, *(a for a in range(x.type.rank) if x.type.shape[a] == 1))
        patch = self.patch(graph, first, middle, node)
        moved = patch.node(Transpose(perm), [x]) if perm != tuple(range(len(perm))) else x
        patch.replace(node.outputs[0], patch.node(Reshape(node.outputs[0].type.shape), [moved]))
        return patch

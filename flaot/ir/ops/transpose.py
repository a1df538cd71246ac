"""Transpose, and what is a transpose between two reshapes: DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.ops.reshape import Reshape
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class _Movement(Op):
    """Elements are moved, not computed."""

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(0.0, 0.0)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost(0, 2 * sum(t.nbytes for t in outputs))


@dataclass(frozen=True)
class Transpose(_Movement):
    """Axis i of the output is axis ``perm[i]`` of the input."""

    perm: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(sorted(self.perm) == list(range(x.rank)), f"perm {list(self.perm)} is not a permutation of {x.rank} axes")
        return (x.with_shape(tuple(x.shape[p] for p in self.perm)),)


@reads("Transpose")
def read_transpose(r: NodeReader) -> None:
    x = r.input(0)
    perm = r.ints("perm", tuple(reversed(range(x.type.rank))))
    r.result(r.emit(Transpose(tuple(perm)), [x]))


@reads("DepthToSpace")
def read_depth_to_space(r: NodeReader) -> None:
    x, k = r.input(0), r.int("blocksize")
    mode = r.str("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        r.fail(f"mode is '{mode}'; allowed are DCR and CRD")
    if x.type.rank != 4 or k < 1 or x.type.shape[1] % (k * k):
        r.fail(f"blocksize {k} does not fit shape {list(x.type.shape)}; it needs [N, C, H, W] with C a multiple of {k * k}")
    n, c, h, w = x.type.shape
    deep = c // (k * k)
    split, perm = ((n, k, k, deep, h, w), (0, 3, 4, 1, 5, 2)) if mode == "DCR" else ((n, deep, k, k, h, w), (0, 1, 4, 2, 5, 3))
    y = r.emit(Transpose(perm), [r.emit(Reshape(split), [x])])
    r.result(r.emit(Reshape((n, deep, h * k, w * k)), [y]))


@reads("SpaceToDepth")
def read_space_to_depth(r: NodeReader) -> None:
    x, k = r.input(0), r.int("blocksize")
    if x.type.rank != 4 or k < 1 or x.type.shape[2] % k or x.type.shape[3] % k:
        r.fail(f"blocksize {k} does not divide height and width of shape {list(x.type.shape)}")
    mode = r.str("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        r.fail(f"mode is '{mode}'; allowed are DCR and CRD")
    n, c, h, w = x.type.shape
    perm = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    y = r.emit(Transpose(perm), [r.emit(Reshape((n, c, h // k, k, w // k, k)), [x])])
    r.result(r.emit(Reshape((n, c * k * k, h // k, w // k)), [y]))

"""Expand and Tile: repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import reads, require
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import _Movement
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_RANK, TensorType, broadcast_shapes


@dataclass(frozen=True)
class Expand(_Movement):
    """Broadcast to ``shape``."""

    shape: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        try:
            full = broadcast_shapes(x.shape, self.shape)
        except ValueError:
            full = ()
        require(full == self.shape, f"shape {list(x.shape)} does not broadcast to {list(self.shape)}")
        return (x.with_shape(self.shape),)


@reads("Expand")
def read_expand(r: NodeReader) -> None:
    """ONNX broadcasts both ways: a 1 in the wanted shape keeps the input's size."""
    x = r.input(0)
    wanted = tuple(int(d) for d in r.constant(1, "the shape").reshape(-1))
    if any(d < 0 for d in wanted):
        r.fail(f"shape {list(wanted)} has a negative dimension")
    try:
        full = broadcast_shapes(x.type.shape, wanted)
    except ValueError as e:
        r.fail(str(e))
    if len(full) > MAX_RANK:
        r.unsupported(f"rank {len(full)}; the highest supported rank is {MAX_RANK}")
    r.result(x if full == x.type.shape else r.emit(Expand(full), [x]))


@reads("Tile")
def read_tile(r: NodeReader) -> None:
    """[d0, d1] repeated (r0, r1) times is [1, d0, 1, d1] broadcast to [r0, d0, r1, d1]."""
    x = r.input(0)
    repeats = [int(v) for v in r.constant(1, "the repeats").reshape(-1)]
    shape = x.type.shape
    if len(repeats) != len(shape):
        r.fail(f"{len(repeats)} repeats for a rank {len(shape)} tensor")
    if any(n < 0 for n in repeats):
        r.fail(f"repeats {repeats} has a negative number")
    thin: list[int] = []
    wide: list[int] = []
    for d, n in zip(shape, repeats, strict=True):
        thin += [d] if n == 1 else [1, d]
        wide += [d] if n == 1 else [n, d]
    if len(wide) > MAX_RANK:
        r.unsupported(f"repeats {repeats} need rank {len(wide)}; the highest supported rank is {MAX_RANK}")
    if wide == list(shape):
        r.result(x)
        return
    y = r.emit(Expand(tuple(wide)), [r.emit(Reshape(tuple(thin)), [x])])
    r.result(r.emit(Reshape(tuple(d * n for d, n in zip(shape, repeats, strict=True))), [y]))

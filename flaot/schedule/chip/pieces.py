"""Pieces: what DMA brings on chip or takes from it, dense in the order it is stored in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from flaot.ir.types import DType, dense_strides
from flaot.plan import durations
from flaot.plan.program import Buffer, Machine, Space, Step, View

Key = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Piece:
    """A window of off-chip memory with its copy on chip: ``outside`` and ``inside`` are the two sides of the transfer, ``view`` the
    copy under the dims of the operand, elements that repeat included."""

    outside: View
    inside: View
    view: View

    @property
    def buffer(self) -> Buffer:
        return self.inside.buffer


def key_of(view: View) -> Key:
    """Equal for views of the same elements in the same order."""
    return id(view.buffer), view.offset, view.dims, tuple(0 if d == 1 else s for d, s in zip(view.dims, view.strides, strict=True))


def piece_bytes(view: View) -> int:
    """Bytes a piece of this window takes on chip."""
    return view.dtype.size * math.prod(d for d, s in zip(view.dims, view.strides, strict=True) if s or d == 0)


def piece_of(view: View, device: int) -> Piece:
    """A new piece for a window; its buffer has no place yet."""
    dims = tuple(1 if not s and d else d for d, s in zip(view.dims, view.strides, strict=True))
    order = tuple(sorted(range(len(dims)), key=lambda i: (-abs(view.strides[i]) if dims[i] != 1 else -math.inf, i)))
    strides = dense_strides(dims, order)
    buffer = Buffer(Space.on_chip, max(view.dtype.size * math.prod(dims), 1), view.buffer.name, index=device)
    repeated = tuple(0 if not s and d != 1 else t for d, s, t in zip(view.dims, view.strides, strides, strict=True))
    return Piece(
        View(view.buffer, view.dtype, dims, view.strides, view.offset),
        View(buffer, view.dtype, dims, strides),
        View(buffer, view.dtype, view.dims, repeated),
    )


def piece_split(machine: Machine, view: View) -> int:
    """Picoseconds of the setups that a piece takes beyond one, as it has more strided axes than a DMA transfer."""
    if not machine.setup_cycles or view.elements == 0:
        return 0
    return durations.split_time(machine, _transfers(view.dims, view.strides, machine.dimensions))


@lru_cache(maxsize=1 << 14)
def _transfers(dims: tuple[int, ...], strides: tuple[int, ...], dimensions: int) -> int:
    piece = piece_of(View(Buffer(Space.device, 0), DType.uint8, dims, strides), 0)
    return durations.moves((piece.outside, piece.inside), dimensions)


def in_copy(view: View, buffer: Buffer) -> View:
    """The window in a whole copy of its buffer."""
    return View(buffer, view.dtype, view.dims, view.strides, view.offset)


def operands(step: Step) -> tuple[View, ...]:
    """Inputs, then outputs."""
    return (*step.inputs, *step.outputs)

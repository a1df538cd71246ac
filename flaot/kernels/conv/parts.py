"""What the ways of computing a convolution have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Act, Conv, FusedConv
from flaot.kernels.base import CpuChip, Kernel, Param, float32_only

EPILOGUE = (Param("residual"), Param("act"), Param("alpha", "f32"), Param("beta", "f32"))
"""Last parameters of every vector kernel; see FusedConv."""

WINDOW = (Param("ksize", count=2), Param("strides", count=2), Param("pads", count=2), Param("dilations", count=2))
"""Two spatial axes {y, x}; pads are the begins."""


@dataclass(frozen=True)
class Shape:
    """A convolution over one or two spatial axes, seen as two: a height of 1 is put in front of a single one."""

    n: int
    ic: int
    oc: int
    group: int
    size: tuple[int, int]
    out: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int]
    dilations: tuple[int, int]

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    @property
    def pixels(self) -> int:
        """Output pixels of the whole batch."""
        return self.n * math.prod(self.out)

    @property
    def window(self) -> dict[str, Any]:
        return {"ksize": self.kernel, "strides": self.strides, "pads": self.pads, "dilations": self.dilations}


def _two(values: tuple[int, ...], fill: int) -> tuple[int, int]:
    return (fill, values[0]) if len(values) == 1 else (values[0], values[1])


def shape_of(node: Node) -> Shape:
    """Only for one or two spatial axes."""
    op, x, w, y = node.op, node.inputs[0], node.inputs[1], node.outputs[0]
    assert isinstance(op, Conv) and x is not None and w is not None
    n = len(op.strides)
    return Shape(
        x.type.shape[0], x.type.shape[1], y.type.shape[1], op.group, _two(x.type.shape[2:], 1), _two(y.type.shape[2:], 1),
        _two(w.type.shape[2:], 1), _two(op.strides, 1), _two(op.pads[:n], 0), _two(op.dilations, 1),
    )


def epilogue(node: Node) -> dict[str, Any]:
    """Values of the EPILOGUE parameters."""
    op = node.op
    if not isinstance(op, FusedConv):
        return {"residual": 0, "act": int(Act.none), "alpha": 0.0, "beta": 0.0}
    return {"residual": int(node.inputs[3] is not None), "act": int(op.act), "alpha": op.alpha, "beta": op.beta}


def data(node: Node, slot: int) -> np.ndarray | None:
    """Content of a constant input; None when it is absent."""
    value = node.inputs[slot] if slot < len(node.inputs) else None
    return value.data if value is not None else None


def reject_vector(node: Node) -> str | None:
    """Why no vector kernel fits the node, or None."""
    reason, rank = float32_only(node), node.outputs[0].type.rank
    if reason is not None:
        return reason
    if rank > 4:
        return f"{rank - 2} spatial axes; the vector kernels take 1 or 2"
    if any(v is not None and v.data is None for v in (node.inputs[1], *node.inputs[2:3], *node.inputs[4:])):
        return "weights, bias or slopes are not constant; the vector kernels pack them at compile time"
    return None


def fastest(kernel: Kernel, chip: CpuChip) -> str:
    """The fastest variant of the kernel the chip runs."""
    return [v for v in chip.variants if v in kernel.variants][-1]


RATE = {"generic": 4.5, "avx2": 80.0, "avx512": 130.0}
"""Floating operations per nanosecond one core reaches in a dense kernel; only ratios matter to the choice."""

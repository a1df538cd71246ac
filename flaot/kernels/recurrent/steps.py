"""LSTM, GRU and RNN with default activations and constant weights: X W of all steps as one product, then fused steps."""

from __future__ import annotations

import enum

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.recurrent import GRU, LSTM, RNN, _Recurrent
from flaot.ir.types import DType
from flaot.kernels.base import LANES, Builder, CpuChip, Implementation, Kernel, Param, float32_only
from flaot.kernels.matmul.gemm import emit_gemm
from flaot.kernels.recurrent.portable import time_major


class Cell(enum.IntEnum):
    """``gru_after`` applies the reset gate after the linear part of the hidden gate (linear_before_reset), ``gru_before`` before it."""

    lstm = 0
    gru_after = 1
    gru_before = 2
    rnn_tanh = 3
    rnn_relu = 4


STEPS = Kernel(
    "recurrent_steps", params=(Param("vl"), Param("cell"), Param("has"), Param("reverse")), variants=("avx2", "avx512"),
    enums={"steps": Cell},
)
"""``has`` flags lengths (1), initial h (2) and initial c (4)."""

ROWS, STATES = 4, 4


def cell_code(op: _Recurrent) -> Cell:
    if isinstance(op, LSTM):
        return Cell.lstm
    if isinstance(op, GRU):
        return Cell.gru_after if op.linear_before_reset else Cell.gru_before
    return Cell.rnn_relu if op.activations[0][0] == "Relu" else Cell.rnn_tanh


def units_first(weights: np.ndarray, gates: int, lanes: int) -> np.ndarray:
    """[D, gates H, k] as [D, groups, gates, lanes, k] with zero units up to whole vectors."""
    d, rows, k = weights.shape
    h = rows // gates
    split = np.pad(weights.reshape(d, gates, h, k), ((0, 0), (0, 0), (0, -h % lanes), (0, 0)))
    return split.reshape(d, gates, -1, lanes, k).transpose(0, 2, 1, 3, 4)


def pack_recurrent(r: np.ndarray, gates: int, lanes: int, split: tuple[int, ...]) -> np.ndarray:
    """[D, gates H, H] as panels [k][some gates][lanes] per group; ``split`` says how many gates each run of panels has."""
    grouped = units_first(r, gates, lanes)
    out = []
    for one in grouped:
        at = 0
        for count in split:
            out.append(np.ascontiguousarray(one[:, at : at + count].transpose(0, 3, 1, 2)).reshape(-1))
            at += count
    return np.concatenate(out)


def input_bias(op: _Recurrent, b: np.ndarray | None, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Biases added to X W as [D, gates H, 1], and GRU's bias inside the reset as [D, H, 1]."""
    rows = op.gates * op.hidden
    both = np.zeros((d, 2 * rows), np.float32) if b is None else b
    w, r = both[:, :rows].copy(), both[:, rows:].copy()
    inner = r[:, 2 * op.hidden :].copy() if isinstance(op, GRU) and op.linear_before_reset else np.zeros((d, op.hidden), np.float32)
    if isinstance(op, GRU) and op.linear_before_reset:
        r[:, 2 * op.hidden :] = 0
    return (w + r)[:, :, None], inner[:, :, None]


class FusedSteps(Implementation):
    op = _Recurrent
    requires = "avx2"

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        op = node.op
        assert isinstance(op, _Recurrent)
        if float32_only(node):
            return float32_only(node)
        names = [a[0] for a in op.activations]
        usual = names == list(op.defaults) * op.directions or (isinstance(op, RNN) and set(names) == {"Relu"})
        if not usual or op.clip > 0 or getattr(op, "input_forget", False):
            return "activations other than the default ones, clip or input_forget"
        if isinstance(op, LSTM) and node.inputs[7] is not None:
            return "peepholes"
        if any(v is not None and v.data is None for v in node.inputs[1:4]):
            return "weights that are not constant"
        return None if node.inputs[0] is not None and node.inputs[0].type.elements and op.hidden else "an empty input"

    def cost(self, node: Node, chip: CpuChip) -> float:
        c = node.op.cost(node.input_types, node.output_types)
        return c.flops / 40.0 + c.bytes / 20.0

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, _Recurrent)
        _, w, r, bias = (v.data if v is not None else None for v in node.inputs[:4])
        assert w is not None and r is not None and node.inputs[0] is not None
        lanes, d, g = LANES[b.variant(STEPS)], op.directions, op.gates
        outer, inner = input_bias(op, bias, d)
        columns = units_first(w, g, lanes).reshape(-1, w.shape[2]).T
        x = b.view(node.inputs[0])
        xw = b.temp(DType.float32, (*x.dims[:2], columns.shape[1]))
        emit_gemm(b, x, columns, xw, bias=units_first(outer, g, lanes).reshape(-1))
        inputs, outputs = time_major(op, node, b)
        cell = cell_code(op)
        rest = [b.constant(units_first(inner, 1, lanes).reshape(-1))] if cell == Cell.gru_after else []
        given = inputs[4:7]
        rest += [v for v in given if v is not None]
        packed = pack_recurrent(r, g, lanes, (2, 1) if cell == Cell.gru_before else (g,))
        padded = -(-op.hidden // lanes) * lanes
        b.step(
            STEPS, [xw.permute((1, 0, 2)) if op.batch_first else xw, b.constant(packed), *rest], outputs,
            scratch=4 * ROWS * STATES * padded, parallel=node.op.cost(node.input_types, node.output_types).flops > 400_000,
            vl=lanes, cell=cell, has=sum(1 << i for i, v in enumerate(given) if v is not None), reverse=int(op.direction == "reverse"),
        )

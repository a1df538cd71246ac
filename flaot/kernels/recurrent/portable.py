"""LSTM, GRU and RNN with portable code, every option and any strides."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.recurrent import ACTIVATIONS, GRU, LSTM, RNN, _Recurrent
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, float32_only
from flaot.kernels.common.cuts import cut, record, worth
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step, View


def cuts(step: Step) -> Sequence[Cut]:
    """Sequences. Steps depend on one another, and units on all units of the step before."""
    given = [i for i in range(5) if record(step)["has"] >> i & 1]
    optional = {3 + at: _BATCH_AXIS[i] for at, i in enumerate(given) if i in _BATCH_AXIS}
    y = len(step.inputs)
    return worth([cut("batch", step.inputs[0].dims[1], {0: 1, **optional, y: 2, **dict.fromkeys(range(y + 1, y + len(step.outputs)), 1)})])


_BATCH_AXIS = {1: 0, 2: 1, 3: 1}
"""Of lengths, initial h and initial c, by their bits in ``has``."""

RECURRENT = Kernel(
    "recurrent",
    params=(
        Param("cell"), Param("has"), Param("reverse"), Param("flag"), Param("clip", "f32"),
        Param("act", count=6), Param("alpha", "f32", 6), Param("beta", "f32", 6),
    ),
    variants=PORTABLE,
    cuts=cuts,
)
"""``has`` flags the optional operands, lowest bit B; ``flag`` is input_forget or linear_before_reset."""

CELLS = (LSTM, GRU, RNN)


def time_major(op: _Recurrent, node: Node, b: Builder) -> tuple[list[View | None], list[View]]:
    """Views of inputs and outputs with the axes of a layer that is not batch first."""
    inputs = [None if v is None else b.view(v) for v in node.inputs]
    outputs = [b.view(v) for v in node.outputs]
    if op.batch_first:
        for slot in (0, 5, 6):
            view = inputs[slot] if slot < len(inputs) else None
            inputs[slot : slot + 1] = [view.permute((1, 0, 2))] if view is not None else [None] if slot < len(inputs) else []
        outputs = [outputs[0].permute((1, 2, 0, 3)), *(v.permute((1, 0, 2)) for v in outputs[1:])]
    return inputs, outputs


class Portable(Implementation):
    """Every option, any strides."""

    op = _Recurrent

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, _Recurrent)
        inputs, outputs = time_major(op, node, b)
        names = list(ACTIVATIONS)
        acts = [*op.activations, *[("Tanh", 0.0, 0.0)] * 6][:6]
        flag = getattr(op, "input_forget", False) or getattr(op, "linear_before_reset", False)
        b.step(
            RECURRENT, [v for v in inputs if v is not None], outputs, scratch=4 * (op.gates + 3) * op.hidden, parallel=True,
            cell=CELLS.index(type(op)), has=sum(1 << i for i, v in enumerate(inputs[3:]) if v is not None),
            reverse=int(op.direction == "reverse"), flag=int(flag), clip=op.clip,
            act=[names.index(a[0]) for a in acts], alpha=[a[1] for a in acts], beta=[a[2] for a in acts],
        )

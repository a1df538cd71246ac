"""check() of the convolution kernels refuses what run could not survive: damaged parameters, dims, strides and scratch."""

from __future__ import annotations

import dataclasses
import struct

import numpy as np
import pytest

from flaot.ir.ops.conv import Act, FusedConv
from flaot.kernels.base import KERNELS, load_all
from flaot.kernels.generate import kernel_id
from flaot.plan.program import Step, View
from flaot.runtime import native
from tests.kernels.conv_cases import case
from tests.kernels.conv_run import Memory, lower
from tests.kernels.test_conv import CHIPS, ways

load_all()
FL_PLAN_PARAMS = 0x100 + 10
VALUES = (-(2**31), -1, 0, 1, 2, 3, 7, 2**15, 2**30, 2**31 - 1)


def steps() -> list[tuple[str, Step, Memory]]:
    """One call of every convolution kernel."""
    rng = np.random.default_rng(0)
    three = FusedConv((1, 1), (1,) * 4, (1, 1), 1, Act.prelu)
    wide = FusedConv((1, 1), (1,) * 4, (1, 1), 16, Act.prelu)
    found = {}
    for chip in ("generic", "avx2"):
        for c in (
            case(rng, (1, 16, 6, 7), (24, 16, 3, 3), three, residual=True), case(rng, (1, 16, 6, 7), (16, 1, 3, 3), wide, residual=True),
            case(rng, (1, 3, 9, 7), (24, 3, 3, 3), three),
        ):
            for way in ways(c, CHIPS[chip]):
                memory = Memory()
                (step,), _ = lower(c, way, CHIPS[chip], (0, 0), False, memory)
                found[step.kernel] = (step, memory)
    return [(name, *pair) for name, pair in sorted(found.items())]


def call(step: Step, memory: Memory) -> int:
    for v in (*step.inputs, *step.outputs):
        memory.array(v.buffer)
    return native.call_kernel(
        kernel_id(step.kernel, step.variant), step.inputs, step.outputs, memory.bytes, step.params, step.scratch
    )


STEPS = steps()
IDS = [s[0] for s in STEPS]


def test_every_kernel_is_here() -> None:
    assert {"conv_f32", "conv_gemm_f32", "conv_dw_f32", "conv_stem_f32", "conv_wino_f32"} <= set(IDS) <= set(KERNELS)


@pytest.mark.parametrize(("name", "step", "memory"), STEPS, ids=IDS)
def test_damaged_parameters(name: str, step: Step, memory: Memory) -> None:
    """Every field takes every extreme value: refused, or run without harm (guards and the sanitizer build would tell)."""
    assert call(step, memory) == 0
    refused = 0
    for at in range(0, len(step.params), 4):
        for value in VALUES:
            params = step.params[:at] + struct.pack("<i", value) + step.params[at + 4 :]
            status = call(dataclasses.replace(step, params=params), memory)
            assert status in (0, FL_PLAN_PARAMS)
            refused += status != 0
    assert refused > len(step.params) // 4
    assert call(dataclasses.replace(step, params=step.params[:-4]), memory) == FL_PLAN_PARAMS
    assert call(dataclasses.replace(step, params=step.params + b"\0" * 4), memory) == FL_PLAN_PARAMS


@pytest.mark.parametrize(("name", "step", "memory"), STEPS, ids=IDS)
def test_smaller_operands_and_scratch(name: str, step: Step, memory: Memory) -> None:
    """One element less of weights, bias, slope or input channels is refused, so are a batch too few of y and a scratch too small."""
    views = [*step.inputs, *step.outputs]
    for i, view in enumerate(views):
        axis = 1 if len(view.dims) > 1 and view is not views[-1] else 0
        dims = tuple(d - (a == axis) for a, d in enumerate(view.dims))
        cut = View(view.buffer, view.dtype, dims, view.strides, view.offset)
        changed = [cut if j == i else v for j, v in enumerate(views)]
        damaged = dataclasses.replace(step, inputs=tuple(changed[:-1]), outputs=(changed[-1],))
        assert call(damaged, memory) == FL_PLAN_PARAMS, f"operand {i}"
    assert call(dataclasses.replace(step, scratch=16), memory) == FL_PLAN_PARAMS
    assert call(dataclasses.replace(step, inputs=step.inputs[:-1]), memory) == FL_PLAN_PARAMS


@pytest.mark.parametrize(("name", "step", "memory"), [s for s in STEPS if s[0] != "conv_f32"], ids=[i for i in IDS if i != "conv_f32"])
def test_channels_must_lie_together(name: str, step: Step, memory: Memory) -> None:
    y = step.outputs[0]
    apart = View(y.buffer, y.dtype, y.dims, tuple(2 if a == 1 else s for a, s in enumerate(y.strides)), y.offset)
    assert call(dataclasses.replace(step, outputs=(apart,)), memory) == FL_PLAN_PARAMS

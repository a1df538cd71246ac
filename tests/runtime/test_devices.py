"""Programs with a chip beside the host, run on the simulator: values a person can check, and every declared limit trapped by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flaot.errors import PlanError
from flaot.ir.types import DType, Rounding, TensorType
from flaot.kernels.base import KERNELS, load_all
from flaot.plan.program import Launch, Program, Space, Step
from flaot.plan.read import read_plan
from flaot.plan.text import dump
from flaot.plan.write import write_plan
from flaot.runtime.session import Session
from tests.plan.devices import F16, NHCW, NHWC, NPU, conv_on_chip, on_chip, transfer, weights
from tests.plan.programs import CPU, plan_of, port

X = np.arange(9, dtype=np.float16).reshape(1, 1, 3, 3)
SUMS = np.array([[[[8, 12], [20, 24]]]], np.float16)
"""Sums of the 2 x 2 windows of 0, 1, ... 8."""


def run(program: Program, x: np.ndarray) -> np.ndarray:
    (y,) = Session(plan_of(program)).run({"x": x})
    return y


def pointwise(values: list[float], weight: float, bias: float, **chip: object) -> list[float]:
    """weight * value + bias, computed on the chip in float16."""
    x = np.array(values, np.float16).reshape(1, 1, 1, -1)
    program = conv_on_chip(
        replace(NPU, **chip), TensorType(F16, x.shape), np.full((1, 1, 1, 1), weight, np.float16), np.array([bias], np.float16),  # type: ignore[arg-type]
    )
    return [float(v) for v in run(program, x).ravel()]


def test_a_convolution_between_transfers() -> None:
    np.testing.assert_array_equal(run(conv_on_chip(), X), SUMS)


def test_runs_repeat_and_do_not_disturb_each_other() -> None:
    session = Session(plan_of(conv_on_chip()))
    for k in (1, 2, 3):
        np.testing.assert_array_equal(session.run({"x": k * X})[0], k * SUMS)


def test_names_on_the_chip_are_read_back() -> None:
    session = Session(plan_of(conv_on_chip()))
    ((named, data),) = session.intermediates({"x": X})
    assert named.name == "sum"
    np.testing.assert_array_equal(data.astype(np.float32), SUMS.astype(np.float32))


@pytest.mark.parametrize(("rounding", "want"), [
    ("half_to_even", [2048, 2052, 2052]), ("half_away_from_zero", [2050, 2052, 2054]), ("half_up", [2050, 2052, 2054]),
    ("floor", [2048, 2050, 2052]), ("toward_zero", [2048, 2050, 2052]),
])
def test_results_are_rounded_as_the_chip_says(rounding: str, want: list[float]) -> None:
    """2049, 2051 and 2053 lie halfway between neighbours of float16."""
    assert pointwise([2048, 2050, 2052], 1, 1, rounding=Rounding[rounding]) == want


@pytest.mark.parametrize(("rounding", "want"), [
    ("half_to_even", [-2048, -2052]), ("half_away_from_zero", [-2050, -2052]), ("half_up", [-2048, -2050]), ("floor", [-2050, -2052]),
    ("toward_zero", [-2048, -2050]),
])
def test_negative_results_too(rounding: str, want: list[float]) -> None:
    """-2049 and -2051."""
    assert pointwise([2048, 2050], -1, -1, rounding=Rounding[rounding]) == want


def test_sums_are_kept_in_float32() -> None:
    """2048 + 1 + 1 in float16 would stay 2048."""
    x = np.array([2048, 1, 1], np.float16).reshape(1, 1, 1, 3)
    program = conv_on_chip(x_type=TensorType(F16, x.shape), w=np.ones((1, 1, 1, 3), np.float16))
    assert run(program, x).ravel().tolist() == [2050]


def test_denormals_are_flushed_where_the_chip_says() -> None:
    half = 2.0**-15
    assert pointwise([2.0**-14], 0.5, 0) == [half]
    assert pointwise([2.0**-14], 0.5, 0, flush_denormals=True) == [0]


def test_overflow_is_infinite() -> None:
    assert pointwise([65504, -65504], 2, 0) == [np.inf, -np.inf]


def test_bfloat16() -> None:
    """1 + 2^-8 lies halfway between 1 and the next bfloat16, 1 + 2^-7."""
    bits = np.array([0x3F80], np.uint16).reshape(1, 1, 1, 1)
    one, small = np.full((1, 1, 1, 1), 0x3F80, np.uint16), np.array([0x3B80], np.uint16)
    y = run(conv_on_chip(x_type=TensorType(DType.bfloat16, (1, 1, 1, 1)), w=one, bias=small), bits)
    assert y.ravel().tolist() == [0x3F80]
    up = run(conv_on_chip(replace(NPU, rounding=Rounding.half_up), TensorType(DType.bfloat16, (1, 1, 1, 1)), one, small), bits)
    assert up.ravel().tolist() == [0x3F81]


def test_a_tensor_stored_channels_last() -> None:
    w = np.array([1, 10], np.float16).reshape(2, 1, 1, 1)
    y = run(conv_on_chip(w=w, layout=NHWC), X)
    np.testing.assert_array_equal(y, np.concatenate([X, 10 * X], axis=1))


def trapped(program: Program, x: np.ndarray = X) -> str:
    session = Session(plan_of(program))
    with pytest.raises(PlanError) as e:
        session.run({"x": x})
    assert e.value.exit_code == 6
    assert "step 1 (node 'layer1/conv' (Conv), kernel conv_f32.generic): " in str(e.value)
    assert "\n" not in str(e.value)
    return e.value.what


@pytest.mark.parametrize(("chip", "launch", "says"), [
    ({"max_rank": 3}, {}, "rank: step 1 on unit fp16 has 4; max_rank is 3"),
    ({}, {"batch": 5}, "batch: step 1 on unit fp16 has 5; max_batch_size is 4"),
    ({}, {"sequence": 17}, "sequence: step 1 on unit fp16 has 17; max_sequence_length is 16"),
    ({}, {"sequence": 9, "heads": 2}, "sequence: step 1 on unit fp16 has 9; max_sequence_length is 8"),
    ({}, {"sequence": 8, "heads": 3}, "heads: step 1 on unit fp16 has 3"),
    ({"dtypes": (DType.int8,)}, {}, "dtype: operand 0 of step 1 on unit fp16"),
    ({"dtypes": (DType.bfloat16,)}, {}, "dtype: operand 0 of step 1 on unit fp16"),
])
def test_traps_by_name(chip: dict[str, object], launch: dict[str, int], says: str) -> None:
    assert says in trapped(conv_on_chip(replace(NPU, **chip), launch=Launch("fp16", **{"batch": 1, **launch})))  # type: ignore[arg-type]


def test_a_layout_the_chip_lacks_is_trapped() -> None:
    w = np.ones((2, 1, 1, 1), np.float16)
    assert "layout: operand 2 of step 1 on unit fp16 has strides" in trapped(conv_on_chip(w=w, layout=NHCW))
    both = replace(NPU, layouts=(NHCW,))
    np.testing.assert_array_equal(run(conv_on_chip(both, w=w, layout=NHCW), X), np.concatenate([X, X], axis=1))


def test_limits_are_inclusive() -> None:
    launch = Launch("fp16", batch=4, sequence=8, heads=4)
    np.testing.assert_array_equal(run(conv_on_chip(launch=launch), X), SUMS)


def test_zero_is_no_limit() -> None:
    free = replace(NPU, max_rank=0, max_batch=0, max_sequence=0, max_attention=0, heads=(), layouts=())
    launch = Launch("fp16", batch=1000, sequence=1000, heads=12)
    np.testing.assert_array_equal(run(conv_on_chip(free, launch=launch), X), SUMS)


def test_device_plans_read_back() -> None:
    data = plan_of(conv_on_chip())
    plan = read_plan(data)
    assert plan.chips == [NPU]
    assert [(s.device, s.opcode.name, s.launch) for s in plan.steps] == [
        (1, "transfer", None), (1, "call", Launch("fp16", 1)), (1, "transfer", None),
    ]
    text = dump(plan)
    assert "device1@0 float16[1,1,3,3] = transfer(input0@0 float16[1,1,3,3]) queue 3 waits [] work 0 ; Transfer" in text
    assert "chip NPU-V3 rank 4 batch 4 sequence 16 attention 8 heads [1, 2, 4]" in text
    again = write_plan(plan.program(), model_digest=plan.model_digest, hcd_digest=plan.hcd_digest, device=CPU)
    assert again == data


def test_host_plans_have_no_sections_for_chips() -> None:
    from flaot.plan.fields import Section
    from tests.plan.programs import two_softmaxes

    assert not {Section.chips, Section.launches} & set(read_plan(plan_of(two_softmaxes()))._sections)


def test_elements_that_a_kernel_leaves_alone_stay() -> None:
    """Scatter writes into a copy of its data, one element of four here."""
    load_all()
    type = TensorType(F16, (4,))
    x, y = port(Space.input, 0, "x", type), port(Space.output, 0, "y", type)
    chip_x, chip_y = on_chip(0, type), on_chip(256, type)
    index, update = weights(np.array([1]), DType.int64), weights(np.array([9], np.float16))
    kernel = KERNELS["scatter_elements"]
    scatter = Step(kernel.name, "generic", (index, update), (chip_y,), kernel.pack(axis=0, reduction=0), device=1, launch=Launch("vector"))
    copied, between = (
        Step("copy", "generic", (a,), (b,), device=1, launch=Launch("vector"))
        for a, b in ((chip_x, chip_y), (weights(np.zeros(4, np.float16)), on_chip(512, type)))
    )
    steps = [transfer(x.view, chip_x), copied, between, scatter, transfer(chip_y, y.view)]
    program = Program([x], [y], steps, chips=[replace(NPU)])
    assert run(program, np.array([5, 6, 7, 8], np.float16)).tolist() == [5, 9, 7, 8]

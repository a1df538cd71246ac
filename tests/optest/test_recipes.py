"""Cases are made from what a descriptor says, and every operator flaot reads as itself has some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flaot.errors import UsageError
from flaot.hcd import load_hcd
from flaot.mapping.names import READ_AS, onnx_name
from flaot.optest.case import Tensor
from flaot.optest.limits import claims, limits_of
from flaot.optest.model import model_of
from flaot.optest.recipes import RECIPES, cases_of, load_all
from flaot.optest.suite import plan_cases
from flaot.pipeline import Options, read_model
from tests.mapping.models import chip, small


def names(operator: str, hcd: str) -> set[str]:
    return {c.name for c in cases_of(operator, limits_of(load_hcd(hcd), operator))}


def test_every_operator_a_cpu_claims_has_cases() -> None:
    load_all()
    claimed = claims(load_hcd("generic_cpu"))
    assert len(claimed) > 110 and set(claimed) <= set(RECIPES)


def test_cases_of_a_convolution_stand_at_the_limits_of_the_chip() -> None:
    v3, dsp = names("Conv", "npu_v3"), names("Conv", "edge_dsp")
    assert {"boundary/batch_512", "boundary/layout_NHCW", "boundary/volume", "boundary/beyond_memory"} <= v3
    assert {"boundary/batch_16", "boundary/kernel_7x7", "boundary/stride_2"} <= dsp
    assert not {"boundary/layout_NHCW", "boundary/volume"} & dsp
    assert {"boundary/kernel_7x7", "boundary/kernel_49x1", "boundary/kernel_1x49"} <= names("MaxPool", "edge_dsp")
    assert {"boundary/rank_6", "boundary/stretched_rank_6"} <= names("Add", "npu_v3")
    assert "boundary/rank_4" in names("Add", "edge_dsp") and "boundary/sequence_8192" in names("MatMul", "npu_v3")
    assert {f"typical/heads_{h}" for h in (1, 2, 4, 8, 16)} <= names("Attention", "npu_v3")


def test_the_largest_case_does_not_fit_on_the_chip() -> None:
    found = {c.name: c for c in cases_of("Relu", limits_of(load_hcd("npu_v3"), "Relu"))}
    sizes = [found[f"boundary/{n}_memory"].inputs[0] for n in ("fills", "beyond")]
    assert [int(np.prod(t.shape)) * 2 for t in sizes if t is not None] == [8192 * 1024, 12288 * 1024]
    assert found["boundary/beyond_memory"].slow and not found["typical/rows"].slow


def test_a_chip_that_flushes_or_sums_in_half_is_not_asked_for_more() -> None:
    assert "precision/denormal_values" in names("Relu", "npu_v3") and "precision/denormal_values" not in names("Relu", "edge_dsp")
    limits = limits_of(load_hcd("npu_v3"), "MatMul")
    assert "precision/long_sum" not in {c.name for c in cases_of("MatMul", replace(limits, half_sums=True))}


def test_what_operators_are_read_as_is_what_reading_makes_of_their_cases() -> None:
    load_all()
    limits = limits_of(load_hcd("generic_cpu"), "Relu")
    made: dict[str, set[str]] = {}
    for name in sorted(set(READ_AS) - {"BatchNormalization"}):  # BatchNormalization is expanded later, where no convolution takes it in
        graphs = [read_model(model_of(c, c.arrays())[0].SerializeToString(), Options()) for c in cases_of(name, limits) if not c.slow]
        made[name] = {onnx_name(n.op) for g in graphs for n in g.nodes()}
    assert len(made) == 20 and made == {name: set(READ_AS[name]) for name in made}
    assert made["AffineGrid"] == {"MatMul", "Reshape", "Transpose"} and made["ReverseSequence"] == {"GatherElements"}


def test_a_chip_claims_what_all_parts_of_a_reading_are_claimed_for() -> None:
    assert claims(small("One", "MatMul")) == ["MatMul"]
    assert {"AffineGrid", "DepthToSpace", "Flatten", "MatMul", "Reshape"} <= set(claims(small("Three", "MatMul", "Reshape", "Transpose")))


def test_inputs_are_the_same_every_time() -> None:
    case = cases_of("Add", limits_of(load_hcd("npu_v3"), "Add"))[0]
    first, second = case.arrays(), case.arrays()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None)
    assert not np.array_equal(*first)  # type: ignore[arg-type] # both are arrays
    assert Tensor((5,), values=(1.0, 2.0)).draw(0).tolist() == [1, 2, 1, 2, 1]
    assert set(Tensor((40,), -1, 1, step=0.5).draw(3).tolist()) <= {-1.0, -0.5, 0.0, 0.5, 1.0}


def test_only_claimed_operators_can_be_asked_for() -> None:
    hcd = load_hcd("edge_dsp")
    with pytest.raises(UsageError, match="Edge-DSP does not claim it"):
        plan_cases(hcd, ["Softmax"])
    with pytest.raises(UsageError, match="did you mean 'Conv'"):
        plan_cases(hcd, ["Convo"])
    cases, unexamined = plan_cases(load_hcd("npu_v3"), ["Relu"], slow=False)
    assert cases and not unexamined and not any(c.slow for c in cases)


def test_an_operator_that_needs_bool_is_no_claim_of_a_chip_without_it() -> None:
    assert "Where" not in claims(load_hcd("npu_v3"))
    wider = chip("npu_v3", ("[float16, int8, bfloat16]", "[float16, int8, bfloat16, bool]"))
    assert "Where" in claims(wider)

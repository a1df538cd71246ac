"""Plans longer or larger than a descriptor allows: fewer steps are tried first, then the plan is refused."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.errors import UnsupportedError
from flaot.hcd import Hcd, load, load_hcd
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.runtime.session import Session
from tests.mapping.models import model, node, small, weights

ROWS, INNER, COLUMNS = 64, 256, 512
"""x takes 32,768 bytes in float16, w 262,144, y 65,536; on-chip memory is 64 kB."""


def product(limits: str = "", size_kb: int = 64) -> Compiled:
    """x @ w on a chip that brings pieces in and out."""
    m = model([node("MatMul", "x w", "y")], {"x": (ROWS, INNER)}, ["y"], {"w": weights(INNER, COLUMNS)})
    hcd = chip(limits, size_kb)
    return compile_model(m, hcd, Options(policy=policy_of(hcd, fallback="error")))


def chip(limits: str = "", size_kb: int = 64) -> Hcd:
    text = f"""chip: {{name: Short, device_type: npu_test}}
clock_mhz: 1000
compute_units: {{fp16: {{peak_gflops: 64, supported_layouts: [NCHW]}}}}
memory:
  on_chip_cache: {{size_kb: {size_kb}, bandwidth_gb_per_s: 64}}
  off_chip_memory: {{bandwidth_gb_per_s: 4}}
tensor: {{supported_dtypes: [float16], default_layout: NCHW}}
"""
    return load((text + (f"limits: {{{limits}}}\n" if limits else "")).encode(), "short.hcd")


def steps(c: Compiled) -> int:
    return len(c.program.steps)


def test_a_limit_that_holds_changes_nothing() -> None:
    free = product()
    assert [s.kernel for s in product(f"max_steps: {steps(free)}").program.steps] == [s.kernel for s in free.program.steps]
    exact = product(f"max_plan_bytes: {len(free.plan)}")
    assert len(exact.plan) == len(free.plan)


def test_fewer_steps_are_taken_where_the_fastest_way_has_too_many() -> None:
    free = product()
    fewer = product(f"max_steps: {steps(free) - 1}")
    assert steps(fewer) < steps(free)
    x = np.random.default_rng(0).standard_normal((ROWS, INNER)).astype(np.float32)
    results = []
    for c in (free, fewer):
        with Session(c.plan) as session:
            results.append(session.run(None, {"x": x})[0])
    np.testing.assert_array_equal(*results)


def test_a_plan_that_stays_too_long_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"^the plan has (\d+) steps, \d+ of them to move data; Short allows max_steps 3 "
                       r"\(short.hcd:8\); bind smaller shapes, try --fusion-level aggressive, or send nodes .*--route") as e:
        product("max_steps: 3")
    assert e.value.exit_code == 5


def test_a_plan_that_is_too_large_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"^the plan has \d{6} bytes, 262144 of them constants; Short allows max_plan_bytes 100000 "
                       r"\(short.hcd:8\); compile a smaller model") as e:
        product("max_plan_bytes: 100000")
    assert e.value.exit_code == 5


def test_the_strictest_of_several_descriptors_counts() -> None:
    m = model([node("Relu", "x", "y")], {"x": (4, 4)}, ["y"])
    one, two = small("ONE", "Relu"), chip("max_steps: 1")
    with pytest.raises(UnsupportedError, match="Short allows max_steps 1"):
        compile_model(m, [one, two])


def test_a_cpu_may_state_limits() -> None:
    text = b"""chip: {name: little, device_type: cpu}
compute_units: {cpu: {isa: []}}
limits: {max_steps: 1}
"""
    m = model([node("MatMul", "x w", "a"), node("Softmax", "a", "y")], {"x": (4, 4)}, ["y"], {"w": weights(4, 4)})
    with pytest.raises(UnsupportedError, match=r"2 steps, 0 of them .*little allows max_steps 1 \(little.hcd:3\).*a smaller model"):
        compile_model(m, load(text, "little.hcd"))


def test_the_edge_dsp_holds_as_many_steps_as_a_quarter_of_its_largest_plan() -> None:
    limits = load_hcd("edge_dsp").full.limits
    assert limits is not None and limits.max_steps is not None and limits.max_plan_bytes is not None
    assert limits.max_steps * 256 * 4 == limits.max_plan_bytes

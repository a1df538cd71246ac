"""Plans that take more off-chip memory than a descriptor states are refused, every device by its own."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from flaot.errors import LimitError
from flaot.hcd import Hcd, load
from flaot.hcd.board import board_of
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.runtime.session import Session
from tests.mapping.models import model, node, weights

MB = 1 << 20
INNER, COLUMNS = 1024, 1536
"""w takes 3 MB in float16 and 6 in float32; x of 64 rows 128 kB, y 192 kB in float16."""


def product(rows: int = 64) -> onnx.ModelProto:
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "y")]
    return model(nodes, {"x": (rows, INNER)}, ["y"], {"w": weights(INNER, COLUMNS)})


def text(name: str = "Short", size: str = "") -> str:
    return f"""chip: {{name: {name}, device_type: {name.lower()}}}
clock_mhz: 1000
compute_units: {{fp16: {{peak_gflops: 64000, supported_layouts: [NCHW]}}}}
memory:
  on_chip_cache: {{size_kb: 4096, bandwidth_gb_per_s: 640}}
  off_chip_memory:
    bandwidth_gb_per_s: 64
    {size}
tensor: {{supported_dtypes: [float16], default_layout: NCHW}}
"""


def chip(size_mb: int | None = None, name: str = "Short") -> Hcd:
    return load(text(name, "" if size_mb is None else f"size_mb: {size_mb}").encode(), f"{name.lower()}.hcd")


def on(*chips: Hcd, rows: int = 64) -> Compiled:
    return compile_model(product(rows), list(chips), Options(policy=policy_of(chips[0], fallback="error")))


def test_values_and_constants_that_fit_change_nothing() -> None:
    free = on(chip())
    taken = free.program.chips[0].arena + INNER * COLUMNS * 2
    assert 3 * MB < taken <= 4 * MB
    assert [s.kernel for s in on(chip(4)).program.steps] == [s.kernel for s in free.program.steps]


def test_more_than_there_is_is_refused_with_the_node_and_the_line() -> None:
    """The constants alone take the 3 MB."""
    with pytest.raises(LimitError) as e:
        on(chip(3))
    assert str(e.value) == (
        "node 'matmul_a': the plan takes 3.4 MB of the off-chip memory of Short, 3 of them constants and 3 the largest tensor of this "
        "node; size_mb is 3 (short.hcd:8); bind smaller shapes, or send nodes to another device with --route NODE=DEVICE"
    )
    assert e.value.exit_code == 9


def test_values_count_as_well_as_constants() -> None:
    """8192 rows of x take 16 MB and of y 24."""
    assert on(chip(64), rows=8192).program.chips[0].arena == 40 * MB
    on(chip(43), rows=8192)
    with pytest.raises(LimitError, match=r"takes 43 MB .* 3 of them constants and 24 the largest tensor of this node; size_mb is 42"):
        on(chip(42), rows=8192)


def test_the_host_runs_the_largest_where_it_may() -> None:
    """a and y take 24 MB each and w 3."""
    m, hcd = product(8192), chip(42)
    done = compile_model(m, hcd, Options(policy=policy_of(hcd, fallback="warn"), fusion_level=0))
    taken = {d.node[0]: d for d in done.record.decisions}["matmul_a"]
    assert (taken.device, taken.verdict, taken.origin) == ("host", "fallback", "short.hcd:8")
    assert "with its tensors of 24 MB the plan takes 51 MB of the off-chip memory of Short; size_mb is 42" in taken.reason
    assert all(c.arena <= 42 * MB for c in done.program.chips)


def test_every_chip_is_held_to_its_own() -> None:
    """The product runs on One, Relu on Two."""
    routes = ["MatMul=One", "Relu=Two"]

    def both(one: int, two: int, rows: int = 64) -> Compiled:
        chips = [chip(one, "One"), chip(two, "Two")]
        policy = policy_of(board_of(chips), fallback="error", routes=routes)
        return compile_model(product(rows), chips, Options(policy=policy, fusion_level=0))

    assert [c.arena for c in both(64, 1).program.chips] == [(128 + 192) << 10, (192 + 192) << 10]
    with pytest.raises(LimitError, match=r"node 'matmul_a'.*memory of One.*size_mb is 3 \(one\.hcd:8\)"):
        both(3, 1)
    with pytest.raises(LimitError, match=r"the plan takes 6 MB .*memory of Two, 0 of them constants.*size_mb is 1 \(two\.hcd:8\)"):
        both(64, 1, rows=1024)


def test_the_host_is_held_to_the_descriptor_that_states_its() -> None:
    def host(size_mb: int) -> Hcd:
        memory = f"memory: {{off_chip_memory: {{size_mb: {size_mb}, bandwidth_gb_per_s: 8}}}}"
        return load(f"chip: {{name: little, device_type: cpu}}\ncompute_units: {{cpu: {{isa: []}}}}\n{memory}\n".encode(), "little.hcd")

    on(host(8))
    with pytest.raises(LimitError, match=r"memory of little, 6 of them constants.*size_mb is 5 \(little\.hcd:3\); .*a smaller model"):
        on(host(5))
    with pytest.raises(LimitError, match=r"memory of little, 0 of them constants.*size_mb is 1 \("):
        on(chip(64), host(1), rows=1024)


@pytest.mark.parametrize("alignment", [1, 2, 4, 8, 64])
def test_constants_of_a_chip_begin_at_a_multiple_of_eight(alignment: int) -> None:
    """After 12 bytes of the host's."""
    hcd = load((text() + f"constraints: {{memory_alignment_bytes: {alignment}}}\n").encode(), "short.hcd")
    m = model([node("Add", "x b", "a"), node("MatMul", "a w", "y")], {"x": (4, 3)}, ["y"], {"b": weights(3), "w": weights(3, 5)})
    done = compile_model(m, hcd, Options(policy=policy_of(hcd, routes=["Add=host", "MatMul=Short"])))
    x = np.ones((4, 3), np.float32)
    with Session(done.plan) as session:
        np.testing.assert_allclose(session.run(None, {"x": x})[0], (x + weights(3)) @ weights(3, 5), atol=0.01)

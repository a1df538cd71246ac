"""Verdicts are measured: right and wrong vectors, claims that are not kept, conditions, traps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flaot.errors import DeviceError
from flaot.hcd import Hcd, load, load_hcd
from flaot.hcd.bundle import bundled
from flaot.optest import run as running
from flaot.optest.conformance import origin_of, vector_cases
from flaot.optest.limits import limits_of
from flaot.optest.recipes import cases_of
from flaot.optest.run import Device
from flaot.optest.suite import Outcome, plan_cases, run_suite, table
from flaot.optest.verdict import ELSEWHERE, OUTSIDE, PASS, TRAPPED, WRONG, Verdict
from flaot.runtime.session import Session
from flaot.verify.server import ReferenceServer
from tests.mapping.models import chip


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceServer]:
    with ReferenceServer() as server:
        yield server


def verdict(reference: ReferenceServer, folder: Path, hcd: Hcd, operator: str, name: str) -> Verdict:
    case = next(c for c in cases_of(operator, limits_of(hcd, operator)) if c.name == name)
    return Device(hcd, None, reference, folder).run(case)


def test_a_kept_claim(reference: ReferenceServer, tmp_path: Path) -> None:
    v = verdict(reference, tmp_path, load_hcd("npu_v3"), "Conv", "typical/3x3_padded")
    assert v.verdict == PASS and v.dtype == "float16" and 0 < v.error <= v.bound and 0 < v.ratio < 1
    exact = verdict(reference, tmp_path, load_hcd("npu_v3"), "Transpose", "boundary/layout_NHCW")
    assert exact.verdict == PASS and exact.exact and exact.ratio == 0


CLAIMS_LITTLE = """
operators:
  MatMul: {units: [fp16]}
  Relu: {units: [fp16], dtypes: [{inputs: [int8], outputs: [int8]}]}
"""


def test_a_claim_that_the_host_keeps(reference: ReferenceServer, tmp_path: Path) -> None:
    hcd = load((bundled()["npu_v3"].read_text() + CLAIMS_LITTLE).encode(), "npu_v3.hcd")
    v = verdict(reference, tmp_path, hcd, "Relu", "typical/rows")
    assert v.verdict == ELSEWHERE and v.failed
    assert v.text == "Relu is run by the host: no unit of NPU-V3 runs Relu in these element types" and v.origin == "npu_v3.hcd:3"


def test_what_takes_an_operator_that_is_not_claimed_is_outside_the_claim(reference: ReferenceServer, tmp_path: Path) -> None:
    v = verdict(reference, tmp_path, load_hcd("npu_v3"), "Pad", "boundary/reflected")
    assert v.verdict == OUTSIDE and not v.failed
    assert v.text == "it takes Gather as well, which is not claimed: no unit of NPU-V3 runs Gather" and v.origin == "npu_v3.hcd:2"
    hcd = load((bundled()["npu_v3"].read_text() + CLAIMS_LITTLE).encode(), "npu_v3.hcd")
    v = verdict(reference, tmp_path, hcd, "MatMul", "boundary/row")
    assert v.verdict == OUTSIDE and v.text.startswith("it takes Reshape as well, which is not claimed: NPU-V3 does not list Reshape")


def test_sums_longer_than_the_memory_on_chip_are_outside_the_claim(reference: ReferenceServer, tmp_path: Path) -> None:
    """64 KB of float16: 32768 numbers fill it, and their sum, never taken in parts, wants room beside them."""
    hcd = chip("npu_v3", ("size_kb: 8192", "size_kb: 64"))
    v = verdict(reference, tmp_path, hcd, "ReduceSum", "boundary/sum_fills_memory")
    assert v.verdict == OUTSIDE and "bytes on chip at once, however it is cut; NPU-V3 has 65536" in v.text and v.origin == "npu_v3.hcd:7"
    assert verdict(reference, tmp_path, hcd, "ReduceSum", "boundary/fills_memory").verdict == PASS


def test_what_a_condition_rules_out_is_no_claim(reference: ReferenceServer, tmp_path: Path) -> None:
    v = verdict(reference, tmp_path, load_hcd("edge_dsp"), "Conv", "boundary/dilated")
    assert v.verdict == OUTSIDE and not v.failed and "dilations is [2, 2]; allowed are 1" in v.text and v.origin == "edge_dsp.hcd:34"


def test_a_chip_that_fails_for_one_operator_alone(reference: ReferenceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Session.run

    def without_pooling(session: Session, *given: Any) -> list[np.ndarray]:
        if any(session.plan.step_name(i)[2] == "MaxPool" for i in range(session.step_count)):
            raise DeviceError("nothing for this kernel")
        return honest(session, *given)

    monkeypatch.setattr(Session, "run", without_pooling)
    v = verdict(reference, tmp_path, load_hcd("npu_v3"), "MaxPool", "typical/2x2")
    assert v.verdict == TRAPPED and v.text == "nothing for this kernel"
    assert verdict(reference, tmp_path, load_hcd("npu_v3"), "Relu", "typical/rows").verdict == PASS


def test_wrong_numbers_and_traps(reference: ReferenceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Session.run
    monkeypatch.setattr(Session, "run", lambda *given: [y * np.float32(1.01) for y in honest(*given)])
    v = verdict(reference, tmp_path, load_hcd("npu_v3"), "Relu", "typical/rows")
    assert v.verdict == WRONG and v.error > v.bound and "got" in v.text and "want" in v.text
    monkeypatch.undo()
    compiled = running._compiled

    def narrower(case, model, feeds, hcd):  # type: ignore[no-untyped-def]
        made = compiled(case, model, feeds, hcd)
        made.program.chips = [replace(c, max_rank=1) for c in made.program.chips]
        from flaot.hcd.board import board_of
        from flaot.pipeline import device_record, write_plan
        from flaot.targets.devices import host_of

        made.plan = write_plan(made.program, model_digest=bytes(32), hcd_digest=hcd.digest, device=device_record(host_of(board_of(hcd))))
        return made

    monkeypatch.setattr(running, "_compiled", narrower)
    v = verdict(reference, tmp_path, load_hcd("npu_v3"), "MaxPool", "typical/2x2")
    assert v.verdict == TRAPPED and "max_rank is 1" in v.text


VECTORS = """
conformance:
  vectors:
    - {op: Relu, inputs: [{dtype: float16, shape: [3], values: [-1, 0, 2]}], outputs: [{dtype: float16, shape: [3], values: [0, 0, 2]}]}
    - op: Add
      inputs: [{dtype: float16, shape: [2], values: [1, 2]}, {dtype: float16, shape: [2], values: [3, 4]}]
      outputs: [{dtype: float16, shape: [2], values: [4, 7]}]
"""


def test_vectors_of_the_descriptor_are_cases() -> None:
    hcd = load((bundled()["npu_v3"].read_text() + VECTORS).encode(), "npu_v3.hcd")
    cases = [c for c in plan_cases(hcd, ["Add", "Relu"])[0] if c.kind == "conformance"]
    assert [c.id for c in cases] == ["Add/conformance/vector_1", "Relu/conformance/vector_0"] and len(vector_cases(hcd)) == 2
    assert origin_of(hcd, cases[1]) == "npu_v3.hcd:14"
    wrong, right = run_suite(hcd, None, cases, (), None, lambda name: None).verdicts
    assert right.verdict == PASS and wrong.verdict == WRONG and wrong.text == "output 0 at [1] got 6, want 7"


def test_the_table_counts_what_is_claimed() -> None:
    given = [Verdict("Relu/a", "Relu", "typical", PASS, error=1.0, bound=4.0), Verdict("Relu/b", "Relu", "typical", OUTSIDE)]
    given += [Verdict("Add/a", "Add", "typical", WRONG, "off"), Verdict("Add/b", "Add", "typical", PASS)]
    relu, add = table(Outcome(load_hcd("npu_v3"), given))
    assert (relu["cases"], relu["passed"], relu["outside"], relu["worst"], relu["verdict"]) == (1, 1, 1, 0.25, "kept")
    assert (add["cases"], add["passed"], add["verdict"], add["first_failure"]["case"]) == (2, 1, "kept in part", "Add/a")


def test_kept_files_repeat_the_case(reference: ReferenceServer, tmp_path: Path) -> None:
    hcd = load_hcd("npu_v3")
    case = next(c for c in cases_of("Add", limits_of(hcd, "Add")) if c.name == "typical/rows")
    Device(hcd, None, reference, tmp_path, tmp_path / "kept").run(case)
    held = np.load(tmp_path / "kept" / "Add.typical.rows.npz")
    assert held["x0"].shape == (12, 40) and (tmp_path / "kept" / "Add.typical.rows.onnx").stat().st_size > 50


def test_a_crash_of_the_reference_is_no_end(tmp_path: Path) -> None:
    hcd = load_hcd("npu_v3")
    with ReferenceServer() as server:
        assert verdict(server, tmp_path, hcd, "Relu", "typical/rows").verdict == PASS
        assert server._child is not None
        server._child.kill()
        server._child.wait()
        assert verdict(server, tmp_path, hcd, "Relu", "typical/rows").verdict == "no reference"
        assert verdict(server, tmp_path, hcd, "Relu", "typical/rows").verdict == PASS


def test_a_bug_ends_the_case_alone(reference: ReferenceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(running, "_compiled", broken)
    v = verdict(reference, tmp_path, load_hcd("npu_v3"), "Relu", "typical/rows")
    assert v.verdict == "bug in flaot" and v.failed and v.text == "ZeroDivisionError: division by zero"

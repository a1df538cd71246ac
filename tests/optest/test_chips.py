"""Every claim of the bundled chips on the simulator, held to what was measured before."""

from __future__ import annotations

from pathlib import Path

import pytest

from flaot.hcd import load_hcd
from flaot.optest.limits import claims
from flaot.optest.probes import run_probes
from flaot.optest.ratchet import Ratchet, better_than, worse_than
from flaot.optest.suite import plan_cases, run_suite

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["edge_dsp", "npu_v2", "npu_v3"])
def test_nothing_changed(name: str) -> None:
    """When it did for the better: flaot optest --hcd NAME --ratchet tests/optest/NAME.ratchet --update-ratchet."""
    hcd = load_hcd(name)
    held = Ratchet.parse((HERE / f"{name}.ratchet").read_bytes(), f"{name}.ratchet")
    outcome = run_suite(hcd, None, *plan_cases(hcd), None, lambda case: None)
    now = Ratchet.of(hcd.name, outcome.verdicts, run_probes(hcd))
    assert worse_than(held, now) == [] and better_than(held, now) == [] and set(held.cases) == set(now.cases)


@pytest.mark.parametrize("name", ["edge_dsp", "npu_v2", "npu_v3"])
def test_a_ratchet_knows_every_case(name: str) -> None:
    held = Ratchet.parse((HERE / f"{name}.ratchet").read_bytes(), f"{name}.ratchet")
    cases, unexamined = plan_cases(load_hcd(name))
    assert set(held.cases) == {c.id for c in cases} and unexamined == []
    assert not {"wrong", "trapped", "no reference", "bug in flaot"} & set(held.cases.values()) and "lies" not in held.probes.values()


@pytest.mark.slow
def test_the_portable_cpu_runs_what_no_npu_does() -> None:
    hcd, npu = load_hcd("generic_cpu"), set(claims(load_hcd("npu_v3")))
    cases, unexamined = plan_cases(hcd, [name for name in claims(hcd) if name not in npu], slow=False)
    outcome = run_suite(hcd, None, cases, unexamined, None, lambda case: None)
    assert len(cases) > 200 and outcome.counts() == {"pass": len(cases)}

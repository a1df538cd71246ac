"""Every claim of the bundled chips on the simulator, held to what was measured before."""

from __future__ import annotations

from pathlib import Path

import pytest

from flaot.hcd import Hcd, load_hcd
from flaot.optest.limits import claims
from flaot.optest.probes import run_probes
from flaot.optest.ratchet import Ratchet, better_than, worse_than
from flaot.optest.suite import plan_cases, run_suite
from tests.samples import toy

HERE = Path(__file__).parent
CHIPS = ("edge_dsp", "npu_v2", "npu_v3", "toy_npu")


def descriptor(name: str) -> Hcd:
    return load_hcd(toy.HCD if name == "toy_npu" else name)


def held_by(name: str) -> Ratchet:
    return Ratchet.parse((HERE / f"{name}.ratchet").read_bytes(), f"{name}.ratchet")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHIPS)
def test_nothing_changed(name: str) -> None:
    """The toy chip on its adapter, the others simulated. When it did for the better:
    flaot optest --hcd NAME --ratchet tests/optest/NAME.ratchet --update-ratchet."""
    hcd, held, adapter = descriptor(name), held_by(name), toy.library() if name == "toy_npu" else None
    outcome = run_suite(hcd, adapter, *plan_cases(hcd), None, lambda case: None)
    now = Ratchet.of(hcd.name, outcome.verdicts, run_probes(hcd, adapter))
    assert worse_than(held, now) == [] and better_than(held, now) == [] and set(held.cases) == set(now.cases)


@pytest.mark.parametrize("name", CHIPS)
def test_a_ratchet_knows_every_case(name: str) -> None:
    held = held_by(name)
    cases, unexamined = plan_cases(descriptor(name))
    assert held.chip == descriptor(name).name and set(held.cases) == {c.id for c in cases} and unexamined == []
    assert not {"wrong", "trapped", "no reference", "bug in flaot"} & set(held.cases.values()) and "lies" not in held.probes.values()


@pytest.mark.slow
def test_the_portable_cpu_runs_what_no_npu_does() -> None:
    hcd, npu = load_hcd("generic_cpu"), set(claims(load_hcd("npu_v3")))
    cases, unexamined = plan_cases(hcd, [name for name in claims(hcd) if name not in npu], slow=False)
    outcome = run_suite(hcd, None, cases, unexamined, None, lambda case: None)
    assert len(cases) > 200 and outcome.counts() == {"pass": len(cases)}

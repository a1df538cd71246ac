"""The memories of real models, on the host and on npu_v3: how far above the live-size lower bound the planner ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flaot.hcd import load_hcd
from flaot.mapping.policy import policy_of
from flaot.pipeline import Options, compile_model
from tests.cli.conftest import flaot
from tests.models.chips import Subject, subjects
from tests.models.manifest import folder, models

pytestmark = pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")


def ratios(subject: Subject, chip: str, effort: int | None) -> list[float]:
    """Size over bound of every memory that holds something."""
    hcd = load_hcd(chip)
    options = Options(subject.shapes, policy=policy_of(hcd, fallback="allow"), memory_effort=effort)
    program = compile_model(subject.path, hcd, options).program
    memories = [(program.arena, program.lower_bound), *((c.arena, c.lower_bound) for c in program.chips)]
    return [size / bound for size, bound in memories if bound]


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["host", "npu_v3"])
@pytest.mark.parametrize("subject", subjects() if folder() is not None else [], ids=lambda s: s.name)
def test_greedy_orders_stay_near_the_bound_and_the_planner_nearer(subject: Subject, chip: str) -> None:
    assert max(ratios(subject, chip, 0), default=1) <= 1.15
    assert max(ratios(subject, chip, None), default=1) <= 1.1


def test_effort_on_the_command_line_reaches_the_planner(tmp_path: Path) -> None:
    path = models()["yolox_person_192"].path
    found = []
    for effort in (0, 100_000):
        done = flaot("compile", path, "--memory-effort", effort, "-o", "y.flp", "--json", cwd=tmp_path)
        assert done.code == 0
        found.append(json.loads(done.out)["memory"])
    assert found[1]["lower_bound_bytes"] <= found[1]["arena_bytes"] <= found[0]["arena_bytes"]

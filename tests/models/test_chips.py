"""Real models on the bundled NPUs agree with onnxruntime at the dtype's tolerance, mapped as docs/chips.md publishes."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

from flaot.ir.ops.relayout import Relayout
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.pipeline import Compiled
from flaot.plan.program import Opcode
from flaot.verify.check import verify
from tests.models.chips import CHIPS, Subject, cells, compiled, published, samples, subjects
from tests.models.manifest import folder, models

pytestmark = [pytest.mark.slow, pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("subject", subjects() if folder() is not None else [], ids=lambda s: s.name)
def test_real_model(subject: Subject, chip: str) -> None:
    done = compiled(subject, chip)
    result = verify(done.plan, str(subject.path), models()[subject.name].feeds())
    assert result.ok, [c.name for c in result.outputs if not c.ok]
    nothing_silent(done)
    assert cells(subject, chip) == published()[subject.name, chip], "run make chips and look at the difference"


def nothing_silent(done: Compiled) -> None:
    """Every Transfer, Recast and Relayout of the graph and every transfer of the plan is in the record."""
    kinds = {Transfer: "Transfer", Recast: "Cast", Relayout: "Relayout"}
    held = Counter(kinds[type(n.op)] for n in done.graph.nodes() if type(n.op) in kinds)
    assert held == Counter(i.kind for i in done.record.inserted)
    assert sum(s.opcode is Opcode.transfer for s in done.program.steps) == held["Transfer"]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_samples(tmp_path: Path) -> None:
    seen = 0
    for subject in samples(tmp_path, ("script",)):
        for chip in CHIPS:
            row = cells(subject, chip)
            assert row == published()[subject.name, chip], "run make chips and look at the difference"
            if row[3] == "0":
                seen += 1
                assert verify(compiled(subject, chip).plan, str(subject.path)).ok
    assert seen == 14


def test_the_figures_that_matter() -> None:
    """Every node of ResNet-50 and MobileNetV2 is native on npu_v3 with at most 2 relayouts inside; the encoder with 4 heads falls nowhere
    back; the one with 12 is refused at its six layers."""
    rows = published()
    for exporter in ("dynamo", "script"):
        for name in ("resnet50", "mobilenet_v2"):
            native, expanded, fallback, refused, relayouts, _, _ = rows[f"{name} ({exporter})", "npu_v3"]
            assert int(native) > 90 and (expanded, fallback, refused) == ("0", "0", "0")
            assert int(relayouts.split("(")[1].rstrip(")")) <= 2
        assert rows[f"encoder_4x256 ({exporter})", "npu_v3"][1:4] == ["0", "0", "0"]
        assert rows[f"encoder_6x384 ({exporter})", "npu_v3"][3] == "6"

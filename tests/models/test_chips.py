"""Real models on the bundled chips and the toy chip run without a trap, within their memory, agree with onnxruntime at the dtype's
tolerance, and take what docs/chips.md publishes."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

from flaot.ir.ops.relayout import Relayout
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.pipeline import Compiled
from flaot.plan.program import Opcode
from flaot.runtime.session import Session
from flaot.verify.check import judge, verify
from tests.models.chips import BEYOND_FLOAT16, CHIPS, NPUS, Subject, cells, compiled, hcd_of, published, refusal, row, samples, subjects
from tests.models.manifest import folder, models
from tests.samples.toy import library

pytestmark = [pytest.mark.slow, pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")]


STALE = "run make chips and look at the difference"
TOO_LONG = {("ppocr_v4_rec", "edge_dsp")}
"""Models whose plan has more steps than the chip holds."""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("subject", subjects() if folder() is not None else [], ids=lambda s: s.name)
def test_real_model(subject: Subject, chip: str) -> None:
    if (subject.name, chip) in TOO_LONG:
        assert published()[subject.name, chip] == refusal("refused"), STALE
        return
    done = compiled(subject, chip)
    with Session(done.plan, adapter=library() if chip == "toy_npu" else None) as session:
        beyond = (subject.name, chip) in BEYOND_FLOAT16
        result = judge(session, str(subject.path), models()[subject.name].feeds(), layers=beyond)
        counted = session.counters()
    if beyond:
        assert result.first_difference is not None and result.first_difference.beyond == "float16 without denormals"
    else:
        assert result.ok, [c.name for c in result.outputs if not c.ok]
    fits(done, chip)
    for estimate, counters in zip(done.estimates, counted, strict=True):
        assert counters.on_chip_peak <= estimate.on_chip_bytes
        assert counters.on_chip_peak > 0 or chip == "toy_npu", "its SDK does not count"
    nothing_silent(done)
    assert cells(done) == published()[subject.name, chip], STALE


def fits(done: Compiled, chip: str) -> None:
    """On-chip memory is within the chip's, and at most 1.1 times what is alive at once."""
    size = hcd_of(chip).full.memory.on_chip_cache.size_kb * 1024
    for estimate in done.estimates:
        assert estimate.on_chip_bytes <= estimate.on_chip_limit_bytes == size
        assert estimate.on_chip_bytes <= 1.1 * estimate.on_chip_bound_bytes


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
        for chip in NPUS:
            want = published()[subject.name, chip]
            if want[0] == "refused at 6":
                assert row(subject, chip) == want, STALE
                continue
            seen += 1
            done = compiled(subject, chip)
            assert verify(done.plan, str(subject.path)).ok
            fits(done, chip)
            assert cells(done) == want, STALE
    assert seen == 14


def test_the_figures_that_matter() -> None:
    """Every node of ResNet-50 and MobileNetV2 is native on npu_v3 with at most 2 relayouts inside; the encoder with 4 heads falls nowhere
    back; the one with 12 is refused at its six layers. Cycles over the bound stay within their limits."""
    rows = published()
    for exporter in ("dynamo", "script"):
        for name in ("resnet50", "mobilenet_v2"):
            native, expanded, fallback, relayouts, *_ = rows[f"{name} ({exporter})", "npu_v3"]
            assert int(native) > 90 and (expanded, fallback) == ("0", "0")
            assert int(relayouts.split("(")[1].rstrip(")")) <= 2
        assert rows[f"encoder_4x256 ({exporter})", "npu_v3"][1:3] == ["0", "0"]
        for name, limit in (("resnet50", 1.25), ("mobilenet_v2", 1.5), ("encoder_4x256", 1.5)):
            assert float(rows[f"{name} ({exporter})", "npu_v3"][11]) <= limit
            assert float(rows[f"{name} ({exporter})", "npu_v2"][11]) <= limit + 0.1
        assert rows[f"encoder_6x384 ({exporter})", "npu_v3"][0] == "refused at 6"

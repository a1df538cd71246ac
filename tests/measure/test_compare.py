"""Descriptors beside figures that a person can check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flaot.hcd.loader import Hcd, load
from flaot.measure import Figures, Level, compare, contradictions, descriptor

FIGURES = Figures(
    cpu="Test CPU", cpus=4, load=0.0, isa=frozenset(("avx2", "fma", "f16c")), variant="avx2", clock=2e9, peak={1: 64e9, 4: 256e9},
    levels=(
        Level("L1", 32 << 10, 24 << 10, 1, 2.0, {1: 100e9, 4: 400e9}, {1: 50e9, 4: 200e9}, {1: 90e9, 4: 360e9}),
        Level("L2", 8 << 20, 2 << 20, 4, 10.0, {1: 40e9, 4: 120e9}, {1: 30e9, 4: 90e9}, {1: 35e9, 4: 100e9}),
        Level("main", 8 << 30, None, 64, 80.0, {1: 10e9, 4: 30e9}, {1: 8e9, 4: 20e9}, {1: 9e9, 4: 24e9}),
    ),
)  # fmt: skip

HONEST = """\
chip: {name: honest, device_type: cpu}
clock_mhz: 2100
compute_units:
  cpu: {count: 4, peak_gflops: 300, isa: [avx2, fma, f16c]}
memory:
  on_chip_cache: {size_kb: 8192, bandwidth_gb_per_s: 100}
  off_chip_memory: {size_mb: 8192, bandwidth_gb_per_s: 25}
  regions:
    - {name: l1, kind: sram, size_kb: 32, read_gb_per_s: 400, write_gb_per_s: 200, latency_cycles: 4}
    - {name: scratch, kind: tcm, size_kb: 64}
"""


def hcd(text: str = HONEST) -> Hcd:
    return load(text.encode(), "test.hcd")


def changed(old: str, new: str) -> list[str]:
    """What is said about the honest descriptor with a part replaced."""
    assert old in HONEST
    return [str(e) for e in contradictions(compare(hcd(HONEST.replace(old, new)), FIGURES), FIGURES)]


def test_an_honest_descriptor() -> None:
    rows = {r.key: r for r in compare(hcd(), FIGURES)}
    assert contradictions(list(rows.values()), FIGURES) == []
    assert rows["compute_units.cpu.peak_gflops"].measured == 256
    assert rows["compute_units.cpu.peak_gflops"].ratio == pytest.approx(256 / 300)
    assert rows["compute_units.cpu.peak_gflops"].origin == "test.hcd:4"
    assert rows["memory.on_chip_cache.bandwidth_gb_per_s"].measured == 120
    assert rows["memory.off_chip_memory.bandwidth_gb_per_s"].measured == 30
    assert rows["memory.regions[0].latency_cycles"].measured == pytest.approx(4)
    assert rows["memory.regions[1].name"].verdict == "not measured"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("isa: [avx2,", "isa: [avx512f, avx2,", "test.hcd:4: compute_units.cpu.isa: this CPU lacks avx512f; state what was measured"),
        ("count: 4", "count: 8", "test.hcd:4: compute_units.cpu.count: declared 8, but there are 4; state what was measured"),
        ("peak_gflops: 300", "peak_tflops: 3", "peak_tflops: declared 3, measured 0.256, which is off by more than a factor of 2;"),
        ("peak_gflops: 300", "peak_gflops: 100", "peak_gflops: declared 100, measured 256, which is off by more than a factor of 2;"),
        ("clock_mhz: 2100", "clock_mhz: 5000", "test.hcd:2: clock_mhz: declared 5000, measured 2000, "),
        ("size_kb: 8192", "size_kb: 32768", "on_chip_cache.size_kb: declared 32768, measured 8192, "),
        ("size_mb: 8192", "size_mb: 9000", "off_chip_memory.size_mb: declared 9000, but there are 8192;"),
        ("bandwidth_gb_per_s: 25", "bandwidth_gb_per_s: 70", "off_chip_memory.bandwidth_gb_per_s: declared 70, measured 30, "),
        ("latency_cycles: 4", "latency_cycles: 40", "test.hcd:9: memory.regions[0].latency_cycles: declared 40, measured 4, "),
    ],
)
def test_every_lie_is_named(old: str, new: str, says: str) -> None:
    (said,) = changed(old, new)
    assert says in said


def test_a_size_may_be_the_systems_or_that_of_the_curve() -> None:
    assert changed("size_kb: 8192", "size_kb: 1100") == []
    assert len(changed("size_kb: 8192", "size_kb: 900")) == 1


def test_the_factor_is_the_users() -> None:
    text = HONEST.replace("peak_gflops: 300", "peak_gflops: 700")
    assert contradictions(compare(hcd(text), FIGURES, 3.0), FIGURES) == []


def test_undeclared_keys_show_what_they_could_be() -> None:
    rows = {r.key: r for r in compare(hcd("chip: {name: bare, device_type: cpu}\ncompute_units:\n  cpu: {}\n"), FIGURES)}
    assert rows["compute_units.cpu.peak_gflops"].verdict == "not declared"
    assert rows["compute_units.cpu.peak_gflops"].measured == 64
    assert rows["compute_units.cpu.peak_gflops"].origin == ""


def test_a_busy_machine_is_mentioned_where_something_was_slow() -> None:
    busy = replace(FIGURES, load=3.0)
    slow, features = HONEST.replace("peak_gflops: 300", "peak_gflops: 900"), HONEST.replace("isa: [avx2,", "isa: [avx512f, avx2,")
    (said,) = contradictions(compare(hcd(slow), busy), busy)
    assert "load average 3.0" in str(said)
    (said,) = contradictions(compare(hcd(features), busy), busy)
    assert "load average" not in str(said)


def test_more_cores_than_threads_are_not_judged_by_fewer() -> None:
    many = replace(FIGURES, cpus=128)
    text = HONEST.replace("count: 4, peak_gflops: 300", "count: 96, peak_gflops: 9000")
    verdicts = {r.key: r.verdict for r in compare(hcd(text), many)}
    assert verdicts["compute_units.cpu.count"] == "ok"
    assert verdicts["compute_units.cpu.peak_gflops"] == verdicts["memory.on_chip_cache.bandwidth_gb_per_s"] == "not measured"


def test_unknown_features_are_not_judged() -> None:
    unknown = replace(FIGURES, isa=None)
    assert [r.verdict for r in compare(hcd(), unknown) if r.key.endswith(".isa")] == ["not measured"]


@pytest.mark.parametrize("base", ["x86_64_avx2", "generic_cpu"])
def test_what_is_written_agrees_with_what_was_measured(base: str) -> None:
    from flaot.hcd import load_hcd

    text = descriptor(load_hcd(base), base, FIGURES)
    written = load(text.encode(), "written.hcd")
    assert written.full.chip.name == f"{base}_measured"
    assert written.full.compute_units["cpu"].peak == 256e9
    assert [r.name for r in (written.full.memory and written.full.memory.regions) or ()] == ["l1", "l2", "main"]
    rows = compare(written, FIGURES)
    assert {r.verdict for r in rows} == {"ok"}
    assert all(r.ratio == pytest.approx(1, rel=0.01) for r in rows if r.ratio is not None)

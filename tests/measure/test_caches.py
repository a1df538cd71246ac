"""Caches as the system states them, and as a latency curve shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flaot.measure.caches import knees, latency_within, sizes, stated


def system(folder: Path, *caches: tuple[str, str, str, str]) -> Path:
    for i, values in enumerate(caches):
        entry = folder / f"index{i}"
        entry.mkdir(parents=True)
        for key, value in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
            (entry / key).write_text(value + "\n")
    return folder


def test_data_caches_of_the_system(tmp_path: Path) -> None:
    folder = system(
        tmp_path, ("1", "Data", "48K", "0,16"), ("1", "Instruction", "32K", "0,16"), ("2", "Unified", "2048K", "0,16"),
        ("3", "Unified", "36M", "0-31"),
    )
    found = [(level.name, level.size, level.shared) for level in stated(folder)]
    assert found == [("L1", 48 << 10, 2), ("L2", 2 << 20, 2), ("L3", 36 << 20, 32)]


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    assert stated(tmp_path) == ()
    broken = system(tmp_path, ("1", "Data", "lots", "0"))
    assert stated(broken) == ()


def test_working_sets_are_half_an_octave_apart() -> None:
    assert sizes(32 << 10) == [8192, 12288, 16384, 24576, 32768, 49152]


def curve_of(*levels: tuple[int, float], last: float) -> dict[int, float]:
    """Sharp levels: (size, nanoseconds) from the first one on, then main memory."""
    return {s: next((ns for size, ns in levels if s <= size), last) for s in sizes(64 << 20)}


def test_a_clean_curve_gives_the_sizes() -> None:
    curve = curve_of((32 << 10, 1.2), (1 << 20, 4.0), (16 << 20, 15.0), last=90.0)
    assert knees(curve) == [32 << 10, 1 << 20, 16 << 20]
    assert latency_within(curve, 1 << 20) == 4.0


def test_a_gradual_rise_is_cut_in_its_middle() -> None:
    curve = {8: 1.0, 16: 1.0, 32: 1.6, 48: 3.0, 64: 4.0, 96: 4.1, 128: 4.1}
    assert knees(curve) == [32]


@pytest.mark.parametrize("curve", [{}, {8: 1.0}, {8: 1.0, 16: 1.1, 32: 1.0}])
def test_a_flat_curve_has_none(curve: dict[int, float]) -> None:
    assert knees(curve) == []

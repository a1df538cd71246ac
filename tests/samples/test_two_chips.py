"""The story of two chips with small networks in place of ResNet-50 and the encoder."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flaot
from tests.samples.toy import ROOT, library

SAMPLES = ROOT / "samples"
PAGE = ROOT / "docs" / "two_chips.md"


ONCE = 2 * (3 * 64 * 64 * 9 + 2 * 64 * 28 * 28)
"""Bytes of the weights of three convolutions, of their input and of their output in float16."""
PIXEL = 2 * 64
ROW = PIXEL * 28
"""Bytes of a row of an activation."""


@pytest.fixture(scope="module")
def sample() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SAMPLES))
        yield importlib.import_module("two_chips")


def saved(path: Path, nodes: list[onnx.NodeProto], x: list[int], y: list[int], weights: dict[str, np.ndarray]) -> Path:
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name, shape in (("x", x), ("y", y))]
    graph = helper.make_graph(nodes, "net", *ends, [numpy_helper.from_array(w, name) for name, w in weights.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three convolutions whose activations take 100,352 bytes each in float16."""
    names, rng = ["x", "a", "b", "y"], np.random.default_rng(0)
    nodes = [helper.make_node("Conv", [names[i], f"w{i}"], [names[i + 1]], pads=[1] * 4) for i in range(3)]
    weights = {f"w{i}": (rng.standard_normal((64, 64, 3, 3)) / 24).astype(np.float32) for i in range(3)}
    return saved(tmp_path_factory.mktemp("model") / "convs.onnx", nodes, [1, 64, 28, 28], [1, 64, 28, 28], weights)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Attention with 12 heads of 8."""
    nodes = [helper.make_node("MultiHeadAttention", ["x", "x", "x"], ["y"], "attention", domain="com.microsoft", num_heads=12)]
    return saved(tmp_path_factory.mktemp("encoder") / "heads.onnx", nodes, [1, 16, 96], [1, 16, 96], {})


@dataclass(frozen=True)
class Told:
    """The first chapter, and what the others are told from."""

    story: Any
    side_by_side: str


@pytest.fixture(scope="module")
def told(sample: ModuleType, model: Path, encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    out = tmp_path_factory.mktemp("out")
    story = sample.Story(model, encoder, out / "libtoy_adapter.so", out, (128, 8192))
    return Told(story, sample.side_by_side(story))


def rows(text: str) -> dict[str, list[str]]:
    """Cells of a table by the first of each row."""
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {first: rest for first, *rest in lines}


def number(cell: str) -> float:
    return float(cell.split()[0].replace(",", ""))


def test_the_faster_chip_takes_less_time(told: Told) -> None:
    found = rows(told.side_by_side)
    assert found[""] == ["npu_v2", "npu_v3"] and found["off-chip memory, GB/s"] == ["64", "128"]
    slow, fast = map(number, found["cycles"])
    assert fast < slow < 2.5 * fast
    planned = found["bytes over off-chip memory, planned"]
    assert planned == found["bytes the simulator moved by DMA"]
    seven_parts, four_parts = 12 * ROW, (30 * 30 - 28 * 28) * PIXEL  # in rows, and 15x15 each: their edges come twice
    assert [number(x) - ONCE for x in planned] == [seven_parts, four_parts]
    assert all(number(x) > 50 for x in found["agrees with onnxruntime to"])


def test_twelve_heads_are_refused_and_then_allowed(sample: ModuleType, told: Told) -> None:
    text = sample.heads(told.story)
    assert "12 heads; the unit attention of NPU-V3 lists 1, 2, 4, 8, 16 (npu_v3.hcd:5)" in text and "(exit code 5)" in text
    (expanded, unit) = rows(text)["nodes native, expanded"]
    assert unit == "5, 0" and not expanded.endswith(" 0")
    assert rows(text)["busy: float16 units, attention unit"][0].endswith(", 0%")


def test_too_small_a_cache_costs_traffic_and_cycles(sample: ModuleType, told: Told) -> None:
    found = rows(sample.cache(told.story))
    little, true = found["128"], found["**8192**"]
    assert ONCE <= number(true[2]) < number(little[2]) and number(true[0]) < number(little[0])
    assert true[1] == true[3] == "" and little[1].startswith("+") and little[3].startswith("+")


def test_pictures_of_both_chips(sample: ModuleType, told: Told, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = sample.pictures(told.story, tmp_path)
    assert [p.name for p in paths] == ["two_chips_timeline.png", "two_chips_memory.png"]
    assert all(10_000 < p.stat().st_size < 200_000 for p in paths)


def test_page_has_every_chapter_and_its_pictures(sample: ModuleType) -> None:
    page = PAGE.read_text()
    assert re.findall(r"<!-- end of (.*) -->", page) == list(sample.CHAPTERS)
    assert all(re.search(f"<!-- {name} -->\n.+\n<!-- end of {name} -->", page, re.S) for name in sample.CHAPTERS)
    for name in re.findall(r"\]\((two_chips_\w+\.png)\)", page):
        assert (PAGE.parent / name).stat().st_size < 200_000


def test_networks_need_torch(sample: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"pip install '\.\[torch\]', or give --model and --encoder"):
        sample.exported("resnet50", tmp_path)


def test_the_page_needs_matplotlib(sample: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["two_chips.py", "--page", str(PAGE)])
    with pytest.raises(SystemExit, match=r"matplotlib is needed for the pictures of the page: pip install '\.\[picture\]'"):
        sample.main()


@pytest.mark.parametrize(("text", "says"), [
    (None, "No such file or directory"),
    ("# A page\n", "the mark <!-- side by side --> is expected once, on a line of its own"),
    ("<!-- side by side -->\n" * 2, "the mark <!-- side by side --> is expected once"),
])
def test_a_page_that_takes_no_chapters_is_refused_at_once(
    sample: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, says: str
) -> None:
    page = tmp_path / "page.md"
    if text is not None:
        page.write_text(text)
    monkeypatch.setattr(sys, "argv", ["two_chips.py", "--page", str(page)])
    with pytest.raises(SystemExit, match=f"two_chips: {page}: {says}"):
        sample.main()


def test_what_is_no_model_is_told_with_its_name(sample: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(flaot.FlaotError, match=r"none\.onnx: cannot be read: No such file"):
        sample.batch(tmp_path / "none.onnx")
    with pytest.raises(flaot.FlaotError, match=r"text\.onnx: .*not an ONNX model"):
        sample.batch(tmp_path / "text.onnx")


@pytest.mark.slow
def test_whole_story(model: Path, encoder: Path) -> None:
    """Sizes are those of the page; the toy chip is built and caught."""
    library()
    line = [sys.executable, SAMPLES / "two_chips.py", "--model", model, "--encoder", encoder]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "LIES: memory.on_chip_cache.size_kb (toy_npu.hcd:21): declared 512, measured 256" in done.stdout
    assert "TOY_E_UNALIGNED (-7)" in done.stdout and "state memory_alignment_bytes: 128" in done.stdout
    assert "holds: constraints.memory_alignment_bytes (toy_npu_128.hcd:25): 128" in done.stdout
    assert "TOY_E_SRAM (-6)" in done.stdout and "(exit code 9)" in done.stdout

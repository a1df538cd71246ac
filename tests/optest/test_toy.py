"""The toy chip of samples/vendor_adapter: as its descriptor says unless TOY_LIE makes it lie, and then caught by name."""

from __future__ import annotations

import json

import pytest

from flaot.hcd.loader import load_file
from flaot.optest.probes import run_probes
from tests.cli.conftest import flaot
from tests.samples.toy import HCD, LIES, library

CAUGHT = {
    "bfloat16_is_float16": ("tensor.supported_dtypes", ("tensor:",), "bfloat16", "float16"),
    "alignment": ("constraints.memory_alignment_bytes", ("constraints:",), "64", "128"),
    "layout": ("compute_units.fp16.supported_layouts", ("  fp16:", "supported_layouts"), "NHWC, NCHW", "NCHW"),
    "rank": ("tensor.max_rank", ("tensor:",), "5", "4"),
    "memory": ("memory.on_chip_cache.size_kb", ("on_chip_cache:",), "512", "256"),
    "rounding": ("numerics.rounding", ("numerics:",), "half_to_even", "toward_zero"),
}


@pytest.fixture(scope="module")
def adapter() -> str:
    return library()


def line_of(*words: str) -> str:
    """Where the descriptor states a key."""
    lines = HCD.read_text().splitlines()
    begin = next(i for i, text in enumerate(lines) if words[0] in text)
    return f"toy_npu.hcd:{next(i for i, text in enumerate(lines[begin:], begin + 1) if words[-1] in text)}"


def test_the_honest_chip_is_believed(adapter: str) -> None:
    found = run_probes(load_file(HCD), adapter)
    assert [f.sentence for f in found if f.verdict == "lies"] == []
    assert {f.declared for f in found if f.key == "tensor.supported_dtypes" and f.verdict == "holds"} == {"float16", "bfloat16"}


@pytest.mark.parametrize("lie", LIES)
def test_each_lie_is_caught_and_named(adapter: str, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key, place, declared, measured = CAUGHT[lie]
    monkeypatch.setenv("TOY_LIE", lie)
    found = [f for f in run_probes(load_file(HCD), adapter) if f.verdict == "lies"]
    first = found[0]
    assert (first.key, first.origin, first.declared, first.measured) == (key, line_of(*place), declared, measured)
    assert first.hint and "\n" not in first.sentence
    assert {f.probe for f in found} == {first.probe}


def test_the_command_names_the_adapter_and_the_lie(adapter: str) -> None:
    done = flaot("optest", "--hcd", HCD, "--adapter", adapter, "--probes", "--json", env={"TOY_LIE": "rank"})
    held = json.loads(done.out)
    assert done.code == 1 and held["device"].startswith("adapter toy_adapter 1.0.0") and held["exit_code"] == 1
    assert [p["key"] for p in held["probes"] if p["verdict"] == "lies"] == ["tensor.max_rank"]


@pytest.mark.slow
def test_cases_run_on_the_adapter(adapter: str) -> None:
    line = ("--op", "Conv", "--op", "Add", "--op", "MatMul", "--op", "MaxPool", "--quick", "--json")
    done = flaot("optest", "--hcd", HCD, "--adapter", adapter, *line)
    held = json.loads(done.out)
    assert done.code == 0, held["operators"]
    assert {r["operator"]: r["verdict"] for r in held["operators"]} == dict.fromkeys(("Conv", "Add", "MatMul", "MaxPool"), "kept")


def test_an_adapter_of_another_chip(adapter: str) -> None:
    done = flaot("optest", "--hcd", "npu_v3", "--adapter", adapter)
    assert done.code == 6 and "the adapter serves device type 'toy_npu', chip NPU-V3 of the plan is 'npu_v3'" in done.err
    assert flaot("optest", "--hcd", HCD, "--adapter", adapter, "--probes").out.startswith("Toy-NPU on adapter toy_adapter 1.0.0")
    assert flaot("optest", "--hcd", HCD, "--adapter", "simulator", "--probes").out.startswith("Toy-NPU on the simulator")

"""The toy chip of samples/vendor_adapter: as its descriptor says unless TOY_LIE makes it lie, and then caught by name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flaot.hcd.loader import load_file
from flaot.optest.probes import run_probes
from tests.cli.conftest import flaot

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "vendor_adapter"
DESCRIPTOR = SAMPLE / "toy_npu.hcd"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None or shutil.which("make") is None, reason="needs a C compiler and make"),
    pytest.mark.skipif(not DESCRIPTOR.exists(), reason="the sample is not there"),
]


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> str:
    build = tmp_path_factory.mktemp("toy")
    line = ["make", "-s", f"BUILD={build}", f"PYTHON={sys.executable}", f"FLAOT={ROOT / 'flaot'}"]
    subprocess.run(line, cwd=SAMPLE, check=True, capture_output=True)
    return str(build / "libtoy_adapter.so")


def line_of(*words: str) -> str:
    """Where the descriptor states a key."""
    lines = DESCRIPTOR.read_text().splitlines()
    begin = next(i for i, text in enumerate(lines) if words[0] in text)
    return f"toy_npu.hcd:{next(i for i, text in enumerate(lines[begin:], begin + 1) if words[-1] in text)}"


def test_the_honest_chip_is_believed(adapter: str) -> None:
    found = run_probes(load_file(DESCRIPTOR), adapter)
    assert [f.sentence for f in found if f.verdict == "lies"] == []
    assert {f.declared for f in found if f.key == "tensor.supported_dtypes" and f.verdict == "holds"} == {"float16", "bfloat16"}


LIES = {
    "bfloat16_is_float16": ("tensor.supported_dtypes", ("tensor:",), "bfloat16", "float16"),
    "alignment": ("constraints.memory_alignment_bytes", ("constraints:",), "64", "128"),
    "layout": ("compute_units.fp16.supported_layouts", ("  fp16:", "supported_layouts"), "NHWC, NCHW", "NCHW"),
    "rank": ("tensor.max_rank", ("tensor:",), "5", "4"),
    "memory": ("memory.on_chip_cache.size_kb", ("on_chip_cache:",), "512", "256"),
    "rounding": ("numerics.rounding", ("numerics:",), "half_to_even", "toward_zero"),
}


@pytest.mark.parametrize("lie", list(LIES))
def test_each_lie_is_caught_and_named(adapter: str, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key, place, declared, measured = LIES[lie]
    monkeypatch.setenv("TOY_LIE", lie)
    found = [f for f in run_probes(load_file(DESCRIPTOR), adapter) if f.verdict == "lies"]
    first = found[0]
    assert (first.key, first.origin, first.declared, first.measured) == (key, line_of(*place), declared, measured)
    assert first.hint and "\n" not in first.sentence
    assert {f.probe for f in found} == {first.probe}


def test_the_command_names_the_adapter_and_the_lie(adapter: str) -> None:
    done = flaot("optest", "--hcd", DESCRIPTOR, "--adapter", adapter, "--probes", "--json", env={"TOY_LIE": "rank"})
    held = json.loads(done.out)
    assert done.code == 1 and held["device"].startswith("adapter toy_adapter 1.0.0") and held["exit_code"] == 1
    assert [p["key"] for p in held["probes"] if p["verdict"] == "lies"] == ["tensor.max_rank"]


def test_cases_run_on_the_adapter(adapter: str) -> None:
    line = ("--op", "Conv", "--op", "Add", "--op", "MatMul", "--op", "MaxPool", "--quick", "--json")
    done = flaot("optest", "--hcd", DESCRIPTOR, "--adapter", adapter, *line)
    held = json.loads(done.out)
    assert done.code == 0, held["operators"]
    assert {r["operator"]: r["verdict"] for r in held["operators"]} == dict.fromkeys(("Conv", "Add", "MatMul", "MaxPool"), "kept")

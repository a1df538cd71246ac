"""The toy chip of samples/vendor_adapter: as its descriptor says unless TOY_LIE makes it lie, and then caught by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from flaot.errors import DeviceError
from flaot.hcd import Hcd
from flaot.hcd.loader import load_file
from flaot.optest.probes import run_probes
from flaot.optest.probes.bench import Bench
from flaot.optest.suite import plan_cases, run_suite
from flaot.plan.program import Chip
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


REFUSED = {
    "memory.on_chip_cache.size_kb": ("size_kb: 512", "size_kb: 1024", "1024", "512", "state on_chip_cache.size_kb: 512"),
    "tensor.max_rank": ("max_rank: 5", "max_rank: 7", "7", "5", "state max_rank: 5"),
    "dma.channels": ("channels: 2", "channels: 40", "40", "29", "state dma.channels: 29"),
    "numerics.rounding": ("rounding: half_to_even", "rounding: floor", "floor", "half_to_even", "state numerics.rounding: half_to_even"),
    "constraints.memory_alignment_bytes": (
        "memory_alignment_bytes: 64", "memory_alignment_bytes: 32", "32", "64", "state memory_alignment_bytes: 64",
    ),
}
"""What the adapter does not open for, as the descriptor states it and states too much; declared, measured, way out. 32 queues of the SDK
are 29 DMA channels, two units and the link."""


def overstated(folder: Path, keys: Iterable[str]) -> Hcd:
    text = HCD.read_text()
    for key in keys:
        assert text.count(REFUSED[key][0]) == 1
        text = text.replace(*REFUSED[key][:2])
    (folder / "toy_npu.hcd").write_text(text)
    return load_file(folder / "toy_npu.hcd")


@pytest.mark.parametrize("keys", [*((key,) for key in REFUSED), tuple(REFUSED)])
def test_what_the_chip_does_not_open_for_is_named(adapter: str, keys: tuple[str, ...], tmp_path: Path) -> None:
    found = run_probes(overstated(tmp_path, keys), adapter)
    lies = {f.key: (f.declared, f.measured, f.hint) for f in found if f.verdict == "lies"}
    assert lies == {key: REFUSED[key][2:] for key in keys}
    assert len([f for f in found if f.key in keys]) == len(keys)
    assert {f.declared for f in found if f.key == "tensor.supported_dtypes" and f.verdict == "holds"} == {"float16", "bfloat16"}


def test_a_device_that_refuses_whatever_plans_state() -> None:
    class Refusing(Bench):
        def opens(self, chip: Chip) -> str:
            return "no plan suits it"

    hcd = load_file(HCD)
    (first, *_) = found = run_probes(hcd, bench=Refusing(hcd))
    assert (first.key, first.declared, first.measured) == ("chip.device_type", "toy_npu", "a device that does not open")
    assert first.text == "no plan suits it" and [f.verdict for f in found] == ["lies", "holds"]


GONE = {
    "TOY_E_BUSY": (8, "toy_open: TOY_E_BUSY (-1); see to the device and run again"),
    "TOY_E_CONFIG": (8, "TOY_E_CONFIG (-2): as TOY_FAULT asks for; see to the device and run again"),
    "TOY_E_LOST": (8, "failed on the chip: TOY_E_LOST (-13): as TOY_FAULT asks for; see to the device and run again"),
    "TOY_E_DRAM": (9, "toy_memory_create: TOY_E_DRAM (-5): 8192 bytes wanted, 0 are left; see to the device and run again"),
    "TOY_E_SRAM": (9, "toy_memory_create: TOY_E_SRAM (-6): 1 bytes wanted, 0 are left; see to the device and run again"),
}
"""Errors of the SDK for which no descriptor is to blame; exit code and what is said."""


@pytest.mark.parametrize("fault", GONE)
def test_a_device_that_is_not_there_is_no_lie(adapter: str, fault: str, tmp_path: Path) -> None:
    code, says = GONE[fault]
    ratchet, page = tmp_path / "toy.ratchet", tmp_path / "toy.md"
    was = '{"format": 1, "chip": "Toy-NPU", "pass": {}, "others": {}, "probes": {}}'
    ratchet.write_text(was)
    for part in (("--probes",), ("--op", "Relu", "--case", "typical/*")):
        line = ("--hcd", HCD, "--adapter", adapter, *part, "--report", page, "--ratchet", ratchet, "--update-ratchet")
        done = flaot("optest", *line, env={"TOY_FAULT": fault})
        done.failed(code, "Toy-NPU: the device does not move a single element: ")
        assert says in done.err and done.out == "" and not page.exists() and ratchet.read_text() == was


def test_a_device_that_is_lost_on_the_way(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def begin(name: str) -> None:
        seen.append(name)
        if name == "probe: layouts":
            monkeypatch.setenv("TOY_FAULT", "TOY_E_LOST")

    with pytest.raises(DeviceError, match=r"does not move a single element: step 1 failed on the chip: TOY_E_LOST \(-13\)"):
        run_probes(load_file(HCD), adapter, begin)
    assert seen[-2:] == ["probe: accumulators", "probe: layouts"]


def test_cases_end_where_the_device_is_lost(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hcd, seen = load_file(HCD), []
    cases = plan_cases(hcd, ("Relu",), slow=False)[0]

    def begin(name: str) -> None:
        seen.append(name)
        if len(seen) == 2:
            monkeypatch.setenv("TOY_FAULT", "TOY_E_BUSY")

    with pytest.raises(DeviceError, match=r"toy_open: TOY_E_BUSY \(-1\)"):
        run_suite(hcd, adapter, cases, (), None, begin)
    assert seen == [c.id for c in cases[:2]]


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

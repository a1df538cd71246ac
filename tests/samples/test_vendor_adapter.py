"""The toy chip of samples/vendor_adapter: real plans run on it by its adapter, and every way to fail is told in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import flaot
from flaot.errors import DeviceError, FlaotError, LimitError, PlanError, RunInputError, UnsupportedError
from flaot.hcd import load_hcd
from flaot.mapping.policy import policy_of
from flaot.runtime.adapter import STATED
from flaot.runtime.session import Session
from flaot.verify.check import verify
from tests.models.manifest import folder, models
from tests.samples.toy import FOLDER, HCD, LIES, ROOT, library

DIGITS = ROOT / "samples" / "mnist" / "digits.onnx"
IMAGE = {"image": np.random.default_rng(0).random((1, 1, 28, 28), np.float32)}


def plan_for(hcd: Path = HCD, model: Path = DIGITS, shapes: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    """A plan that uses the chip wherever it can: nodes too large for it are sent to the host, as the message about them says."""
    held, routes = load_hcd(hcd), list[str]()
    while True:
        policy = policy_of(held, fallback="allow", prefer="toy_npu", routes=routes)
        try:
            return flaot.compile(model, held, flaot.Options(shapes=shapes, policy=policy)).plan
        except UnsupportedError as e:
            node = e.where.split("node '")[-1].rstrip("'")
            if "bytes of on-chip memory" not in e.what or f"{node}=host" in routes:
                raise
            routes.append(f"{node}=host")


@pytest.fixture(scope="module")
def digits() -> bytes:
    return plan_for()


def scores(plan: bytes, adapter: str | None) -> np.ndarray:
    with Session(plan, adapter=adapter) as session:
        (y,) = session.run(None, IMAGE)
    return y


def test_digits_are_read_as_onnxruntime_reads_them(digits: bytes) -> None:
    result = verify(digits, str(DIGITS), IMAGE, layers=True, adapter=library())
    assert result.ok and len(result.layers) >= 7


def test_the_chip_gives_the_bits_of_the_simulator(digits: bytes) -> None:
    assert scores(digits, library()).tobytes() == scores(digits, "simulator").tobytes()


@pytest.mark.parametrize("transfers", ["synchronous", "zero_copy"])
def test_it_counts_transfers_as_the_simulator_does(tmp_path: Path, transfers: str) -> None:
    hcd, found = tmp_path / "toy.hcd", []
    hcd.write_text(f"{HCD.read_text()}host: {{transfers: {transfers}}}\n")
    plan = plan_for(hcd)
    for adapter in (library(), "simulator"):
        with Session(plan, adapter=adapter) as session:
            session.run(None, IMAGE)
            (c,) = session.counters()
            found.append((c.copies, c.bytes_to_device, c.bytes_from_device))
    assert found == [(2, 0, 0) if transfers == "zero_copy" else (2, 2 * 28 * 28, 2 * 10)] * 2


def test_the_adapter_is_short() -> None:
    assert len((FOLDER / "toy_adapter.c").read_text().splitlines()) < 500


def test_runs_after_one_that_failed_are_right(digits: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with Session(digits, adapter=library()) as session:
        for _ in range(3):
            runner = session._take()
            runner.bind(IMAGE)
            assert runner.begin() == 0 and runner.steps(0, session.step_count // 2) == 0
            session._give_back(runner)
            (y,) = session.run(None, IMAGE)
            assert y.tobytes() == scores(digits, "simulator").tobytes()


FAULTS: list[tuple[str, type[FlaotError], str]] = [
    ("TOY_E_BUSY", DeviceError, "chip Toy-NPU: toy_open: TOY_E_BUSY (-1)"),
    ("TOY_E_ARGUMENT", DeviceError, "TOY_E_ARGUMENT (-3): as TOY_FAULT asks for; --adapter simulator runs the plan without the chip"),
    ("TOY_E_ENTRY", DeviceError, "TOY_E_ENTRY (-4): as TOY_FAULT asks for; --adapter simulator runs the plan without the chip"),
    ("TOY_E_DRAM", LimitError, "toy_memory_create: TOY_E_DRAM (-5): "),
    ("TOY_E_SRAM", LimitError, "toy_memory_create: TOY_E_SRAM (-6): "),
    ("TOY_E_UNALIGNED", PlanError, "TOY_E_UNALIGNED (-7): as TOY_FAULT asks for; compile the model again for this chip"),
    ("TOY_E_BOUNDS", PlanError, "TOY_E_BOUNDS (-8): "),
    ("TOY_E_AXES", PlanError, "TOY_E_AXES (-9): "),
    ("TOY_E_FORMAT", PlanError, "TOY_E_FORMAT (-10): "),
    ("TOY_E_ORDER", PlanError, "TOY_E_ORDER (-11): "),
    ("TOY_E_INDEX", RunInputError, "failed on the chip: TOY_E_INDEX (-12): as TOY_FAULT asks for"),
    ("TOY_E_LOST", DeviceError, "failed on the chip: TOY_E_LOST (-13): as TOY_FAULT asks for; --adapter simulator"),
]
CODES = {DeviceError: 8, LimitError: 9, PlanError: 6, RunInputError: 7}


@pytest.mark.parametrize(("fault", "kind", "says"), FAULTS, ids=[f for f, _, _ in FAULTS])
def test_every_error_of_the_sdk_is_told(
    digits: bytes, monkeypatch: pytest.MonkeyPatch, fault: str, kind: type[FlaotError], says: str
) -> None:
    monkeypatch.setenv("TOY_FAULT", fault)
    with pytest.raises(FlaotError) as e:
        scores(digits, library())
    assert type(e.value) is kind and e.value.exit_code == CODES[kind]
    assert says in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_starts(digits: bytes, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    """Whether it is caught is the operator suite's affair; a model may well not notice, or stop at a limit."""
    monkeypatch.setenv("TOY_LIE", lie)
    try:
        found = scores(digits, library())
    except PlanError as e:
        assert lie == "alignment" and "a multiple of 128 is needed" in e.what
    else:
        assert found.shape == (1, 10) and np.isfinite(found).all()


def test_rounding_toward_zero_changes_results(digits: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    right = scores(digits, library())
    monkeypatch.setenv("TOY_LIE", "rounding")
    assert not np.array_equal(scores(digits, library()), right)


def test_a_lie_that_does_not_exist(digits: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_LIE", "temperature")
    with pytest.raises(DeviceError, match=r"^chip Toy-NPU: toy_open: TOY_E_CONFIG \(-2\); --adapter simulator runs the plan without"):
        scores(digits, library())


@pytest.mark.parametrize(("old", "new", "kind", "says"), [
    ("memory_alignment_bytes: 64", "memory_alignment_bytes: 32", PlanError, "an alignment of 32, the Toy-NPU has 64"),
    ("max_rank: 5", "max_rank: 6", PlanError, "a highest rank of 6, the Toy-NPU has 5"),
    ("size_kb: 512", "size_kb: 1024", LimitError, "bytes of on-chip memory: 1048576, the Toy-NPU has 524288"),
    ("rounding: half_to_even", "rounding: floor", DeviceError, "a rounding of kind 3, the Toy-NPU has 0"),
])
def test_a_plan_for_more_than_the_chip_has(tmp_path: Path, old: str, new: str, kind: type[FlaotError], says: str) -> None:
    text = HCD.read_text()
    assert old in text
    changed = tmp_path / "changed.hcd"
    changed.write_text(text.replace(old, new))
    with pytest.raises(kind) as e:
        Session(plan_for(changed), adapter=library())
    way_out = "--adapter simulator runs the plan without the chip" if kind is DeviceError else STATED
    assert str(e.value) == f"chip Toy-NPU: the plan was compiled for {says}; {way_out}"


def test_a_plan_for_another_device_type() -> None:
    with pytest.raises(PlanError, match="serves device type 'toy_npu', chip NPU-V3 of the plan is 'npu_v3'; .*--adapter simulator"):
        Session(flaot.compile(DIGITS, "npu_v3").plan, adapter=library())


def test_an_adapter_whose_sdk_is_missing(digits: bytes, tmp_path: Path) -> None:
    done = run(digits, tmp_path, dict(os.environ), "--adapter", path := shutil.copy(library(), tmp_path))
    assert done.returncode == 8 and done.stderr == (
        f"flaot: error: {path}: the adapter does not load: libtoysdk.so: cannot open shared object file: No such file or directory; "
        "have LD_LIBRARY_PATH or the adapter's rpath name the folder of what it needs; 'ldd' lists that\n"
    )


# -- installed packages -----------------------------------------------------------------------------------------------------------

Install = Callable[..., dict[str, str]]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Makes a package with one entry point as pip leaves it; returns an environment that finds all that were made."""

    def done(body: str, name: str = "flaot-toy", device_type: str = "toy_npu") -> dict[str, str]:
        module = name.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(f"def library():\n    {body}\n")
        info = tmp_path / f"{module}-1.0.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
        (info / "entry_points.txt").write_text(f"[flaot.adapters]\n{device_type} = {module}:library\n")
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}

    return done


def run(digits: bytes, tmp_path: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    plan = tmp_path / "digits.flp"
    plan.write_bytes(digits)
    return subprocess.run([sys.executable, "-m", "flaot", "run", plan, *words], env=environment, capture_output=True, text=True)


def test_an_installed_adapter_is_found_by_its_device_type(digits: bytes, install: Install, tmp_path: Path) -> None:
    environment = install(f"return {library()!r}")
    done = run(digits, tmp_path, environment)
    assert done.returncode == 0 and "Toy-NPU was run by toy_adapter 1.0.0, SDK 3.2.1 (package flaot-toy 1.0.0)" in done.stdout
    done = run(digits, tmp_path, environment, "--adapter", "simulator")
    assert done.returncode == 0 and "Toy-NPU was simulated" in done.stdout
    done = run(digits, tmp_path, environment, "--adapter", library())
    assert done.returncode == 0 and f"({library()})" in done.stdout


def test_without_an_adapter_the_report_says_simulated(digits: bytes, install: Install, tmp_path: Path) -> None:
    done = run(digits, tmp_path, install("return 'none.so'", device_type="npu_v9"))
    assert done.returncode == 0
    assert "Toy-NPU was simulated: no adapter for device type toy_npu was named or is installed\n" in done.stdout


@pytest.mark.parametrize(("body", "says"), [
    ("return '/nowhere/libtoy.so'", "package flaot-toy 1.0.0: /nowhere/libtoy.so: the adapter does not load: no such file"),
    ("raise SystemExit(3)", "package flaot-toy 1.0.0: its adapter for device type 'toy_npu' is not found: SystemExit: 3"),
    ("return 7", "package flaot-toy 1.0.0: 'flaot_toy:library' returns an object of type int; the path of a library is wanted"),
    ("return ''", "package flaot-toy 1.0.0: 'flaot_toy:library' returns an empty path; the path of a library is wanted"),
    ("raise ImportError('no SDK')", "package flaot-toy 1.0.0: its adapter for device type 'toy_npu' is not found: ImportError: no SDK"),
])
def test_an_installed_adapter_that_does_not_work(digits: bytes, install: Install, tmp_path: Path, body: str, says: str) -> None:
    done = run(digits, tmp_path, install(body))
    assert done.returncode == 8 and says in done.stderr and done.stderr.count("\n") == 1
    assert done.stderr.endswith("; reinstall or repair it, or use --adapter simulator\n")


def test_the_device_type_of_an_installed_adapter_is_no_library(digits: bytes, install: Install, tmp_path: Path) -> None:
    done = run(digits, tmp_path, install(f"return {library()!r}"), "--adapter", "toy_npu")
    assert done.returncode == 8 and done.stderr == (
        "flaot: error: toy_npu: the adapter does not load: no such file; "
        "package flaot-toy 1.0.0 serves device type 'toy_npu' where --adapter is left out\n"
    )


def test_a_package_for_another_chip_than_its_entry_point_says(install: Install, tmp_path: Path) -> None:
    plan = flaot.compile(DIGITS, "npu_v3").plan
    done = run(plan, tmp_path, install(f"return {library()!r}", device_type="npu_v3"))
    says = f"package flaot-toy 1.0.0: {library()}: the adapter serves device type 'toy_npu', chip NPU-V3 of the plan is 'npu_v3'; use the"
    assert done.returncode == 6 and says in done.stderr


def test_two_packages_for_one_device_type(digits: bytes, install: Install, tmp_path: Path) -> None:
    install("return ''")
    done = run(digits, tmp_path, install("return ''", "other-toy"))
    assert done.returncode == 8
    assert "2 packages offer adapters for device type 'toy_npu': flaot-toy 1.0.0, other-toy 1.0.0; uninstall all but one" in done.stderr


@pytest.mark.slow
def test_the_package_installs(digits: bytes, tmp_path: Path) -> None:
    """``pip install samples/vendor_adapter`` builds both libraries by CMake, and the adapter is found."""
    place = tmp_path / "site"
    settings = [f"--config-settings={s}" for s in (f"build-dir={tmp_path / 'build'}", f"cmake.define.FLAOT={ROOT / 'flaot'}")]
    subprocess.run([sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", place, *settings, FOLDER], check=True)
    done = run(digits, tmp_path, {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(place)])})
    assert done.returncode == 0 and "(package flaot-toy 1.0.0)" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n, m in models().items() if m.supported) if folder() is not None else [])
def test_real_models(name: str) -> None:
    """Every model runs on the toy chip, the host taking what it lacks, within the tolerance of float16."""
    m = models()[name]
    assert verify(plan_for(HCD, m.path, m.shapes), str(m.path), m.feeds(), adapter=library()).ok

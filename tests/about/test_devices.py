"""flaot devices: the host, the simulator, adapters of packages and of files, and those that cannot be used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flaot.runtime.library import library_path
from tests.cli.conftest import flaot
from tests.samples.toy import ROOT, library


def package(folder: Path, body: str, device_type: str) -> dict[str, str]:
    """An environment with an installed package ``some-chip`` 2.5."""
    (folder / "some_chip.py").write_text(f"def library():\n    {body}\n")
    info = folder / "some_chip-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-chip\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(f"[flaot.adapters]\n{device_type} = some_chip:library\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def test_the_host_and_the_simulator_are_always_there() -> None:
    held = json.loads(flaot("devices", "--json").out)["devices"]
    host, simulator = held[:2]
    assert host["name"] == "host" and host["device_types"] == ["cpu"] and "kernels generic" in host["detail"]
    assert (simulator["name"], simulator["device_types"], simulator["adapter"], simulator["abi"]) == ("simulator", [], "npu_sim", 2)


def test_an_adapter_by_its_file() -> None:
    done = flaot("devices", "--adapter", library())
    assert done.code == 0 and "toy_npu" in done.out and "1.0.0, SDK 3.2.1" in done.out and library() in done.out


def test_the_simulator_by_its_name_is_listed_once() -> None:
    assert flaot("devices", "--adapter", "simulator").out == flaot("devices").out


def test_an_adapter_by_its_package(tmp_path: Path) -> None:
    environment = package(tmp_path, f"return {library()!r}", "toy_npu")
    (found,) = json.loads(flaot("devices", "--json", env=environment).out)["devices"][2:]
    assert (found["name"], found["adapter"], found["abi"], found["source"]) == ("toy_npu", "toy_adapter", 2, "package some-chip 2.5")
    assert found["problem"] == ""
    assert "adapter of toy_npu" in flaot("doctor", env=environment).out


@pytest.mark.parametrize(("body", "says"), [
    ("return 'none.so'", "some-chip 2.5: none.so: the adapter does not load: no such file"),
    ("raise OSError('no licence')", "is not found: OSError: no licence"),
    (f"return {library_path()!r}", "has no function flaot_adapter; it is no adapter"),
])
def test_a_package_that_does_not_work_is_listed_with_its_problem(tmp_path: Path, body: str, says: str) -> None:
    environment = package(tmp_path, body, "toy_npu")
    done = flaot("devices", env=environment)
    assert done.code == 0 and "cannot be used" in done.out
    assert done.err.startswith("flaot: warning: package some-chip 2.5: ") and says in done.err
    flaot("doctor", env=environment).failed(1, "not supported: adapter of toy_npu")


def test_a_package_that_promises_another_device_type(tmp_path: Path) -> None:
    done = flaot("devices", env=package(tmp_path, f"return {library()!r}", "npu_v3"))
    assert "it serves device type 'toy_npu', its package says 'npu_v3'; the entry point's name has to be 'toy_npu'" in done.err


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_an_adapter_of_another_abi(tmp_path: Path) -> None:
    source, out = tmp_path / "old.c", tmp_path / "old.so"
    source.write_text("const unsigned *flaot_adapter(void) { static const unsigned abi[64] = {1}; return abi; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", out, source], check=True)
    done = flaot("devices", "--adapter", out)
    assert done.code == 0 and f"{out}: adapter ABI 1, this flaot speaks 2" in done.err and "cannot be used" in done.out


def test_a_file_that_is_no_adapter(tmp_path: Path) -> None:
    flaot("devices", "--adapter", tmp_path / "none.so").failed(8, "the adapter does not load")

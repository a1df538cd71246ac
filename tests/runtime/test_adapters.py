"""Adapters from a vendor's library: which one runs a chip, and what is said when it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flaot.errors import DependencyError, DeviceError, FlaotError, PlanError, UsageError
from flaot.hcd import board_of
from flaot.mapping.policy import policy_of
from flaot.pipeline import Options, compile_model
from flaot.plan.chips import check_addresses
from flaot.plan.fields import Section
from flaot.plan.read import read_plan
from flaot.runtime.adapter import NO_CHIP
from flaot.runtime.lean import LeanSession
from flaot.runtime.library import library_path
from flaot.runtime.loading import NAMES
from flaot.runtime.npy import Array
from flaot.runtime.session import Session
from tests.mapping.nets import conv
from tests.plan.devices import conv_on_chip
from tests.plan.programs import plan_of, two_softmaxes
from tests.runtime.test_device_refusals import changed, tensor_of

ROOT = Path(__file__).parents[2]
X = np.arange(9, dtype=np.float16).reshape(1, 1, 3, 3)
Build = Callable[..., str]

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture
def vendor(tmp_path: Path) -> Build:
    def build(device_type: str = "npu_v3", abi: int = 2, fail: int = 0) -> str:
        out, native = tmp_path / f"{device_type}{abi}{fail}.so", Path(library_path()).resolve()
        includes = [f"-I{ROOT / 'flaot' / 'runtime' / 'csrc' / 'include'}"]
        flags = [f'-DTYPE="{device_type}"', f"-DABI={abi}", f"-DFAIL={fail}", "-shared", "-fPIC", "-std=c99"]
        source = ROOT / "tests" / "runtime" / "adapter" / "vendor.c"
        subprocess.run(["cc", *flags, *includes, "-o", out, source, native, f"-Wl,-rpath,{native.parent}"], check=True)
        return str(out)

    return build


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "chip.flp"
    path.write_bytes(plan_of(conv_on_chip()))
    return str(path)


def both(plan: str, adapter: str, kind: type[FlaotError] = PlanError) -> list[str]:
    """What the session and the lean one say; both raise the same."""
    said = []
    for open in (lambda: Session(plan, adapter=adapter), lambda: LeanSession(plan, 1, (adapter,))):
        with pytest.raises(kind) as e:
            open()
        assert type(e.value) is kind and "\n" not in str(e.value)
        said.append(str(e.value))
    return said


@needs_compiler
def test_the_adapter_of_the_chip_runs_it(vendor: Build, plan: str) -> None:
    library = vendor()
    (y,) = Session(plan, adapter=library).run({"x": X})
    assert y.ravel().tolist() == [8, 12, 20, 24]
    results, _, _ = LeanSession(plan, 1, (library,)).run({"x": Array("float16", X.shape, X.tobytes())})
    assert np.frombuffer(results["y"].data, np.float16).tolist() == [8, 12, 20, 24]


@needs_compiler
def test_an_adapter_of_another_device_type(vendor: Build, plan: str) -> None:
    for said in both(plan, vendor("npu")):
        assert "the adapter serves device type 'npu', chip NPU-V3 of the plan is 'npu_v3'; use the adapter of that chip" in said


@needs_compiler
def test_an_adapter_of_another_abi(vendor: Build, plan: str) -> None:
    for said in both(plan, vendor(abi=1)):
        assert "adapter ABI 1, this flaot speaks 2" in said


@needs_compiler
def test_an_adapter_that_refuses_the_chip(vendor: Build, plan: str) -> None:
    for said in both(plan, vendor(fail=1), DeviceError):
        assert said == "chip NPU-V3: the chip failed; --adapter simulator runs the plan without the chip"


@needs_compiler
def test_several_adapters_each_for_the_chips_of_its_device_type(vendor: Build, tmp_path: Path) -> None:
    path, board = tmp_path / "two.flp", board_of(["npu_v3", "npu_v2"])
    options = Options(policy=policy_of(board, routes=["*=npu_v3", "relu1=npu_v2"]))
    path.write_bytes(compile_model(conv(), board, options).plan)
    one, two, x = vendor("npu_v3"), vendor("npu"), np.ones((1, 3, 16, 16), np.float32)
    (want,) = Session(str(path), adapter="simulator").run({"x": x})
    for given in ([one, two], [two, one], [one], [two, "simulator"]):
        assert np.array_equal(Session(str(path), adapter=given).run({"x": x})[0], want)
        ran = [a.source for a in LeanSession(str(path), 1, given).adapters]
        assert ran == [one if one in given else "simulator", two if two in given else "simulator"]
    with pytest.raises(DependencyError, match=r"adapters .* and .* both serve device type 'npu'; name one --adapter"):
        Session(str(path), adapter=[two, vendor("npu", fail=1)])
    with pytest.raises(PlanError, match="the adapter serves device type 'dsp', chip NPU-V3 of the plan is 'npu_v3'"):
        Session(str(path), adapter=[one, vendor("dsp")])


def test_libraries_that_are_no_adapters(plan: str, tmp_path: Path) -> None:
    for library, says in ((str(tmp_path / "none.so"), "does not load"), (library_path(), "has no function flaot_adapter")):
        for open in (lambda p=library: Session(plan, adapter=p), lambda p=library: LeanSession(plan, 1, (p,))):
            with pytest.raises(DependencyError, match=says) as e:
                open()
            assert e.value.exit_code == 8


def test_a_library_of_the_current_folder_needs_no_slash(plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(library_path(), tmp_path / "libhere.so")
    monkeypatch.chdir(tmp_path)
    for said in both(plan, "libhere.so", DependencyError):
        assert said.startswith("libhere.so: the library has no function flaot_adapter; it is no adapter; name the adapter's library")
    code = "from flaot.runtime.library import functions; functions()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLAOT_LIBRARY": "libhere.so"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(("given", "says"), [
    (".", ".: is a directory, no library of an adapter; give the path of a library such as ./libmy_adapter.so, or 'simulator'"),
    ("simulatr", "simulatr: the adapter does not load: no such file; did you mean 'simulator'?"),
    ("Simulator", "Simulator: the adapter does not load: no such file; did you mean 'simulator'?"),
    ("libnear.so", "libnear.so: the adapter does not load: no such file; did you mean 'libnears.so'?"),
    ("./libnear.so", "./libnear.so: the adapter does not load: no such file; did you mean './libnears.so'?"),
    ("/nowhere/x.so", f"/nowhere/x.so: the adapter does not load: no such file; {NAMES}"),
    ("libnears.so", "libnears.so: the adapter does not load: file too short; a shared library (.so) for this machine is expected"),
    ("a\0b", f"a\\x00b: the adapter does not load: embedded null byte; {NAMES}"),
])  # fmt: skip
def test_what_is_said_of_what_does_not_load(
    plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("libnears.so").write_bytes(b"")
    assert both(plan, given, DependencyError) == [says] * 2


def test_an_empty_name_is_no_adapter(plan: str) -> None:
    for said in both(plan, "", UsageError):
        assert said.startswith("an empty name where an adapter's library is expected; give the path of a library such as")


def test_the_command_line_takes_an_adapter(plan: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flaot", "run", plan]
    assert subprocess.run(command, capture_output=True).returncode == 0
    done = subprocess.run([*command, "--adapter", str(tmp_path / "none.so")], capture_output=True, text=True)
    assert done.returncode == 8 and "none.so: the adapter does not load: no such file; " in done.stderr and done.stderr.count("\n") == 1


@needs_compiler
def test_plans_for_the_host_have_no_chip_for_an_adapter(vendor: Build, tmp_path: Path) -> None:
    path = tmp_path / "host.flp"
    path.write_bytes(plan_of(two_softmaxes()))
    for said in both(str(path), library := vendor()):
        assert said == f"{library}: the plan runs on the host alone and has no chip for the adapter; {NO_CHIP}"
    Session(str(path), adapter="simulator").close()


def test_plans_for_the_host_load_no_adapter_code(tmp_path: Path) -> None:
    path = tmp_path / "host.flp"
    path.write_bytes(plan_of(two_softmaxes()))
    code = "import sys, flaot.runtime.lean as l; l.LeanSession(sys.argv[1], 1); sys.exit('flaot.runtime.adapter' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, path], cwd=ROOT).returncode == 0


def test_wrong_addresses_are_found_without_the_native_library() -> None:
    data = plan_of(conv_on_chip(bias=np.zeros(1, np.float16)))
    check_addresses(read_plan(data))
    index = tensor_of(data, 1, 2)
    moved = changed(data, Section.tensors, index, "offset", int(read_plan(data).section(Section.tensors)[index]["offset"]) - 8)
    with pytest.raises(PlanError) as e:
        check_addresses(read_plan(moved))
    assert str(e.value) == (
        "plan: step 1 (node 'layer1/conv' (Conv), kernel conv_f32.generic): "
        "constant (operand 2) at address 0xf8 is not a multiple of 256, which NPU-V3 asks for"
    )


def test_inspect_refuses_wrong_addresses_and_shows_chips(plan: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flaot", "inspect"]
    done = subprocess.run([*command, plan], capture_output=True, text=True)
    assert done.returncode == 0
    assert "on NPU-V3" in done.stdout and "1 launches, 0 by DMA, 2 transfers" in done.stdout and "NPU-V3 fp16" in done.stdout
    data = Path(plan).read_bytes()
    bad = tmp_path / "bad.flp"
    bad.write_bytes(changed(data, Section.tensors, tensor_of(data, 1, 2), "offset", 1024 + 64))
    done = subprocess.run([*command, bad], capture_output=True, text=True)
    assert done.returncode == 6 and "operand 2 at address 0x440 is not a multiple of 256, which NPU-V3 asks for" in done.stderr

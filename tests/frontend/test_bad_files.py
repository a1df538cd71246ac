"""Files nobody should trust: what is not a model, and external data that points elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from flaot.errors import FlaotError
from flaot.frontend import read
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.frontend.models import info, model, refusal, softmax, tensor

load_all()
GOOD = softmax().SerializeToString()


# -- O01 to O06: the file --------------------------------------------------------------------------------------------------


def test_an_empty_path_is_named() -> None:
    with pytest.raises(FlaotError, match="''") as refused:
        read("")
    assert refused.value.exit_code == 8


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\0" * 4096, "zeros"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "PNG"),
        (b"PK\x03\x04" + b"\0" * 50, "zip"),
        (b"\x1f\x8b\x08" + b"\0" * 50, "gzip"),
        (b"chip: {name: x}\n# a descriptor\n" * 9, "text"),
        (b'{"ir_version": 8}', "text"),
        (os.urandom(0) + bytes(range(1, 256)) * 4, "ONNX"),
        (GOOD + GOOD, "a second time"),
        (GOOD + b"\0" * 7, "unknown field 0"),
        (GOOD + b"\xfa\x7f\x01x", "unknown field"),
    ],
)
def test_what_is_not_a_model(data: bytes, words: str) -> None:
    e = refusal(data)
    assert words in str(e) and e.exit_code == 3


def test_every_truncation_is_refused() -> None:
    for length in range(len(GOOD)):
        assert refusal(GOOD[:length]).exit_code == 3


@pytest.mark.slow
def test_every_bit_flip_is_refused_or_a_model() -> None:
    for at in range(len(GOOD) * 8):
        data = bytearray(GOOD)
        data[at // 8] ^= 1 << at % 8
        try:
            read(bytes(data), evaluate=evaluate)
        except FlaotError as e:
            assert e.exit_code in (3, 5, 9)


@pytest.mark.parametrize("version", [0, 1, 2, 2**31 - 1])
def test_ir_versions(version: int) -> None:
    m = softmax()
    m.ir_version = version
    assert "supported are 3 to" in str(refusal(m))


@pytest.mark.parametrize(
    ("imports", "words"),
    [
        ([], "no opset_import"),
        ([("", 0)], "supported are 7 to"),
        ([("", 6)], "supported are 7 to"),
        ([("", 999)], "supported are 7 to"),
        ([("", 17), ("ai.onnx", 18)], "imported as opset 17 and as 18"),
        ([("ai.onnx.ml", 3)], "'soft' (Softmax): domain 'ai.onnx' is not imported"),
    ],
)
def test_opsets(imports: list[tuple[str, int]], words: str) -> None:
    m = softmax()
    del m.opset_import[:]
    m.opset_import.extend(helper.make_opsetid(d, v) for d, v in imports)
    assert words in str(refusal(m))


def test_unused_imports_do_not_matter() -> None:
    m = softmax()
    m.opset_import.extend([helper.make_opsetid("no.such", 99), helper.make_opsetid("", 17)])
    read(m)


# -- O27 to O31: external data ---------------------------------------------------------------------------------------------


def external(folder: Path, location: str, **entries: str) -> Path:
    t = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        t.external_data.add(key=key, value=value)
    m = model([helper.make_node("Identity", ["w"], ["y"])], [], [info("y", (4,))], [t])
    (folder / "m.onnx").write_bytes(m.SerializeToString())
    return folder / "m.onnx"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    data = np.arange(8, dtype=np.float32).tobytes()
    for path in (tmp_path / "x", inside / "ok.bin", inside / "sub" / "ok.bin"):
        path.write_bytes(data)
    (inside / "link").symlink_to("ok.bin")
    (inside / "linked").symlink_to("sub")
    os.link(inside / "sub" / "ok.bin", inside / "hard")
    (inside / "sub" / "ok.bin").unlink()
    (inside / "sub" / "ok.bin").write_bytes(data)
    os.link(tmp_path / "x", inside / "hard2")
    os.mkfifo(inside / "fifo")
    (inside / "empty").touch()
    return inside


@pytest.mark.parametrize("location", ["ok.bin", "sub/ok.bin", "./ok.bin"])
def test_external_data_is_read(folder: Path, location: str) -> None:
    got = read(external(folder, location, offset="16", length="16"), evaluate=evaluate).outputs[0].value.data
    np.testing.assert_array_equal(got, np.float32([4, 5, 6, 7]))


@pytest.mark.parametrize(
    "location",
    [
        "../x", "sub/../../x", "sub/../ok.bin", "{folder}/ok.bin", "link", "linked/ok.bin", "hard2", "fifo", "/dev/zero", "sub", "empty",
        "ok.bin\0x", "*/_ORT_MEM_ADDR_/*", "", ".", "no.bin", "ok.bin/", "C:\\x", "a" * 5000,
    ],
)  # fmt: skip
def test_external_places_that_are_refused(folder: Path, location: str) -> None:
    e = refusal(external(folder, location.replace("{folder}", str(folder))))
    assert e.exit_code == 3 and "'w'" in str(e), str(e)


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": "-4"}, {"offset": "20"}, {"offset": str(2**63)}, {"offset": "four"}, {"offset": " 4"}, {"offset": "\u0664"},
        {"length": "-1"}, {"length": str(2**40)}, {"length": "15"}, {"length": "17"}, {"__class__": "x"}, {"basepath": "/etc"},
    ],
)  # fmt: skip
def test_external_entries_that_are_refused(folder: Path, entries: dict[str, str]) -> None:
    assert refusal(external(folder, "ok.bin", **entries)).exit_code == 3


def test_external_data_needs_a_file(folder: Path) -> None:
    path = external(folder, "ok.bin")
    for given in (path.read_bytes(), onnx.load(path, load_external_data=False)):
        assert "not read from a file" in str(refusal(given))


def test_external_data_in_a_constant_and_in_a_branch(folder: Path) -> None:
    t = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    t.external_data.add(key="location", value="../x")
    constant = helper.make_node("Constant", [], ["y"], value=t)
    branch = helper.make_graph([constant], "b", [], [info("y", None)])
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    for m in (model([constant], [], [info("y", (4,))]), model([choice], [], [info("y", (4,))], [tensor("c", True, "bool")])):
        (folder / "m.onnx").write_bytes(m.SerializeToString())
        assert "refused" in str(refusal(folder / "m.onnx"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "huge", "wb") as f:
        f.truncate(5 * 2**30)
    for path, code in ((tmp_path / "absent", 8), (tmp_path, 8), (tmp_path / "fifo", 8), (Path("a\0b"), 8), (tmp_path / "huge", 9)):
        assert refusal(path).exit_code == code


def test_too_little_memory_is_a_limit_and_no_damage(tmp_path: Path) -> None:
    weight = tensor("w", np.zeros(2**24))
    m = model([helper.make_node("Mul", ["x", "w"], ["y"])], [info("x", (2**24,))], [info("y", (2**24,))], [weight])
    (tmp_path / "m.onnx").write_bytes(m.SerializeToString())
    code = """
import resource, sys
from flaot.errors import LimitError
from flaot.frontend import read
from pathlib import Path
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
for room in (32, 96):  # MiB: too little for the bytes of the file, and for the message beside them
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20), resource.RLIM_INFINITY))
    try:
        read(sys.argv[1])
    except LimitError as e:
        print(e.exit_code, e)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.onnx")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["9", "9"]
    assert done.stdout.count("out of memory while reading the model") == 2

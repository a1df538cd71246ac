"""Writing and reading plans."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys

import numpy as np
import pytest

from flaot.errors import InternalError, LimitError, PlanError
from flaot.plan import fields, generate
from flaot.plan.lean import LeanPlan
from flaot.plan.program import Buffer, Program, Space, Step, View
from flaot.plan.read import read_plan
from flaot.plan.text import dump
from flaot.plan.write import write_plan
from flaot.runtime.session import Session
from flaot.version import VERSION
from tests.plan.programs import K, plan_of, seal, softmax_of_constant, two_softmaxes, with_frozen

PROGRAMS = [two_softmaxes, softmax_of_constant, with_frozen, Program]


def test_records_are_naturally_aligned() -> None:
    for record in fields.RECORDS:
        for f in record.fields:
            assert record.offset(f.name) % (int(f.kind[1:]) // 8) == 0, f"{record.c_name}.{f.name}"
        assert record.size % 8 == 0


def test_generated_files_are_fresh() -> None:
    for path, text in generate.generate().items():
        assert path.read_text() == text, path


@pytest.mark.parametrize("make", PROGRAMS)
def test_written_program_reads_back_to_the_same_bytes(make) -> None:
    data = plan_of(make())
    plan = read_plan(data)
    again = write_plan(plan.program(), model_digest=plan.model_digest, hcd_digest=plan.hcd_digest, device=plan.devices[0])
    assert again == data
    assert dump(read_plan(again)) == dump(plan)


def test_content_reads_back() -> None:
    plan = read_plan(plan_of(two_softmaxes()))
    assert plan.model_digest == bytes(range(32))
    assert plan.compiler == f"flaot {VERSION}"
    assert [(p.name, str(p.type)) for p in plan.inputs + plan.outputs] == [("x", "float32[2,8]"), ("y", "float32[2,8]")]
    assert [(s.kernel, s.variant, s.op, s.origin, s.scratch, s.parallel) for s in plan.steps] == [
        ("softmax_f32", "generic", "Softmax", ("first",), 32, True), ("softmax_f32", "generic", "Softmax", ("second", "third"), 40, True),
    ]
    assert plan.arena_bytes == 128 + 40 and plan.scratch_bytes == 64 and plan.lower_bound == 64
    assert [(n.name, n.step, n.view.offset) for n in plan.names] == [("mid", 0, 64)]


def test_frozen_initializers_read_back_with_and_without_numpy() -> None:
    data = plan_of(with_frozen())
    for plan in (read_plan(data), LeanPlan(memoryview(data))):
        assert [(f.name, str(f.type), f.digest) for f in plan.frozen] == [
            ("k", "float32[2,3]", hashlib.sha256(K.tobytes()).digest()), ("flag", "bool[]", bytes(32)),
        ]
    assert f"frozen 'k' float32[2,3] {hashlib.sha256(K.tobytes()).hexdigest()}" in dump(read_plan(data))


def test_without_frozen_initializers_there_is_no_section() -> None:
    data = plan_of(two_softmaxes())
    assert fields.Section.frozen not in read_plan(data)._sections
    assert read_plan(data).frozen == LeanPlan(memoryview(data)).frozen == []


def test_damaged_frozen_initializers_are_a_plan_error() -> None:
    """The native verifier does not look at them, so any bit may be wrong when they are asked for."""
    data = plan_of(with_frozen())
    section = read_plan(data)._sections[fields.Section.frozen]
    start = section.ctypes.data - np.frombuffer(data, np.uint8).ctypes.data
    refused = 0
    for bit in range(8 * start, 8 * (start + len(section))):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        sealed = seal(bytes(changed))
        Session(sealed)
        for read in (read_plan(sealed), LeanPlan(memoryview(sealed))):
            try:
                assert len(read.frozen) == 2
            except PlanError:
                refused += 1
    assert refused > 50


def test_cut_frozen_initializers_are_a_plan_error() -> None:
    data = bytearray(plan_of(with_frozen()))
    count = len(read_plan(data)._sections)
    table = np.frombuffer(data, fields.SECTION.dtype, count, fields.HEADER.size)
    table["size"][table["id"] == fields.Section.frozen] -= 8
    with pytest.raises(PlanError, match="section 19 has 136 bytes"):
        read_plan(seal(bytes(data)))
    with pytest.raises(PlanError, match="136 bytes"):
        LeanPlan(memoryview(data)).frozen  # noqa: B018 the property raises


def test_constants_are_aligned_for_use_in_place() -> None:
    program = softmax_of_constant()
    program.alignment = 256
    plan = read_plan(plan_of(program))
    table = np.frombuffer(plan.data, np.uint8)[fields.HEADER.size :][: len(plan._sections) * fields.SECTION.size].view(fields.SECTION.dtype)
    row = table[table["id"] == fields.Section.constants][0]
    assert row["offset"] % 256 == 0
    assert plan.section(fields.Section.constants)[:48].view("<f4").tolist() == list(range(12))


def test_same_bytes_in_other_processes() -> None:
    code = "import sys, hashlib; from tests.plan.programs import *; sys.stdout.write(hashlib.sha256(plan_of(two_softmaxes())).hexdigest())"
    digests = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed}, capture_output=True,
                       text=True, check=True).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1 and digests.pop()


def test_reader_does_without_networkx_and_the_native_library() -> None:
    code = "import sys, flaot.plan.read, flaot.plan.text; sys.exit(bool({'networkx', 'onnx', 'flaot.runtime.native'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


@pytest.mark.parametrize(("data", "says"), [
    (b"", "empty"), (b"PK\3\4 and more", "not a flaot plan"), (b"1PLF", "other byte order"), (b"FLP1", "too short"),
])
def test_not_a_plan(data: bytes, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        read_plan(data)


def test_every_truncation_and_extension_is_refused() -> None:
    data = plan_of(two_softmaxes())
    for n in range(len(data)):
        with pytest.raises(PlanError):
            read_plan(data[:n])
    with pytest.raises(PlanError, match="appended"):
        read_plan(data + b"\0")


def test_another_version_names_every_differing_field() -> None:
    data = bytearray(plan_of(two_softmaxes()))
    data[4], data[48] = 9, 7
    with pytest.raises(PlanError, match="plan format 9, this flaot runs 1; kernel ABI 7, this flaot runs 1"):
        read_plan(bytes(data))


def test_damage_is_found_by_the_digest() -> None:
    data = bytearray(plan_of(two_softmaxes()))
    data[-1] ^= 1
    with pytest.raises(PlanError, match="SHA-256"):
        read_plan(bytes(data))
    read_plan(bytes(data), digest=False)


@pytest.mark.parametrize("make", [two_softmaxes, softmax_of_constant, with_frozen])
def test_resealed_damage_is_refused_or_read(make) -> None:
    """The reader alone, without the native verifier: any content is a plan or a PlanError."""
    data = plan_of(make())
    for bit in range(0, 8 * len(data), 5):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(PlanError):
            dump(read_plan(seal(bytes(changed))))


def with_empty_section(data: bytes, id: int, flags: int) -> bytes:
    """A plan without constants, with one more section at its end."""
    written = len(read_plan(data)._sections)
    start, end = fields.HEADER.size, fields.HEADER.size + written * fields.SECTION.size
    table = np.zeros(written + 1, fields.SECTION.dtype)
    table[:-1] = np.frombuffer(data[start:end], fields.SECTION.dtype)
    body = data[end : int(table[-3]["offset"]) + int(table[-3]["size"])]
    table[:-1]["offset"] += fields.SECTION.size
    total = -(-(end + fields.SECTION.size + len(body)) // 64) * 64
    table[-1]["id"], table[-1]["flags"], table[-2:]["offset"] = id, flags, total
    grown = bytearray(data[:start] + table.tobytes() + body)
    grown += bytes(total - len(grown))
    header = np.frombuffer(grown, fields.HEADER.dtype, 1)
    header["size"], header["section_count"] = len(grown), len(table)
    return seal(bytes(grown))


def test_unknown_optional_sections_are_skipped_and_others_refused() -> None:
    data = plan_of(Program())
    grown = with_empty_section(data, 99, fields.SECTION_OPTIONAL)
    assert read_plan(grown).steps == []
    assert Session(grown).run({}) == []
    with pytest.raises(PlanError, match="section 99 is unknown"):
        read_plan(with_empty_section(data, 99, 0))


def test_program_that_is_not_laid_out() -> None:
    view = View(Buffer(Space.arena, 4), two_softmaxes().inputs[0].view.dtype, (1,), (1,))
    with pytest.raises(InternalError, match="no offset"):
        plan_of(Program(steps=[Step("softmax_f32", "generic", (view,), (view,))]))


def test_too_many_operands() -> None:
    view = two_softmaxes().inputs[0].view
    with pytest.raises(LimitError, match="40 operands"):
        plan_of(Program(steps=[Step("softmax_f32", "generic", (view,) * 40, ())]))

"""What the native verifier says about each kind of damage: a status per kind, and which record."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.plan import fields
from flaot.plan.fields import DEVICE, ENTRY, HEADER, PORT, SECTION, STEP, TENSOR, Record, Section
from flaot.runtime.capi import NativePlan, aligned
from tests.plan.programs import plan_of, seal, softmax_of_constant
from tests.runtime import damage
from tests.runtime.damage import opened

SIZE, MAGIC, ENDIAN, VERSION, ABI, DIGEST, SECTIONS, TENSORS, STEPS, KERNEL, PARAMS, PORTS, STRING, ARENA, RESERVED = range(0x100, 0x10F)
ISA = 0x200
OF_CHIPS = {Section.chips, Section.launches, Section.machines, Section.units, Section.commands, Section.waits, Section.powers}
WRITTEN = sorted(set(Section) - OF_CHIPS - {Section.frozen, Section.decisions})
SPAN = {s: i for i, s in enumerate(WRITTEN)}


def table(data: bytearray) -> np.ndarray:
    return np.frombuffer(data, SECTION.dtype, len(WRITTEN), HEADER.size)


def changed(where: Section | Record, index: int, name: str, value: object, at: int | None = None) -> bytes:
    """The plan with one field set, resealed."""
    return damage.changed(plan_of(softmax_of_constant()), where, index, name, value, at)


def test_the_plan_itself_is_accepted() -> None:
    assert opened(plan_of(softmax_of_constant())) == (0, opened(plan_of(softmax_of_constant()))[1])


@pytest.mark.parametrize(("name", "value", "status"), [
    ("magic", 0x464C5031, ENDIAN), ("magic", 0, MAGIC), ("format", 0, VERSION), ("format", 2, VERSION), ("size", 0, SIZE),
    ("size", 2**63, SIZE), ("abi", 0, ABI), ("abi", 2, ABI), ("header_size", 184, SIZE), ("header_size", 200, SIZE),
    ("flags", 1, RESERVED),
    ("section_count", 0, SIZE), ("section_count", 12, SECTIONS), ("section_count", 2**32 - 1, SECTIONS), ("compiler", 2, STRING),
    ("compiler", 2**32 - 1, STRING), ("alignment", 0, ARENA), ("alignment", 32, ARENA), ("alignment", 96, ARENA),
    ("alignment", 8192, ARENA),
])
def test_header(name: str, value: int, status: int) -> None:
    assert opened(changed(HEADER, 0, name, value))[0] == status


def test_reserved_bytes_and_the_digest() -> None:
    assert opened(changed(HEADER, 0, "reserved", 1, at=55))[0] == RESERVED
    data = bytearray(plan_of(softmax_of_constant()))
    for at, status in ((16, DIGEST), (48, DIGEST), (len(data) - 1, DIGEST)):
        data[at] ^= 1
        room = aligned(len(data), 64)[: len(data)]
        room[:] = np.frombuffer(data, np.uint8)
        assert NativePlan(room, digest_verified=False).status == status
        data[at] ^= 1


@pytest.mark.parametrize(("section", "name", "value", "status"), [
    (Section.tensors, "offset", 0, SECTIONS), (Section.tensors, "offset", 2**64 - 8, SECTIONS),
    (Section.tensors, "size", 2**64 - 1, SECTIONS),
    (Section.tensors, "size", 81, SECTIONS), (Section.tensors, "id", 2, SECTIONS), (Section.tensors, "id", 5, SECTIONS),
    (Section.tensors, "flags", 2, RESERVED), (Section.constants, "id", 200, SECTIONS), (Section.constants, "size", 40, SIZE),
    (Section.names, "id", 19, 0), (Section.names, "flags", 0, SECTIONS),
])
def test_section_table(section: Section, name: str, value: int, status: int) -> None:
    assert opened(changed(SECTION, SPAN[section], name, value))[0] == status


@pytest.mark.parametrize(("name", "value", "status"), [
    ("name", 2**31, STRING), ("device_type", 2, STRING), ("isa", 0x80000000, ISA), ("reserved", 1, RESERVED),
])
def test_device(name: str, value: int, status: int) -> None:
    assert opened(changed(Section.devices, 0, name, value)) == (status, 0)


@pytest.mark.parametrize(("name", "value", "status"), [
    ("name", 2**31, STRING), ("kind", 1, RESERVED), ("first_step", 1, RESERVED), ("step_count", 1, STEPS),
    ("input_count", 0, PORTS),
    ("output_count", 3, PORTS), ("arena", 2**63, ARENA), ("scratch", 1, ARENA), ("scratch", 2**63, ARENA),
    ("reserved", 1, RESERVED),
])
def test_entry(name: str, value: int, status: int) -> None:
    assert opened(changed(Section.entries, 0, name, value))[0] == status


@pytest.mark.parametrize(("name", "value", "at", "status"), [
    ("dtype", 0, None, TENSORS), ("dtype", 8, None, TENSORS), ("dtype", 11, None, TENSORS), ("rank", 9, None, TENSORS),
    ("rank", 255, None, TENSORS),
    ("rank", 1, None, TENSORS), ("space", 1, None, TENSORS), ("space", 4, None, TENSORS), ("port", 1, None, TENSORS),
    ("window", 1, None, STEPS),
    ("offset", 4, None, TENSORS), ("offset", 1, None, TENSORS), ("offset", 2**64 - 4, None, TENSORS), ("dims", 5, 0, TENSORS),
    ("dims", -1, 0, TENSORS), ("dims", 2**31 - 1, 0, TENSORS), ("dims", 1, 5, TENSORS), ("strides", 1, 5, TENSORS),
    ("strides", 4, 0, TENSORS),
    ("strides", -3, 0, TENSORS), ("strides", -(2**31), 1, TENSORS),
])
def test_tensor(name: str, value: int, at: int | None, status: int) -> None:
    """Tensor 0 is the constant, 4 x 3 float32."""
    assert opened(changed(Section.tensors, 0, name, value, at)) == (status, 0)


@pytest.mark.parametrize(("name", "value", "status"), [
    ("opcode", 1, STEPS), ("device", 1, STEPS), ("kernel", 0, KERNEL), ("flags", 2, RESERVED), ("operands", 3, STEPS),
    ("operands", 2**32 - 1, STEPS),
    ("in_count", 0, STEPS), ("in_count", 0xFFFF, STEPS), ("out_count", 3, STEPS), ("params", 12, STEPS), ("params", 1, STEPS),
    ("params_size", 0, PARAMS), ("params_size", 2**32 - 4, STEPS), ("scratch_offset", 64, STEPS), ("scratch_size", 1, STEPS),
    ("reserved", 1, RESERVED),
])
def test_step(name: str, value: int, status: int) -> None:
    assert opened(changed(Section.steps, 1, name, value)) == (status, 1)


@pytest.mark.parametrize(("name", "value", "status"), [
    ("name", 2, STRING), ("tensor", 0, PORTS), ("tensor", 99, PORTS), ("size", 44, TENSORS), ("size", 2**64 - 1, PORTS),
])
def test_port(name: str, value: int, status: int) -> None:
    got, record = opened(changed(Section.outputs, 1, name, value))
    assert got == status
    assert record == 2 or status == TENSORS


@pytest.mark.parametrize("text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_strings_are_utf8(text: bytes) -> None:
    data = bytearray(plan_of(softmax_of_constant()))
    start = int(table(data)[SPAN[Section.strings]]["offset"])
    data[start + 1 : start + 1 + len(text)] = text
    assert opened(seal(bytes(data)))[0] == STRING


def test_records_that_the_tables_cover() -> None:
    """A new record needs a table here."""
    assert {r.c_name for r in fields.RECORDS} - {r.c_name for r in (HEADER, SECTION, DEVICE, ENTRY, TENSOR, STEP, PORT)} == {
        "fl_plan_step_name", "fl_plan_name", "fl_plan_frozen", "fl_plan_chip", "fl_plan_launch", "fl_plan_machine",
        "fl_plan_unit", "fl_plan_command", "fl_plan_power",
    }

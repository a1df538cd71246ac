"""Plans with one field changed, and what the native verifier says about them."""

from __future__ import annotations

import numpy as np

from flaot.plan import fields
from flaot.plan.fields import HEADER, SECTION, Record, Section
from flaot.plan.read import read_plan
from flaot.runtime.capi import NativePlan, aligned
from tests.plan.programs import seal


def opened(data: bytes) -> tuple[int, int]:
    """Status and record."""
    room = aligned(len(data), 4096)[: len(data)]
    room[:] = np.frombuffer(data, np.uint8)
    plan = NativePlan(room)
    return plan.status, plan.record


def changed(data: bytes, where: Section | Record, index: int, name: str, value: object, at: int | None = None) -> bytes:
    """The plan with one field of one record set, resealed. ``where`` is a section, or HEADER or SECTION for what precedes them; ``name`` is
    "" for an entry of a section of numbers."""
    out = bytearray(data)
    record, start = _place(out, where)
    if not isinstance(record, Record):
        np.frombuffer(out, "<u4", 1, start + 4 * index)[0] = value
        return seal(bytes(out))
    row = np.frombuffer(out, record.dtype, 1, start + index * record.size)
    if at is None:
        row[name] = value
    else:
        row[name][0, at] = value
    return seal(bytes(out))


def _place(data: bytearray, where: Section | Record) -> tuple[Record | str, int]:
    if isinstance(where, Record):
        return where, 0 if where is HEADER else HEADER.size
    table = np.frombuffer(data, SECTION.dtype, int(np.frombuffer(data, HEADER.dtype, 1)["section_count"][0]), HEADER.size)
    return fields.SECTIONS[where][0], int(table[table["id"] == where]["offset"][0])


def tensor_of(data: bytes, step: int, operand: int) -> int:
    """Index of an operand's tensor record."""
    plan = read_plan(data)
    return int(plan.section(Section.operands)[int(plan.section(Section.steps)[step]["operands"]) + operand])

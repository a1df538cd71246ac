"""Plan bytes -> :class:`Plan`, for people and for the Python side of the runtime. Needs numpy only, not the native library."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from flaot.errors import PlanError
from flaot.ir.types import DType, Frozen, Rounding, TensorType
from flaot.plan import fields
from flaot.plan.fields import HEADER, SECTION, SECTIONS, Record, Section
from flaot.plan.machines import read_command, read_machine
from flaot.plan.program import (
    Buffer,
    Chip,
    Command,
    DeviceRecord,
    Launch,
    Named,
    Opcode,
    Port,
    Program,
    Space,
    Step,
    View,
)


@dataclass(frozen=True)
class PlanPort:
    """An input or output as the caller sees it."""

    name: str
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype; bfloat16 is carried as its bits in uint16."""
        return self.type.dtype.numpy


def read_plan(data: bytes | bytearray | memoryview | np.ndarray, *, where: str = "plan", digest: bool = True) -> Plan:
    """Reads and checks header, section table and digest; records are read when asked for. Raises PlanError."""
    view = np.frombuffer(data, np.uint8)
    header = read_header(view, where)
    check_size(header, len(view), where)
    if digest and hashlib.sha256(view[_END_OF_DIGEST:].data).digest() != header["digest"].tobytes():
        raise PlanError("the SHA-256 in the header does not match the content; the plan is damaged", where=where)
    return Plan(view, header, _read_sections(view, header, where), where)


_END_OF_DIGEST = HEADER.offset("digest") + 32


def read_header(view: np.ndarray, where: str) -> Any:
    """The header record at the start of ``view``, of a version this reader knows."""
    if len(view) == 0:
        raise PlanError("the plan is empty", where=where)
    magic = int.from_bytes(view[:4].tobytes(), "little")
    if magic == int.from_bytes(fields.MAGIC.to_bytes(4, "little"), "big"):
        raise PlanError("a plan of the other byte order", where=where)
    if magic != fields.MAGIC:
        raise PlanError(
            f"not a flaot plan: it starts with {view[:4].tobytes()!r}, a plan with b'FLP1'",
            where=where,
            hint="'flaot compile' makes a plan of an ONNX model",
        )
    if len(view) < HEADER.size:
        raise PlanError(f"{len(view)} bytes are too short for a plan's header of {HEADER.size}", where=where)
    header = view[: HEADER.size].view(HEADER.dtype)[0]
    versions = (("plan format", "format", fields.FORMAT), ("kernel ABI", "abi", fields.ABI))
    wrong = [f"{what} {header[name]}, this flaot runs {want}" for what, name, want in versions if header[name] != want]
    if wrong:
        raise PlanError("; ".join(wrong), where=where, hint="compile the model again with this version of flaot")
    if header["header_size"] != HEADER.size:
        raise PlanError(f"header of {header['header_size']} bytes; format {fields.FORMAT} has {HEADER.size}", where=where)
    return header


def check_size(header: Any, size: int, where: str) -> None:
    """Raises PlanError unless the header states this many bytes."""
    if header["size"] != size:
        raise PlanError(f"{size} bytes, but the header says {header['size']}; the file is cut or has something appended", where=where)


def _read_sections(view: np.ndarray, header: Any, where: str) -> dict[int, np.ndarray]:
    count, sections, end = int(header["section_count"]), {}, HEADER.size + int(header["section_count"]) * SECTION.size
    if end > len(view):
        raise PlanError(f"section table of {count} entries does not fit the plan", where=where)
    last = 0
    for row in view[HEADER.size : end].view(SECTION.dtype):
        id, start, size = int(row["id"]), int(row["offset"]), int(row["size"])
        if id <= last or start < end or start % 8 or start + size > len(view):
            raise PlanError(f"section {id} at {start} with {size} bytes is out of order or bounds", where=where)
        if not row["flags"] & fields.SECTION_OPTIONAL and id not in _SECTION_IDS:
            raise PlanError(f"section {id} is unknown to this version of flaot", where=where)
        if size % _record_size(id):
            raise PlanError(f"section {id} has {size} bytes, not a whole number of records", where=where)
        sections[id], last, end = view[start : start + size], id, start + size
    return sections


_SECTION_IDS = {int(s) for s in Section}


def _record_size(id: int) -> int:
    content = SECTIONS[Section(id)][0] if id in _SECTION_IDS else "bytes"
    return content.size if isinstance(content, Record) else 4 if content == "u32" else 1


class Plan:
    """A plan's content. ``where`` names it in messages. Attributes that list records are read on first use."""

    def __init__(self, data: np.ndarray, header: Any, sections: dict[int, np.ndarray], where: str) -> None:
        self.data, self.header, self.where = data, header, where
        self._sections = sections

    def fail(self, what: str) -> PlanError:
        return PlanError(what, where=self.where)

    def section(self, section: Section) -> np.ndarray:
        """The section's records (a structured array, integers or bytes); empty when absent."""
        raw, content = self._sections.get(section, self.data[:0]), SECTIONS[section][0]
        if isinstance(content, Record):
            return raw.view(content.dtype)
        return raw.view("<u4") if content == "u32" else raw

    # -- header --------------------------------------------------------------------------------------------------------

    @property
    def digest(self) -> bytes:
        return bytes(self.header["digest"].tobytes())

    @property
    def model_digest(self) -> bytes:
        return bytes(self.header["model_digest"].tobytes())

    @property
    def hcd_digest(self) -> bytes:
        return bytes(self.header["hcd_digest"].tobytes())

    @property
    def compiler(self) -> str:
        return self.string(self.header["compiler"])

    @property
    def alignment(self) -> int:
        return int(self.header["alignment"])

    @cached_property
    def devices(self) -> list[DeviceRecord]:
        rows = self.section(Section.devices)
        return [DeviceRecord(self.string(r["name"]), self.string(r["device_type"]), int(r["isa"]), int(r["alignment"])) for r in rows]

    @cached_property
    def chips(self) -> list[Chip]:
        """The chips beside the host, in the order of the devices from 1 on."""
        found = []
        for r in self.section(Section.chips):
            if r["device"] >= len(self.devices) or r["rounding"] not in set(Rounding):
                raise self.fail(f"a chip of device {r['device']} and rounding {r['rounding']}")
            device, layouts = self.devices[int(r["device"])], r["layouts"].reshape(-1, 4)[: int(r["layout_count"])].tolist()
            dtypes = tuple(d for d in DType if int(r["dtypes"]) >> int(d) & 1)
            found.append(
                Chip(
                    device.name, device.device_type, device.alignment, int(r["max_rank"]), int(r["max_batch"]), int(r["max_sequence"]),
                    int(r["max_attention"]), tuple(r["heads"][: int(r["head_count"])].tolist()), dtypes, tuple(map(tuple, layouts)),
                    Rounding(int(r["rounding"])), bool(r["flags"] & fields.CHIP_FLUSH), int(r["arena"]), int(r["lower_bound"]),
                    read_machine(self, int(r["device"])),
                )
            )
        return found

    def command(self, index: int) -> Command | None:
        """When a step runs; None in a plan without chips."""
        return read_command(self, index)

    @cached_property
    def launches(self) -> dict[int, Launch]:
        """By step."""
        rows = self.section(Section.launches)
        return {int(r["step"]): Launch(self.string(r["unit"]), int(r["batch"]), int(r["sequence"]), int(r["heads"])) for r in rows}

    @cached_property
    def _entry(self) -> Any:
        entries = self.section(Section.entries)
        if len(entries) != 1:
            raise self.fail(f"{len(entries)} entry points; format {fields.FORMAT} has one")
        return entries[0]

    @property
    def arena_bytes(self) -> int:
        """Arena of one run with one thread."""
        return int(self._entry["arena"])

    @property
    def scratch_bytes(self) -> int:
        """Further arena for every thread after the first."""
        return int(self._entry["scratch"])

    @property
    def lower_bound(self) -> int:
        """Bytes live at once at most."""
        return int(self._entry["lower_bound"])

    @property
    def step_count(self) -> int:
        return len(self.section(Section.steps))

    # -- records -------------------------------------------------------------------------------------------------------

    @cached_property
    def _text(self) -> bytes:
        return self.section(Section.strings).tobytes()

    def string(self, offset: int) -> str:
        """The string a record names by its offset."""
        text, offset = self._text, int(offset)
        end = text.find(b"\0", offset)
        if end < 0 or (offset and text[offset - 1]):
            raise self.fail(f"string offset {offset} is not the start of a string")
        try:
            return text[offset:end].decode()
        except UnicodeDecodeError as e:
            raise self.fail(f"the string at {offset} is not UTF-8") from e

    @cached_property
    def inputs(self) -> list[PlanPort]:
        return self._ports(Section.inputs)

    @cached_property
    def outputs(self) -> list[PlanPort]:
        return self._ports(Section.outputs)

    def _ports(self, section: Section) -> list[PlanPort]:
        rows = self.section(section)
        return [PlanPort(self.string(r["name"]), self._type(self._tensor(r["tensor"]))) for r in rows]

    def _tensor(self, index: int) -> Any:
        tensors = self.section(Section.tensors)
        if index >= len(tensors):
            raise self.fail(f"tensor {index} of {len(tensors)}")
        return tensors[index]

    def _type(self, t: Any) -> TensorType:
        rank = int(t["rank"])
        if t["dtype"] not in set(DType) or rank > fields.MAX_RANK:
            raise self.fail(f"tensor of type {t['dtype']} and rank {rank}")
        return TensorType(DType(int(t["dtype"])), tuple(int(d) for d in t["dims"][:rank]))

    @cached_property
    def _buffers(self) -> dict[tuple[int, int], Buffer]:
        constants = self.section(Section.constants)
        buffers: dict[tuple[int, int], Buffer] = {
            (Space.constant, 0): Buffer(Space.constant, len(constants), "constants", constants),
            (Space.arena, 0): Buffer(Space.arena, self.arena_bytes, "arena", offset=0),
        }
        for i, chip in enumerate(self.chips, 1):
            buffers[Space.device, i] = Buffer(Space.device, chip.arena, chip.name, index=i, offset=0)
            buffers[Space.on_chip, i] = Buffer(Space.on_chip, chip.machine.on_chip_peak, chip.name, index=i, offset=0)
        for section, space in ((Section.inputs, Space.input), (Section.outputs, Space.output)):
            for i, r in enumerate(self.section(section)):
                buffers[space, i] = Buffer(space, int(r["size"]), self.string(r["name"]), index=i)
        return buffers

    def view(self, index: int) -> View:
        """A tensor record as a view of its space: one buffer each for constants, arena and every port."""
        t = self._tensor(index)
        type = self._type(t)
        buffer = self._buffers.get((int(t["space"]), int(t["port"])))
        if buffer is None:
            raise self.fail(f"tensor {index} lies in space {t['space']}, port {t['port']}, which the plan does not have")
        return View(buffer, type.dtype, type.shape, tuple(int(s) for s in t["strides"][: type.rank]), int(t["offset"]))

    @cached_property
    def steps(self) -> list[Step]:
        return [self.step(i) for i in range(len(self.section(Section.steps)))]

    def step(self, index: int) -> Step:
        """One step with its names; without the debug sections the kernel is named by its id."""
        s = self.section(Section.steps)[index]
        first, n_in, n_out = int(s["operands"]), int(s["in_count"]), int(s["out_count"])
        operands = self.section(Section.operands)[first : first + n_in + n_out]
        params, scratch = int(s["params"]), int(s["scratch_size"])
        blob = self.section(Section.params)[params : params + int(s["params_size"])].tobytes()
        if len(operands) != n_in + n_out or len(blob) != s["params_size"]:
            raise self.fail(f"step {index} has operands or parameters out of bounds")
        kernel, variant, op, origin = self.step_name(index)
        views = [self.view(int(i)) for i in operands]
        return Step(
            kernel, variant, tuple(views[:n_in]), tuple(views[n_in:]), blob, scratch, int(s["scratch_offset"]),
            bool(s["flags"] & fields.STEP_PARALLEL), origin, op, int(s["device"]), Opcode(min(int(s["opcode"]), max(Opcode))),
            self.launches.get(index), self.command(index),
        )

    def windows(self, index: int) -> list[int]:
        """For every operand of a step, the bytes from the start of its buffer on a chip (0 on the host)."""
        s = self.section(Section.steps)[index]
        first, count = int(s["operands"]), int(s["in_count"]) + int(s["out_count"])
        return [int(self._tensor(i)["window"]) for i in self.section(Section.operands)[first : first + count]]

    def step_name(self, index: int) -> tuple[str, str, str, tuple[str, ...]]:
        """Kernel, variant, operator and model nodes of a step."""
        rows = self.section(Section.step_names)
        if index >= len(rows):
            return f"{self.section(Section.steps)[index]['kernel']:08x}", "", "", ()
        r = rows[index]
        kernel, _, variant = self.string(r["kernel"]).partition(".")
        first = int(r["first_origin"])
        origins = self.section(Section.origins)[first : first + int(r["origin_count"])]
        return kernel, variant, self.string(r["op"]), tuple(self.string(o) for o in origins)

    @cached_property
    def names(self) -> list[Named]:
        """Model values that can be inspected after a step."""
        rows = self.section(Section.names)
        return [Named(self.string(r["name"]), self.view(r["tensor"]), int(r["step"])) for r in rows]

    @cached_property
    def frozen(self) -> list[Frozen]:
        """Initializers that the model lists as inputs too."""
        return [Frozen(self.string(r["name"]), self._type(r), r["digest"].tobytes()) for r in self.section(Section.frozen)]

    @property
    def decisions(self) -> bytes:
        """What :class:`flaot.mapping.record.Record` made of itself; empty when the plan holds no record."""
        return self.section(Section.decisions).tobytes()

    def program(self) -> Program:
        """The program the plan was written from, with one buffer for all constants of the host and one for its arena."""
        inputs, outputs = (
            [Port(self.string(r["name"]), self.view(r["tensor"])) for r in self.section(s)] for s in (Section.inputs, Section.outputs)
        )
        steps, names = self.steps, self.names
        if self.chips:
            from flaot.plan.apart import told_apart

            steps, names = told_apart(self)
        return Program(
            inputs, outputs, steps, names, self.arena_bytes, self.lower_bound, self.alignment, self.frozen, self.chips, self.decisions
        )

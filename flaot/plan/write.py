"""Program -> plan bytes. The same program gives the same bytes on every machine: no timestamps, no paths, no hash order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from flaot.errors import InternalError, LimitError
from flaot.plan import fields
from flaot.plan.fields import HEADER, SECTIONS, Section
from flaot.plan.program import Buffer, DeviceRecord, Opcode, Port, Program, Space, Step, View, normal_strides
from flaot.plan.turns import in_turn
from flaot.version import VERSION


def write_plan(program: Program, *, model_digest: bytes = bytes(32), hcd_digest: bytes = bytes(32), device: DeviceRecord) -> bytes:
    """Serializes a program whose arena buffers have offsets. The digests are 32 bytes; zeros mean unknown.

    Raises LimitError when the program does not fit the format, InternalError when it is not laid out.
    """
    return _Writer(program, device).write(model_digest, hcd_digest)


def _round(n: int, alignment: int) -> int:
    return -(-n // alignment) * alignment


@dataclass
class _Writer:
    program: Program
    device: DeviceRecord
    strings: dict[str, int] = field(default_factory=lambda: {"": 0})
    text: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    tensors: dict[bytes, int] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    constants: list[bytes] = field(default_factory=list)
    constant_size: int = 0

    @property
    def alignment(self) -> int:
        return max(self.program.alignment, fields.MIN_ALIGNMENT, *(c.alignment for c in self.program.chips))

    def write(self, model_digest: bytes, hcd_digest: bytes) -> bytes:
        compiler = self.string(f"flaot {VERSION}")
        bodies = self.bodies()
        table, blocks, size = self.lay_out(bodies)
        header = np.zeros(1, HEADER.dtype)
        header["magic"], header["format"], header["size"] = fields.MAGIC, fields.FORMAT, size
        header["abi"], header["header_size"], header["section_count"] = fields.ABI, HEADER.size, len(bodies)
        header["model_digest"], header["hcd_digest"] = list(model_digest), list(hcd_digest)
        header["compiler"], header["alignment"] = compiler, self.alignment
        head, start = header.tobytes(), HEADER.offset("digest")
        digest = hashlib.sha256(head[start + 32 :])
        for block in (table, *blocks):
            digest.update(block)
        return b"".join([head[:start], digest.digest(), head[start + 32 :], table, *blocks])

    def lay_out(self, bodies: dict[Section, bytes]) -> tuple[bytes, list[bytes], int]:
        """Section table, the sections with the padding between them, and the length of the plan."""
        table = np.zeros(len(bodies), fields.SECTION.dtype)
        blocks, at = [], HEADER.size + table.nbytes
        for row, (section, body) in zip(table, sorted(bodies.items()), strict=True):
            start = _round(at, self.alignment if section is Section.constants else 8)
            row["id"], row["flags"] = section, fields.SECTION_OPTIONAL if SECTIONS[section][1] else 0
            row["offset"], row["size"] = start, len(body)
            blocks += [bytes(start - at), body]
            at = start + len(body)
        return table.tobytes(), blocks, at

    def bodies(self) -> dict[Section, bytes]:
        p = self.program
        ranges = self.chip_constants()
        steps, operands, params, arena, scratch = self.steps(p.steps)
        bodies = {
            Section.devices: self.devices(),
            Section.entries: self.entry(arena, scratch),
            Section.steps: steps, Section.operands: operands, Section.params: params,
            Section.inputs: self.ports(p.inputs, Space.input),
            Section.outputs: self.ports(p.outputs, Space.output),
            Section.names: self.names(),
        }
        if p.frozen:
            bodies[Section.frozen] = self.frozen()
        if p.decisions:
            bodies[Section.decisions] = p.decisions
        if p.chips:
            bodies[Section.chips], bodies[Section.launches] = self.chips(ranges), self.launches()
            bodies[Section.machines], bodies[Section.units] = self.machines(), self.units()
            bodies[Section.commands], bodies[Section.waits] = self.commands()
            if any(chip.machine.power is not None for chip in p.chips):
                bodies[Section.powers] = self.powers()
        bodies[Section.step_names], bodies[Section.origins] = self.step_names(p.steps)
        bodies[Section.tensors] = b"".join(self.tensors)
        bodies[Section.strings] = bytes(self.text)
        bodies[Section.constants] = b"".join(self.constants)
        return bodies

    def string(self, text: str) -> int:
        text = text.replace("\0", "\ufffd")
        if text not in self.strings:
            self.strings[text] = len(self.text)
            self.text += text.encode("utf-8", "replace") + b"\0"
        return self.strings[text]

    def tensor(self, view: View) -> int:
        """Index of the view's record."""
        record = np.zeros(1, fields.TENSOR.dtype)
        rank = len(view.dims)
        if rank > fields.MAX_RANK or max(view.dims, default=0) > 2**31 - 1 or max(map(abs, view.strides), default=0) > 2**31 - 1:
            raise LimitError(f"a tensor of shape {list(view.dims)}; plans hold rank {fields.MAX_RANK} and 2^31 - 1 elements")
        record["dtype"], record["rank"], record["space"] = view.dtype, rank, view.buffer.space
        if view.buffer.space in (Space.input, Space.output, Space.device, Space.on_chip):
            record["port"] = view.buffer.index
        if view.buffer.space in (Space.device, Space.constant, Space.on_chip) and view.buffer.index:
            record["window"] = view.offset if view.offset % self.program.chips[view.buffer.index - 1].alignment else 0
        record["offset"] = self.place(view.buffer) + view.offset
        record["dims"][0, :rank], record["strides"][0, :rank] = view.dims, normal_strides(view.dims, view.strides)
        return self.tensors.setdefault(record.tobytes(), len(self.tensors))

    def place(self, buffer: Buffer) -> int:
        """Where a buffer starts in its space."""
        if buffer.space is Space.constant:
            if id(buffer) not in self.offsets:
                self.offsets[id(buffer)] = self.add_constant(buffer)
            return self.offsets[id(buffer)]
        if buffer.space in (Space.arena, Space.device, Space.on_chip) and buffer.offset is None:
            raise InternalError(f"arena buffer {buffer.name!r} has no offset", where="plan writer")
        return buffer.offset or 0

    def add_constant(self, buffer: Buffer) -> int:
        if buffer.data is None:
            raise InternalError(f"constant {buffer.name!r} has no data", where="plan writer")
        data = np.ascontiguousarray(buffer.data)
        if data.dtype.byteorder == ">":
            data = data.astype(data.dtype.newbyteorder("<"))
        raw = data.tobytes()
        wanted = min(self.alignment, max(8, 1 << max(len(raw) - 1, 0).bit_length()))
        start = _round(self.constant_size, self.program.chips[buffer.index - 1].alignment if buffer.index else wanted)
        self.constants += [bytes(start - self.constant_size), raw]
        self.constant_size = start + len(raw)
        return start

    def steps(self, steps: list[Step]) -> tuple[bytes, bytes, bytes, int, int]:
        """Steps, operands, parameters, and the bytes of arena and of scratch per further thread."""
        rows = np.zeros(len(steps), fields.STEP.dtype)
        operands: list[int] = []
        params = bytearray()
        pool: dict[bytes, int] = {}
        arena = self.program.arena
        for row, s in zip(rows, steps, strict=True):
            count = len(s.inputs) + len(s.outputs)
            if count > fields.MAX_OPERANDS:
                raise LimitError(f"a step with {count} operands; plans hold {fields.MAX_OPERANDS}", where=f"{s.op} {s.origin}")
            row["opcode"], row["device"] = s.opcode, s.device
            row["kernel"] = fields.kernel_id(s.kernel, s.variant) if s.opcode is Opcode.call else 0
            row["flags"] = fields.STEP_PARALLEL if s.parallel else 0
            row["operands"], row["in_count"], row["out_count"] = len(operands), len(s.inputs), len(s.outputs)
            operands += [self.tensor(v) for v in (*s.inputs, *s.outputs)]
            if s.params not in pool:
                pool[s.params] = len(params)
                params += s.params
            row["params"], row["params_size"] = pool[s.params], len(s.params)
            if s.scratch:
                row["scratch_offset"], row["scratch_size"] = s.scratch_offset, s.scratch
                arena = max(arena, s.scratch_offset + s.scratch) if not s.device else arena
        scratch = max((_round(s.scratch, fields.MIN_ALIGNMENT) for s in steps if s.parallel and not s.device), default=0)
        return rows.tobytes(), np.array(operands, "<u4").tobytes(), bytes(params), arena, scratch

    def devices(self) -> bytes:
        chips = [DeviceRecord(c.name, c.device_type, 0, c.alignment) for c in self.program.chips]
        rows = np.zeros(1 + len(chips), fields.DEVICE.dtype)
        for row, d in zip(rows, (self.device, *chips), strict=True):
            row["name"], row["device_type"] = self.string(d.name), self.string(d.device_type)
            row["isa"], row["alignment"] = d.isa, d.alignment
        return rows.tobytes()

    def chip_constants(self) -> list[tuple[int, int]]:
        """Lays out the constants of the host, then those of every chip together; begin and size of each chip's part."""
        if not self.program.chips:
            return []
        found: dict[int, dict[int, Buffer]] = {i: {} for i in range(len(self.program.chips) + 1)}
        for s in self.program.steps:
            for v in (*s.inputs, *s.outputs):
                if v.buffer.space is Space.constant:
                    found[v.buffer.index].setdefault(id(v.buffer), v.buffer)
        ranges = []
        for device, buffers in found.items():
            alignment = self.program.chips[device - 1].alignment if device else fields.MIN_ALIGNMENT
            start = _round(self.constant_size, max(alignment, 8))
            if buffers:
                self.constants.append(bytes(start - self.constant_size))
                self.constant_size = start
            for buffer in buffers.values():
                self.place(buffer)
            ranges.append((start, self.constant_size - start) if buffers else (0, 0))
        return ranges[1:]

    def chips(self, ranges: list[tuple[int, int]]) -> bytes:
        rows = np.zeros(len(self.program.chips), fields.CHIP.dtype)
        for i, (row, chip, (start, size)) in enumerate(zip(rows, self.program.chips, ranges, strict=True)):
            if len(chip.heads) > fields.MAX_HEADS or len(chip.layouts) > fields.MAX_LAYOUTS:
                found = f"{len(chip.heads)} head counts and {len(chip.layouts)} layouts"
                raise LimitError(f"{found}; plans hold {fields.MAX_HEADS} and {fields.MAX_LAYOUTS}")
            row["device"], row["max_rank"], row["max_batch"], row["max_sequence"] = i + 1, chip.max_rank, chip.max_batch, chip.max_sequence
            row["max_attention"], row["dtypes"] = chip.max_attention, sum(1 << int(d) for d in chip.dtypes)
            row["rounding"], row["flags"] = chip.rounding, fields.CHIP_FLUSH if chip.flush_denormals else 0
            row["layout_count"], row["head_count"] = len(chip.layouts), len(chip.heads)
            flat = [a for layout in chip.layouts for a in layout]
            row["layouts"][: len(flat)], row["heads"][: len(chip.heads)] = flat, chip.heads
            row["arena"], row["lower_bound"], row["constants_offset"], row["constants_size"] = chip.arena, chip.lower_bound, start, size
        return rows.tobytes()

    def launches(self) -> bytes:
        launched = [(i, s.launch) for i, s in enumerate(self.program.steps) if s.launch is not None]
        rows = np.zeros(len(launched), fields.LAUNCH.dtype)
        for row, (i, launch) in zip(rows, launched, strict=True):
            row["step"], row["unit"], row["batch"] = i, self.string(launch.unit), launch.batch
            row["sequence"], row["heads"] = launch.sequence, launch.heads
        return rows.tobytes()

    def machines(self) -> bytes:
        rows = np.zeros(len(self.program.chips), fields.MACHINE.dtype)
        for row, chip in zip(rows, self.program.chips, strict=True):
            for name in fields.MACHINE.offsets:
                if name != "reserved":
                    row[name] = getattr(chip.machine, name)
        return rows.tobytes()

    def units(self) -> bytes:
        units = [(i, u) for i, chip in enumerate(self.program.chips, 1) for u in chip.machine.units]
        rows = np.zeros(len(units), fields.UNIT.dtype)
        for row, (device, unit) in zip(rows, units, strict=True):
            row["device"], row["name"], row["count"], row["rate"] = device, self.string(unit.name), unit.count, unit.rate
            row["launch_cycles"], row["depth"] = unit.launch_cycles, unit.depth
        return rows.tobytes()

    def powers(self) -> bytes:
        stated = [(i, chip.machine.power) for i, chip in enumerate(self.program.chips, 1) if chip.machine.power is not None]
        rows = np.zeros(len(stated), fields.POWER.dtype)
        for row, (device, power) in zip(rows, stated, strict=True):
            row["device"], row["idle"], row["cap"] = device, power.idle, power.cap
            row["on_chip"], row["off_chip"], row["macs"][: len(power.macs)] = power.on_chip, power.off_chip, power.macs
        return rows.tobytes()

    def commands(self) -> tuple[bytes, bytes]:
        rows = np.zeros(len(self.program.steps), fields.COMMAND.dtype)
        waits: list[int] = []
        for i, (row, step) in enumerate(zip(rows, self.program.steps, strict=True)):
            c = step.command if step.command is not None else in_turn(self.program, i)
            row["queue"], row["first_wait"], row["wait_count"] = c.queue, len(waits), len(c.waits)
            row["work"], row["hold"] = c.work, c.hold
            waits += c.waits
        return rows.tobytes(), np.array(waits, "<u4").tobytes()

    def entry(self, arena: int, scratch: int) -> bytes:
        row, p = np.zeros(1, fields.ENTRY.dtype), self.program
        row["step_count"], row["input_count"], row["output_count"] = len(p.steps), len(p.inputs), len(p.outputs)
        row["arena"], row["scratch"], row["lower_bound"] = arena, scratch, p.lower_bound
        return row.tobytes()

    def ports(self, ports: list[Port], space: Space) -> bytes:
        if len(ports) > fields.MAX_PORTS:
            raise LimitError(f"{len(ports)} {space.name}s; plans hold {fields.MAX_PORTS}")
        rows = np.zeros(len(ports), fields.PORT.dtype)
        for i, (row, port) in enumerate(zip(rows, ports, strict=True)):
            view = port.view
            if view.buffer.space is not space or view.buffer.index != i or view.offset or not view.is_dense:
                raise InternalError(f"{space.name} {port.name!r} is not a dense view of its own buffer", where="plan writer")
            row["name"], row["tensor"], row["size"] = self.string(port.name), self.tensor(view), view.elements * view.dtype.size
        return rows.tobytes()

    def step_names(self, steps: list[Step]) -> tuple[bytes, bytes]:
        rows = np.zeros(len(steps), fields.STEP_NAME.dtype)
        origins: list[int] = []
        pool: dict[tuple[str, ...], int] = {}
        for row, s in zip(rows, steps, strict=True):
            row["kernel"], row["op"] = self.string(f"{s.kernel}.{s.variant}"), self.string(s.op)
            if s.origin not in pool:
                pool[s.origin] = len(origins)
                origins += [self.string(o) for o in s.origin]
            row["first_origin"], row["origin_count"] = pool[s.origin], len(s.origin)
        return rows.tobytes(), np.array(origins, "<u4").tobytes()

    def names(self) -> bytes:
        rows = np.zeros(len(self.program.names), fields.NAME.dtype)
        for row, n in zip(rows, self.program.names, strict=True):
            row["name"], row["tensor"], row["step"] = self.string(n.name), self.tensor(n.view), n.step
        return rows.tobytes()

    def frozen(self) -> bytes:
        rows = np.zeros(len(self.program.frozen), fields.FROZEN.dtype)
        for row, f in zip(rows, self.program.frozen, strict=True):
            row["name"], row["dtype"], row["rank"] = self.string(f.name), f.type.dtype, f.type.rank
            row["dims"][: f.type.rank], row["digest"] = f.type.shape, list(f.digest)
        return rows.tobytes()


def plan_digest(plan: bytes) -> bytes:
    """The digest a sealed plan carries."""
    start = HEADER.offset("digest")
    return plan[start : start + 32]

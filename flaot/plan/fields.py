"""The plan format, defined once: every record of a ``.flp`` file.

The writer, the reader, the C header (``gen/plan.h``) and the tables of ``docs/plan-format.md`` are derived from this file.
All numbers are little-endian and naturally aligned. The format grows by giving reserved fields a meaning (zero means absent)
and by new sections; optional sections unknown to a reader are skipped.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from struct import Struct
from typing import TYPE_CHECKING

from flaot.ir.types import MAX_RANK

if TYPE_CHECKING:
    import numpy as np

MAGIC = 0x31504C46  # "FLP1"
FORMAT = 1
"""Version of the file format: a reader refuses other versions."""
ABI = 1
"""Version of the contract between plans and kernels: meaning of parameter records, packed weights, scratch."""

MIN_ALIGNMENT, MAX_ALIGNMENT = 64, 4096
MAX_PORTS = 256
MAX_OPERANDS = 32
MAX_PARAMS = 1 << 20
MAX_DEVICES = 4
MAX_HEADS = 16
MAX_LAYOUTS = 8
MAX_DTYPES = 24
MAX_QUEUES = 64
"""Above the channels of a DMA engine."""
MAX_UNITS = 16
"""Compute units of a chip; adapter.h says the same to C."""
MAX_DEPTH = 2**32 - 1
"""Commands of a queue."""
MAX_RATE, MAX_WORK = 1 << 52, 1 << 60
HOST_QUEUE = 0xFFFFFFFF
"""Queue of the steps the host runs itself."""
SECTION_OPTIONAL = 1
STEP_PARALLEL = 1

ISA_BITS = {"generic": 0, "half": 0, "avx2": 1, "avx512": 2}
"""Kernel variant -> bits of the device record; kernel.h names them FL_ISA_*."""


@dataclass(frozen=True)
class Field:
    """One field: ``kind`` is u8, u16, u32, u64 or i32, ``count`` its array length."""

    name: str
    kind: str
    doc: str
    count: int = 1


@dataclass(frozen=True)
class Record:
    """A fixed-size record; ``c_name`` is its C struct."""

    c_name: str
    doc: str
    fields: tuple[Field, ...]

    @property
    def dtype(self) -> np.dtype:
        """The record as a numpy structured type."""
        import numpy as np

        codes = [f"<{f.kind[0]}{int(f.kind[1:]) // 8}" for f in self.fields]
        return np.dtype([(f.name, c, (f.count,)) if f.count > 1 else (f.name, c) for f, c in zip(self.fields, codes, strict=True)])

    @cached_property
    def struct(self) -> Struct:
        """The record for Python's struct module; arrays give one number per element."""
        return Struct("<" + "".join(f"{f.count}{_STRUCT_CODES[f.kind]}" for f in self.fields))

    @property
    def size(self) -> int:
        return self.struct.size

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Bytes from the start of the record to every field."""
        widths = [f.count * int(f.kind[1:]) // 8 for f in self.fields]
        return dict(zip((f.name for f in self.fields), accumulate([0, *widths]), strict=False))

    def offset(self, name: str) -> int:
        """Bytes from the start of the record to a field."""
        return self.offsets[name]


_STRUCT_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i"}


CHIP_FLUSH = 1


class Section(enum.IntEnum):
    """Section ids; the section table is sorted by them."""

    devices = 1
    entries = 2
    tensors = 3
    steps = 4
    operands = 5
    params = 6
    inputs = 7
    outputs = 8
    strings = 9
    chips = 10
    launches = 11
    machines = 12
    units = 13
    commands = 14
    waits = 15
    step_names = 16
    origins = 17
    names = 18
    frozen = 19
    decisions = 20
    powers = 21
    constants = 64


HEADER = Record("fl_plan_header", "First bytes of a plan. The section table follows at once.", (
    Field("magic", "u32", "0x31504C46, the bytes `FLP1`; reading 0x464C5031 means a machine of the other byte order"),
    Field("format", "u32", "version of the file format, 1"),
    Field("size", "u64", "length of the whole plan in bytes"),
    Field("digest", "u8", "SHA-256 of every byte after this field", 32),
    Field("abi", "u32", "version of the contract between plans and kernels, 1"),
    Field("header_size", "u32", "length of this record, 192"),
    Field("section_count", "u32", "entries of the section table"),
    Field("flags", "u32", "0"),
    Field("model_digest", "u8", "SHA-256 of the model, as the compiler defines it; zeros when unknown", 32),
    Field("hcd_digest", "u8", "digest of the descriptor, of several SHA-256 over theirs in the devices' order; zeros when unknown", 32),
    Field("compiler", "u32", "string: name and version of the compiler"),
    Field("alignment", "u32", "required alignment of the arena and of the constants within the plan: a power of two, 64 to 4096"),
    Field("reserved", "u8", "0", 56),
))

SECTION = Record("fl_plan_section", "One entry of the section table. Entries are sorted by id, and so are the sections in the file.", (
    Field("id", "u32", "see the list of sections"),
    Field("flags", "u32", "bit 0: a reader that does not know the id may skip the section"),
    Field("offset", "u64", "bytes from the start of the plan; a multiple of 8, of the plan's alignment for constants"),
    Field("size", "u64", "bytes"),
))

DEVICE = Record("fl_plan_device", "A device that steps run on.", (
    Field("name", "u32", "string: chip name of the hardware descriptor"),
    Field("device_type", "u32", "string: device type of the hardware descriptor"),
    Field("isa", "u32", "instruction sets the plan may use: bit 0 AVX2 with FMA and F16C, bit 1 AVX-512 F, BW, DQ and VL"),
    Field("alignment", "u32", "alignment the descriptor asks for, bytes"),
    Field("reserved", "u32", "0", 4),
))

ENTRY = Record("fl_plan_entry", "An entry point: a range of steps with its inputs, outputs and memory. Format 1 has exactly one.", (
    Field("name", "u32", "string; empty for the only entry"),
    Field("kind", "u32", "0: called from outside"),
    Field("first_step", "u32", "index into steps"),
    Field("step_count", "u32", "number of steps"),
    Field("first_input", "u32", "index into inputs"),
    Field("input_count", "u32", "number of inputs"),
    Field("first_output", "u32", "index into outputs"),
    Field("output_count", "u32", "number of outputs"),
    Field("arena", "u64", "bytes of arena with one thread, without the port table"),
    Field("scratch", "u64", "largest scratch of a step that may be split, per thread: a multiple of 64"),
    Field("lower_bound", "u64", "bytes live at once at most: what no memory plan can go below for this step order; information only"),
    Field("reserved", "u64", "0"),
))

TENSOR = Record("fl_tensor", "A strided tensor, the operand of a kernel.", (
    Field("dtype", "u8", "ONNX TensorProto.DataType"),
    Field("rank", "u8", f"0 to {MAX_RANK}"),
    Field("space", "u8", "where it lies: 0 constants, 1 arena, 2 input, 3 output, 4 memory of a chip, 5 its on-chip memory"),
    Field("port", "u8", "index of the input or output, or of the chip among the devices, else 0"),
    Field("window", "u32", "on a chip: bytes from the start of the buffer that the tensor is a part of; 0 on the host"),
    Field("offset", "u64", "bytes from the start of its space to element (0, ..., 0)"),
    Field("dims", "i32", "sizes of the axes; 0 from rank on", MAX_RANK),
    Field("strides", "i32", "elements between neighbours along each axis: 0 repeats, negative runs backwards; 0 from rank on", MAX_RANK),
))

STEP = Record("fl_plan_step", "One command. Operands are the inputs, then the outputs.", (
    Field("opcode", "u32", (
        "0: call a kernel; 1: move the input, dense in some order, to the output in another memory, on a chip's behalf; "
        "2: move the input to the output within a chip, between its memory and its on-chip memory"
    )),
    Field("device", "u32", "index into devices"),
    Field("kernel", "u32", "FNV-1a (32 bit) of the kernel's name and variant, `softmax_f32.generic`"),
    Field("flags", "u32", "bit 0: worth splitting over threads"),
    Field("operands", "u32", "index of the first operand in operands"),
    Field("in_count", "u16", "number of inputs"),
    Field("out_count", "u16", "number of outputs"),
    Field("params", "u32", "bytes into params, a multiple of 4"),
    Field("params_size", "u32", "bytes, a multiple of 4"),
    Field("scratch_offset", "u64", "bytes into the arena, a multiple of 64; 0 without scratch"),
    Field("scratch_size", "u64", "bytes of scratch per thread"),
    Field("reserved", "u64", "0"),
))

CHIP = Record("fl_plan_chip", "A device that is not the host: limits every launch is held to (0: none), and its memory.", (
    Field("device", "u32", "index into devices, 1 or more; records are sorted by it"),
    Field("max_rank", "u32", "highest rank of an operand"),
    Field("max_batch", "u32", "largest batch"),
    Field("max_sequence", "u32", "longest sequence"),
    Field("max_attention", "u32", "longest sequence of the attention unit"),
    Field("dtypes", "u32", "bit n: element type n of ONNX TensorProto.DataType"),
    Field("rounding", "u32", "to float16 and bfloat16: 0 half to even, 1 half away from zero, 2 half up, 3 floor, 4 toward zero"),
    Field("flags", "u32", "bit 0: denormal results become zero"),
    Field("layout_count", "u32", "entries of layouts"),
    Field("layouts", "u8", "axis orders of tensors of rank 4, outermost first, four bytes each", 4 * MAX_LAYOUTS),
    Field("head_count", "u32", "entries of heads; 0: any number of heads"),
    Field("heads", "u32", "numbers of heads of the attention unit", MAX_HEADS),
    Field("reserved", "u32", "0", 2),
    Field("arena", "u64", "bytes of the chip's memory that steps use"),
    Field("lower_bound", "u64", "bytes live at once in it at most; information only"),
    Field("constants_offset", "u64", "begin of the chip's part of the constants, a multiple of the device's alignment"),
    Field("constants_size", "u64", "bytes of the chip's part of the constants, which lie in the chip's memory when steps run"),
))

LAUNCH = Record("fl_plan_launch", "What a chip is told about a step. One record per kernel call on a chip, sorted by step.", (
    Field("step", "u32", "index into steps"),
    Field("unit", "u32", "string: compute unit of the descriptor"),
    Field("batch", "u32", "batch, 0 where there is none"),
    Field("sequence", "u32", "longest sequence, 0 where there is none"),
    Field("heads", "u32", "attention heads, 0 where there are none"),
    Field("reserved", "u32", "0", 3),
))

MACHINE = Record("fl_plan_machine", "How fast a chip is and what it holds; one record per chip, in their order.", (
    Field("clock_khz", "u32", "cycles per millisecond"),
    Field("channels", "u32", "channels of the DMA engine, at least 1: queues 0 to channels - 1"),
    Field("depth", "u32", "most commands a queue holds; 0: no limit"),
    Field("setup_cycles", "u32", "cycles before a channel moves the first byte"),
    Field("latency_cycles", "u32", "cycles until the first byte of the chip's memory arrives"),
    Field("transfer", "u32", "between host and chip: 0 the host waits, 1 it goes on, 2 both see the same memory and nothing moves"),
    Field("link_setup_cycles", "u32", "cycles before a transfer between host and chip moves the first byte"),
    Field("bus", "u32", "bus of those transfers; chips of one number share it"),
    Field("on_chip", "u64", "bytes of on-chip memory that steps may use"),
    Field("on_chip_peak", "u64", "bytes of it that they use"),
    Field("on_chip_rate", "u64", "bytes per 1000 cycles that units read from it, and as many that they write"),
    Field("off_chip_rate", "u64", "bytes per 1000 cycles between the chip's memory and its on-chip memory, all channels together"),
    Field("link_rate", "u64", "bytes per 1000 cycles between host and chip"),
    Field("dimensions", "u32", "strided axes of one DMA transfer, 1 to 8; what has more takes several, each with its setup"),
    Field("reserved", "u32", "0"),
))

UNIT = Record("fl_plan_unit", "A compute unit of a chip, sorted by device. Unit i has queue channels + i, transfers the one after.", (
    Field("device", "u32", "index into devices"),
    Field("name", "u32", "string: name of the unit in the descriptor"),
    Field("count", "u32", "identical units that share each launch"),
    Field("launch_cycles", "u32", "cycles from the start of a launch to its first result"),
    Field("depth", "u32", "most launches its queue holds; 0: as the chip's"),
    Field("reserved", "u32", "0"),
    Field("rate", "u64", "operations per 1000 cycles of all of them"),
))

POWER = Record("fl_plan_power", "What a chip draws; one record per chip that states it, sorted by device.", (
    Field("device", "u32", "index into devices, 1 or more"),
    Field("reserved", "u32", "0"),
    Field("idle", "u64", "microwatts at rest"),
    Field("cap", "u64", "microwatts at most, more than at rest; 0: no cap"),
    Field("on_chip", "u64", "femtojoules of a byte that is read from or written to on-chip memory"),
    Field("off_chip", "u64", "femtojoules of a byte that is read from or written to the chip's memory"),
    Field("macs", "u64", "femtojoules of two operations on each element type, by the number of ONNX TensorProto.DataType", MAX_DTYPES),
))

COMMAND = Record("fl_plan_command", "When a step may run; one record per step of a plan with chips.", (
    Field("queue", "u32", "queue of the step's device; 0xFFFFFFFF on the host"),
    Field("first_wait", "u32", "index into waits"),
    Field("wait_count", "u32", "earlier steps that must be complete before it starts, beside those before it on its own queue"),
    Field("hold", "u32", "least cycles it keeps its queue"),
    Field("work", "u64", "of a launch: operations at the unit's peak rate; of a step on the host: picoseconds; else 0"),
))

PORT = Record("fl_plan_port", "An input or output of an entry: dense, row-major, at offset 0 of its own memory.", (
    Field("name", "u32", "string"),
    Field("tensor", "u32", "index into tensors"),
    Field("size", "u64", "bytes"),
))

STEP_NAME = Record("fl_plan_step_name", "What a step is called in messages; one record per step.", (
    Field("kernel", "u32", "string: kernel name and variant"),
    Field("op", "u32", "string: operator"),
    Field("first_origin", "u32", "index into origins"),
    Field("origin_count", "u32", "number of model nodes the step came from"),
))

NAME = Record("fl_plan_name", "A value of the model that is still in memory after a step.", (
    Field("name", "u32", "string: the value's name in the model"),
    Field("tensor", "u32", "index into tensors"),
    Field("step", "u32", "step after which the tensor holds the value"),
    Field("reserved", "u32", "0"),
))

FROZEN = Record("fl_plan_frozen", "An initializer that the model lists among its inputs too: its value is part of the plan.", (
    Field("name", "u32", "string: its name in the model"),
    Field("dtype", "u8", "ONNX TensorProto.DataType"),
    Field("rank", "u8", f"0 to {MAX_RANK}"),
    Field("reserved", "u16", "0"),
    Field("dims", "i32", "sizes of the axes; 0 from rank on", MAX_RANK),
    Field("digest", "u8", "SHA-256 of its value, dense and row-major", 32),
))

RECORDS = (HEADER, SECTION, DEVICE, ENTRY, TENSOR, STEP, PORT, CHIP, LAUNCH, MACHINE, UNIT, POWER, COMMAND, STEP_NAME, NAME, FROZEN)

SECTIONS: dict[Section, tuple[Record | str, bool, str]] = {
    Section.devices: (DEVICE, False, "devices the steps run on"),
    Section.entries: (ENTRY, False, "entry points; exactly one in format 1"),
    Section.tensors: (TENSOR, False, "operands of the steps and ports; equal ones are stored once"),
    Section.steps: (STEP, False, "commands in execution order"),
    Section.operands: ("u32", False, "indices into tensors"),
    Section.params: ("bytes", False, "parameter records of the kernels (`gen/params.h`), each at a multiple of 4"),
    Section.inputs: (PORT, False, "inputs"),
    Section.outputs: (PORT, False, "outputs"),
    Section.strings: ("bytes", False, "UTF-8 texts, each ended by a zero byte; records name one by its byte offset; the one at 0 is empty"),
    Section.chips: (CHIP, False, "limits and memory of the chips; absent without one"),
    Section.launches: (LAUNCH, False, "steps that run on a chip; absent without one"),
    Section.machines: (MACHINE, False, "speed of the chips; absent without one"),
    Section.units: (UNIT, False, "compute units of the chips; absent without one"),
    Section.commands: (COMMAND, False, "queues of the steps; absent without a chip"),
    Section.waits: ("u32", False, "indices of steps"),
    Section.step_names: (STEP_NAME, True, "names of the steps"),
    Section.origins: ("u32", True, "strings: names of model nodes"),
    Section.names: (NAME, True, "values that can be inspected"),
    Section.frozen: (FROZEN, True, "initializers that the model lists as inputs too; absent when there are none"),
    Section.decisions: ("bytes", True, "why nodes run where they do, as the compiler wrote it; for people"),
    Section.powers: (POWER, True, "what the chips draw; absent when no descriptor states it"),
    Section.constants: ("bytes", False, "weights, used in place"),
}
"""Section -> content, whether it is optional, meaning."""


def kernel_id(name: str, variant: str) -> int:
    """FNV-1a (32 bit) of ``name.variant``; how plans name kernels."""
    h = 0x811C9DC5
    for byte in f"{name}.{variant}".encode():
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return h

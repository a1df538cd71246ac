"""A program: ordered kernel calls over views of buffers. What the scheduler produces and the plan writer serializes."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field

import numpy as np

from flaot.ir.types import DType, Frozen, Rounding, TensorType, dense_strides


class Space(enum.IntEnum):
    """Where a buffer lives; the numbers are stored in plans."""

    constant = 0
    arena = 1
    input = 2
    output = 3
    device = 4
    on_chip = 5


@dataclass(eq=False)
class Buffer:
    """A run of bytes. ``data`` is set for constants; ``offset`` (bytes into its space) is set by the memory planner.

    ``index`` is the position among the plan's inputs or outputs for those two spaces, for device memory, on-chip memory and constants
    the device they belong to (0 is the host).
    """

    space: Space
    nbytes: int
    name: str = ""
    data: np.ndarray | None = None
    index: int = 0
    offset: int | None = None


@dataclass(frozen=True)
class View:
    """A strided window on a buffer: what a kernel operand is.

    Element (i0, i1, ...) lies ``offset + dtype.size * sum(i * stride)`` bytes into the buffer. Strides count elements and may be 0
    (broadcast) or negative.
    """

    buffer: Buffer
    dtype: DType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def dense(cls, buffer: Buffer, type: TensorType, layout: tuple[int, ...] | None = None) -> View:
        return cls(buffer, type.dtype, type.shape, dense_strides(type.shape, layout))

    @property
    def elements(self) -> int:
        return math.prod(self.dims)

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        return normal_strides(self.dims, self.strides) == dense_strides(self.dims)

    def same_memory(self, other: View) -> bool:
        """Whether both views show the same elements of the same buffer in the same order."""
        return (
            self.buffer is other.buffer
            and self.offset == other.offset
            and self.dims == other.dims
            and self.dtype.size == other.dtype.size
            and normal_strides(self.dims, self.strides) == normal_strides(other.dims, other.strides)
        )

    def extent(self) -> tuple[int, int]:
        """First and one-past-last byte of the buffer this view can touch; (offset, offset) when empty."""
        if self.elements == 0:
            return self.offset, self.offset
        low = sum(min(0, (d - 1) * s) for d, s in zip(self.dims, self.strides, strict=True))
        high = sum(max(0, (d - 1) * s) for d, s in zip(self.dims, self.strides, strict=True))
        return self.offset + low * self.dtype.size, self.offset + (high + 1) * self.dtype.size

    def reshape(self, dims: tuple[int, ...]) -> View:
        """The same dense bytes under other dimensions; only for row-major views."""
        assert self.is_dense, "reshape of a strided view"
        return View(self.buffer, self.dtype, dims, dense_strides(dims), self.offset)

    def reshaped(self, dims: tuple[int, ...]) -> View | None:
        """The same elements, in row-major order of this view, under other dimensions; None when no strides express that."""
        if self.elements == 0 or math.prod(dims) != self.elements:
            return None
        merged: list[list[int]] = []
        for d, s in zip(self.dims, self.strides, strict=True):
            if d == 1:
                continue
            if merged and merged[-1][1] == d * s:
                merged[-1] = [merged[-1][0] * d, s]
            else:
                merged.append([d, s])
        strides = [0] * len(dims)
        for i in reversed(range(len(dims))):
            if dims[i] == 1:
                continue
            if not merged or merged[-1][0] % dims[i]:
                return None
            size, strides[i] = merged.pop()
            if size > dims[i]:
                merged.append([size // dims[i], strides[i] * dims[i]])
        return View(self.buffer, self.dtype, dims, tuple(strides), self.offset)

    def permute(self, perm: tuple[int, ...]) -> View:
        """Axis i of the result is axis ``perm[i]`` of this view."""
        return View(self.buffer, self.dtype, tuple(self.dims[p] for p in perm), tuple(self.strides[p] for p in perm), self.offset)

    def slice(self, axis: int, start: int, size: int, step: int = 1) -> View:
        """Elements start, start+step, ... (``size`` of them) of one axis; ``step`` may be negative."""
        dims, strides = list(self.dims), list(self.strides)
        offset = self.offset + start * strides[axis] * self.dtype.size
        dims[axis], strides[axis] = size, strides[axis] * step
        return View(self.buffer, self.dtype, tuple(dims), tuple(strides), offset)

    def broadcast(self, shape: tuple[int, ...]) -> View:
        """Numpy broadcasting to ``shape`` with stride 0 on repeated axes."""
        lead = len(shape) - len(self.dims)
        strides = [0] * lead + [0 if d == 1 else s for d, s in zip(self.dims, self.strides, strict=True)]
        return View(self.buffer, self.dtype, tuple(shape), tuple(strides), self.offset)


def normal_strides(dims: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with 0 on axes of size 1, where their value has no meaning."""
    return tuple(0 if d == 1 else s for d, s in zip(dims, strides, strict=True))


class Opcode(enum.IntEnum):
    """What a step does; the numbers are stored in plans."""

    call = 0
    transfer = 1
    dma = 2


@dataclass(frozen=True)
class Launch:
    """What a chip is told about a step beside its operands: the compute unit, and batch, sequence and heads (0 where there are none)."""

    unit: str
    batch: int = 0
    sequence: int = 0
    heads: int = 0


@dataclass(frozen=True)
class Command:
    """When a step may run: its queue, the earlier steps that must be complete beside those before it on its queue, the least
    ``hold`` cycles it takes, and its ``work``: operations at the unit's peak rate, on the host picoseconds."""

    queue: int
    waits: tuple[int, ...] = ()
    work: int = 0
    hold: int = 0


@dataclass
class Step:
    """One kernel call. ``scratch`` is bytes per thread, the first thread's at ``scratch_offset`` of the arena; ``parallel`` says that
    splitting over threads pays. ``device`` is an index into the program's devices; steps on a chip have a ``launch`` and no place in
    the arena for scratch. A transfer moves its one input to its one output in another memory, a dma step within a chip. Every step of
    a program with chips has a ``command``. ``work`` is operations, known while compiling."""

    kernel: str
    variant: str
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    params: bytes = b""
    scratch: int = 0
    scratch_offset: int = 0
    parallel: bool = False
    origin: tuple[str, ...] = ()
    op: str = ""
    device: int = 0
    opcode: Opcode = Opcode.call
    launch: Launch | None = None
    command: Command | None = None
    work: int = field(default=0, compare=False)


@dataclass
class Port:
    """A model input or output: its name and the dense row-major view the caller sees."""

    name: str
    view: View


@dataclass
class Named:
    """An intermediate that survives in memory: the ONNX value name, its view, and the step after which it holds."""

    name: str
    view: View
    step: int


class Transfers(enum.IntEnum):
    """How values pass between host and chip; the numbers are stored in plans."""

    synchronous = 0
    asynchronous = 1
    zero_copy = 2


@dataclass(frozen=True)
class Unit:
    """A compute unit of a chip: ``rate`` operations per 1000 cycles of its ``count`` units together. ``depth`` 0: as the chip's."""

    name: str
    count: int = 1
    launch_cycles: int = 0
    rate: int = 1000
    depth: int = 0


@dataclass(frozen=True)
class Power:
    """What a chip draws: microwatts at rest and at most (0: no cap); femtojoules of a byte of either memory, and of a multiply-accumulate,
    which is two operations, by the number of its element type."""

    idle: int = 0
    cap: int = 0
    on_chip: int = 0
    off_chip: int = 0
    macs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Machine:
    """How fast a chip is. Rates are bytes per 1000 cycles; ``on_chip`` and ``on_chip_peak`` are bytes; ``depth`` is the most commands a
    queue holds (0: no limit), ``dimensions`` how many strided axes one DMA transfer has, ``power`` what it draws when that is stated.
    Queues: DMA channels, then the units in order, then transfers."""

    clock_khz: int
    units: tuple[Unit, ...]
    on_chip: int
    on_chip_rate: int
    off_chip_rate: int
    channels: int = 1
    depth: int = 0
    setup_cycles: int = 0
    latency_cycles: int = 0
    transfer: Transfers = Transfers.synchronous
    link_setup_cycles: int = 0
    link_rate: int = 1000
    bus: int = 0
    dimensions: int = 3
    on_chip_peak: int = 0
    power: Power | None = None

    @property
    def zero_copy(self) -> bool:
        """Whether its transfers move nothing."""
        return self.transfer is Transfers.zero_copy

    @property
    def link_queue(self) -> int:
        return self.channels + len(self.units)

    def unit_queue(self, name: str) -> int:
        """Queue of the unit of that name. Raises ValueError."""
        return self.channels + [u.name for u in self.units].index(name)


@dataclass
class Chip:
    """The limits of a chip, device ``1 + index`` of the plan, as launches on it are held to them, and its memory.

    ``layouts`` are axis orders of rank 4 tensors, ``heads`` what the attention unit lists (empty: any); 0 is no limit.
    ``arena`` and ``lower_bound`` are bytes of the chip's memory for activations.
    """

    name: str
    device_type: str
    alignment: int = 64
    max_rank: int = 0
    max_batch: int = 0
    max_sequence: int = 0
    max_attention: int = 0
    heads: tuple[int, ...] = ()
    dtypes: tuple[DType, ...] = ()
    layouts: tuple[tuple[int, ...], ...] = ()
    rounding: Rounding = Rounding.half_to_even
    flush_denormals: bool = False
    arena: int = 0
    lower_bound: int = 0
    machine: Machine = field(default_factory=lambda: Machine(1_000_000, (), 0, 1000, 1000))


@dataclass
class Program:
    """Everything a plan holds besides its header. ``arena`` and ``lower_bound`` are bytes, ``decisions`` is what the record of the
    compilation makes of itself; plans carry it for people."""

    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    names: list[Named] = field(default_factory=list)
    arena: int = 0
    lower_bound: int = 0
    alignment: int = 64
    frozen: list[Frozen] = field(default_factory=list)
    chips: list[Chip] = field(default_factory=list)
    decisions: bytes = b""


@dataclass(frozen=True)
class DeviceRecord:
    """The chip a plan runs on: names of its descriptor, ``isa`` bits of :data:`flaot.plan.fields.ISA_BITS`, alignment in bytes."""

    name: str
    device_type: str
    isa: int = 0
    alignment: int = 64

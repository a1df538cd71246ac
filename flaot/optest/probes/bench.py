"""Small plans by hand, with every address, stride and element type chosen: what probes are made of.

Each operand comes from the host into the chip's off-chip memory, from there by DMA into its on-chip memory; one operator runs on a unit;
its result goes the same way back. Nothing is left to the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flaot.errors import DeviceError, FlaotError, InternalError, LimitError, PlanError, printable
from flaot.hcd import Hcd, board_of
from flaot.ir.graph import Graph, Place, Value
from flaot.ir.op import Op
from flaot.ir.types import DType, Layout, TensorType, row_major
from flaot.kernels.base import load_all
from flaot.mapping.accumulator import sums_in_half
from flaot.mapping.choice import choose
from flaot.mapping.orders import ChipLayouts
from flaot.optest.probes.asked import least_of
from flaot.plan.program import Buffer, Chip, Command, DeviceRecord, Opcode, Port, Program, Space, Step, View
from flaot.plan.write import write_plan
from flaot.runtime.session import Session
from flaot.schedule.lower import Lowering
from flaot.targets.chip import chip_cpu, chip_limits
from flaot.targets.devices import Devices, host_of

HOST_ALIGNMENT = 64


@dataclass(frozen=True)
class Operand:
    """A tensor of logical ``dims``, whose elements lie at byte ``offset`` of on-chip memory in the order of the axes ``layout``.
    ``data`` has that order; None for results."""

    dims: tuple[int, ...]
    dtype: DType
    offset: int
    data: np.ndarray | None = None
    layout: Layout | None = None

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.dims)) * self.dtype.size

    @property
    def order(self) -> Layout:
        return self.layout if self.layout is not None else row_major(len(self.dims))

    def view(self) -> View:
        """As kernels see it."""
        return View.dense(Buffer(Space.on_chip, self.nbytes, index=1, offset=self.offset), TensorType(self.dtype, self.dims), self.order)

    def flat(self, space: Space, index: int, offset: int) -> View:
        """All its elements as one axis, elsewhere."""
        type = TensorType(self.dtype, (int(np.prod(self.dims)),))
        return View.dense(Buffer(space, self.nbytes, index=index, offset=offset), type)


@dataclass(frozen=True)
class Answer:
    """What the device gave, in the element type it stores; or the sentence why it gave nothing."""

    arrays: tuple[np.ndarray, ...] = ()
    problem: str = ""


@dataclass
class Bench:
    """A device under probing. ``step`` is the alignment in bytes that is known to work, ``broken``
    that nothing does; ``alter`` changes the chip a plan describes to the device, for tests."""

    hcd: Hcd
    adapter: str | None = None
    alter: Callable[[Chip], Chip] = lambda chip: chip

    def __post_init__(self) -> None:
        load_all()
        self.chip = chip_limits(self.hcd, ChipLayouts(self.hcd))
        self.step = max(self.chip.alignment, HOST_ALIGNMENT)
        self.broken = False
        sums = lambda node: sums_in_half(self.hcd, node, node.place)  # noqa: E731 # named for the reader
        self.devices = Devices(host_of(board_of(self.hcd)), {self.hcd.name: chip_cpu(self.hcd)}, sums)

    def room(self, nbytes: int) -> int:
        """Bytes up to the next aligned address."""
        return -(-nbytes // self.step) * self.step

    def opens(self, chip: Chip) -> str:
        """Why the device does not take a small plan for such a chip, or "". Raises what ``require`` does."""
        try:
            Session(self._smallest(chip, chip.dtypes[0]), adapter=self.adapter).close()
        except InternalError:
            raise
        except FlaotError as e:
            self.require(e)
            return e.what
        return ""

    def require(self, failure: FlaotError) -> None:
        """After ``failure``: raises DeviceError, or LimitError when it has no memory, where the device does not even move one element in
        a plan that asks as little as plans can. Then it is busy, lost or broken, and nothing can be said of its descriptor."""
        if isinstance(failure, PlanError):
            return
        least, said = least_of(self.chip), []
        for dtype in self.chip.dtypes:
            try:
                with Session(self._smallest(least, dtype), adapter=self.adapter) as session:
                    session.run(None, {"x0": np.zeros(1, dtype.numpy)})
                return
            except InternalError:
                raise
            except PlanError:
                return
            except FlaotError as e:
                said.append(e)
        kind = LimitError if isinstance(said[0], LimitError) else DeviceError
        found = f"the device does not move a single element: {printable(said[0].what, 300)}"
        raise kind(found, where=self.hcd.name, hint="see to the device and run again, or measure the simulator by --adapter simulator")

    def _smallest(self, chip: Chip, dtype: DType) -> bytes:
        """A plan that moves one element in and out again."""
        there, bench = Operand((1,), dtype, 0), replace(self)
        bench.chip, bench.step = chip, max(chip.alignment, self.step)
        return bench.plan([there], (), [there], 0)

    def run_operator(self, op: Op, inputs: Sequence[Operand], output: Operand, place: Place) -> Answer:
        """The result of one operator on the chip."""
        return self.run(inputs, self.steps_of(op, inputs, output, place), [output])

    def steps_of(self, op: Op, inputs: Sequence[Operand], output: Operand, place: Place) -> list[Step]:
        """What runs on the unit. Raises OpTypeError, UnsupportedError."""
        graph, views = Graph(), dict[int, View]()
        values: list[Value | None] = []
        for operand in inputs:
            value = graph.add_input(f"x{len(values)}", TensorType(_logical(operand.dtype), operand.dims))
            value.layout = operand.order
            views[value.id] = operand.view()
            values.append(value)
        node = graph.add_node(op, values)
        node.place = place
        node.outputs[0].layout = output.order
        views[node.outputs[0].id] = output.view()
        lowering = Lowering(self.devices, lambda v: views[v.id])
        lowering.run(node, choose(node, self.devices.running(node)))
        return lowering.steps

    def run(self, inputs: Sequence[Operand], steps: Sequence[Step], outputs: Sequence[Operand], on_chip: int = 0) -> Answer:
        """Brings the inputs in, runs the steps, brings the outputs out. ``on_chip`` is how much on-chip memory is taken, all that the
        operands touch when 0. Raises what ``require`` does."""
        plan = self.plan(inputs, steps, outputs, on_chip)
        feeds = {f"x{i}": np.ascontiguousarray(o.data).reshape(-1) for i, o in enumerate(inputs) if o.data is not None}
        try:
            with Session(plan, adapter=self.adapter) as session:
                got = session.run(None, feeds)
        except InternalError:
            raise
        except FlaotError as e:
            self.require(e)
            return Answer(problem=e.what)
        shaped = [a.reshape([o.dims[axis] for axis in o.order]) for a, o in zip(got, outputs, strict=True)]
        return Answer(tuple(shaped))

    def plan(self, inputs: Sequence[Operand], steps: Sequence[Step], outputs: Sequence[Operand], on_chip: int) -> bytes:
        """The bytes of the plan."""
        program, offset = Program(alignment=HOST_ALIGNMENT), 0
        before: list[Step] = []
        after: list[Step] = []
        for i, operand in enumerate((*inputs, *outputs)):
            incoming = i < len(inputs)
            space, index = (Space.input, i) if incoming else (Space.output, i - len(inputs))
            port = operand.flat(space, index, 0)
            near, far = operand.flat(Space.on_chip, 1, operand.offset), operand.flat(Space.device, 1, offset)
            offset += self.room(operand.nbytes)
            name = f"{'x' if incoming else 'y'}{index}"
            (program.inputs if incoming else program.outputs).append(Port(name, port))
            if incoming:
                before += [_step(Opcode.transfer, port, far), _step(Opcode.dma, far, near)]
            else:
                after += [_step(Opcode.dma, near, far), _step(Opcode.transfer, far, port)]
        top = max(o.offset + o.nbytes for o in (*inputs, *outputs))
        machine = replace(self.chip.machine, on_chip_peak=on_chip or top)
        chip = replace(self.chip, alignment=self.step, arena=offset, lower_bound=offset, machine=machine)
        program.chips = [self.alter(chip)]
        for step in (*before, *steps, *after):
            last = (len(program.steps) - 1,) if program.steps else ()
            program.steps.append(replace(step, command=Command(self._queue(step), last)))
        return write_plan(program, model_digest=bytes(32), hcd_digest=self.hcd.digest, device=DeviceRecord("host", "cpu"))

    def _queue(self, step: Step) -> int:
        machine = self.chip.machine
        if step.opcode is Opcode.transfer:
            return machine.link_queue
        return 0 if step.opcode is Opcode.dma or step.launch is None else machine.unit_queue(step.launch.unit)


def _step(opcode: Opcode, source: View, target: View) -> Step:
    return Step(opcode.name, "", (source,), (target,), op=opcode.name.capitalize(), device=1, opcode=opcode)


def _logical(dtype: DType) -> DType:
    return DType.float32 if dtype in (DType.float16, DType.bfloat16) else dtype

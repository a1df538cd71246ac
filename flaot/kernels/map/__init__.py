"""One fused kernel for everything element by element: a short program run over chunks that stay in the L1 cache."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from flaot.ir.graph import HOST, Node
from flaot.ir.op import Op
from flaot.ir.ops.cast import Cast
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.fused_map import FusedMap
from flaot.ir.ops.fused_map import Step as MapStep
from flaot.ir.types import DType, TensorType
from flaot.kernels.base import Builder, Implementation, Kernel, Param, Storage
from flaot.kernels.common.cuts import every_axis, record
from flaot.kernels.common.strides import collapse
from flaot.kernels.map.codes import Code, Form
from flaot.plan.program import Step, View


def room(step: Step) -> int:
    """The registers, and a run of each operand that is not dense; any may come to lie so."""
    p = record(step)
    sizes = [p["width"]] * p["registers"] + [v.dtype.size for v in (*step.inputs, *step.outputs)]
    return sum(-(-p["chunk"] * s // 64) * 64 for s in sizes)


MAP = Kernel(
    "map",
    params=(Param("chunk"), Param("registers"), Param("width"), Param("code", "u32", 0)),
    variants=("generic", "avx2", "avx512"),
    enums={"map": Code},
    cuts=every_axis,
    room=room,
)
"""``code`` is 8 words per instruction: code, types, destination, three sources, two arguments; see map.h."""

REGISTER = 32
"""First number of a register among the sources of an instruction."""

GATHERED = 2048
"""Elements up to which an operand that is read against its order is gathered by the kernel itself."""

HALVES = (DType.float16, DType.bfloat16)


@dataclass
class Program:
    """Instructions under construction. A value is an operand's number or ``REGISTER`` + a register."""

    operands: list[DType]
    words: list[list[int]] = field(default_factory=list)
    registers: int = 0
    width: int = 4
    _free: list[int] = field(default_factory=list)
    _sizes: dict[int, int] = field(default_factory=dict)

    def emit(
        self, code: Code, type: DType, result: DType, sources: Sequence[int], args: Sequence[float] = (), done: Sequence[int] = ()
    ) -> int:
        """Appends an instruction and returns its register; the registers among ``done`` are not read afterwards.

        The result may take the place of one of them, but only of elements of the same size: others lie elsewhere.
        """
        free = sorted({v - REGISTER for v in done if v >= REGISTER})
        self._free += [r for r in free if self._sizes[r] == result.size]
        if not self._free:
            self._free.append(self.registers)
            self.registers += 1
        register = self._free.pop()
        self._free += [r for r in free if self._sizes[r] != result.size]
        self._sizes[register] = result.size
        self.width = max(self.width, result.size)
        numbers = [struct.unpack("<I", struct.pack("<f", a))[0] for a in (*args, 0.0, 0.0)][:2]
        kinds = int(type) | (int(result) << 8 if code.form in (Form.cast, Form.quantize) else 0)
        self.words.append([int(code), kinds, register, *(*sources, 0, 0, 0)[:3], *numbers])
        return REGISTER + register

    def lower(self, b: Builder, inputs: Sequence[View], output: View) -> None:
        """Appends the step; inputs are broadcast to the output's dims here."""
        views = collapse([*(v.broadcast(output.dims) for v in inputs), output])
        views = collapse([*(in_order(b, v) for v in views[:-1]), views[-1]])
        self._store_last()
        chunk = 1024 if self.registers * self.width <= 16 else 512
        b.step(
            MAP, views[:-1], views[-1:], scratch=self._scratch(views, chunk), parallel=output.elements > 50_000,
            chunk=chunk, registers=self.registers, width=self.width, code=[w for i in self.words for w in i],
        )

    def _store_last(self) -> None:
        """The last instruction writes the output and needs no register."""
        self.words[-1][2] = 0
        self.registers = max((w[2] + 1 for w in self.words[:-1]), default=0)

    def _scratch(self, views: Sequence[View], chunk: int) -> int:
        sizes = [self.width] * self.registers + [v.dtype.size for v in views if not v.is_dense]
        return sum(-(-chunk * s // 64) * 64 for s in sizes)


def in_order(b: Builder, view: View) -> View:
    """A view whose last axis is not its fastest, copied into the order it is read in: transposing in tiles beats gathering."""
    if view.elements < GATHERED or view.strides[-1] in (0, 1):
        return view
    kept = [i for i, s in enumerate(view.strides) if s != 0]
    dims, strides = tuple(view.dims[i] for i in kept), tuple(view.strides[i] for i in kept)
    target = b.temp(view.dtype, dims)
    b.copy(View(view.buffer, view.dtype, dims, strides, view.offset), target)
    back = dict(zip(kept, target.strides, strict=True))
    return View(target.buffer, view.dtype, view.dims, tuple(back.get(i, 0) for i in range(len(view.dims))), target.offset)


def add_op(program: Program, op: _Elementwise, sources: Sequence[int], types: Sequence[DType], done: Sequence[int]) -> int:
    """One op on values of these types. Half-precision floats are computed in float32 and rounded after each op."""
    code, result = Code[op.code], op_result(op, types)
    half = [t in HALVES for t in types]
    if code is Code.cast or not any(half) or code is Code.where:
        return program.emit(code, compute_type(code, types), result, sources, op.arguments, done)
    wide = [
        program.emit(Code.cast, t, DType.float32, [s], done=[s] if s in done and s not in sources[i + 1 :] else []) if h else s
        for i, (s, t, h) in enumerate(zip(sources, types, half, strict=True))
    ]
    after = [w for w, h in zip(wide, half, strict=True) if h] + [s for s, h in zip(sources, half, strict=True) if not h and s in done]
    y = program.emit(code, DType.float32, DType.float32 if result in HALVES else result, wide, op.arguments, after)
    return program.emit(Code.cast, DType.float32, result, [y], done=[y]) if result in HALVES else y


def op_result(op: _Elementwise, types: Sequence[DType]) -> DType:
    """The element type an op gives."""
    return op.result([TensorType(t, ()) for t in types])


def compute_type(code: Code, types: Sequence[DType]) -> DType:
    """The type T of an instruction."""
    return types[1] if code.form is Form.where else types[0]


def widened(types: Sequence[DType]) -> list[DType]:
    """The element types a chip computes on: it gets operands in half precision as float32, and narrows the result."""
    return [DType.float32 if t in HALVES else t for t in types]


def wide_op(op: _Elementwise) -> _Elementwise:
    """The op with a result that a chip computes."""
    return Cast(DType.float32) if isinstance(op, Cast) and op.to in HALVES else op


class _MapWay(Implementation):
    """Any storage; the output may take the place of any operand of its type."""

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def in_place(self, node: Node) -> tuple[int, ...]:
        out = node.outputs[0].type
        return tuple(i for i, v in enumerate(node.inputs) if v is not None and v.type == out)

    def steps(self, op: Op, inputs: int) -> tuple[MapStep, ...]:
        raise NotImplementedError

    def lower(self, node: Node, b: Builder) -> None:
        types = [t.dtype for t in node.input_types if t is not None]
        steps = self.steps(node.op, len(types))
        if node.place != HOST:
            types, steps = widened(types), tuple((wide_op(op), arguments) for op, arguments in steps)
        last = {a: i for i, (_, arguments) in enumerate(steps) for a in arguments}
        program, known, at = Program(types), list(types), list(range(len(types)))
        for i, (op, arguments) in enumerate(steps):
            kinds, sources = [known[a] for a in arguments], [at[a] for a in arguments]
            at.append(add_op(program, op, sources, kinds, [at[a] for a in arguments if last[a] == i]))
            known.append(op_result(op, kinds))
        program.lower(b, [b.view(v) for v in node.inputs], b.view(node.outputs[0]))


class MapWay(_MapWay):
    """An elementwise op is the one-step program."""

    op = _Elementwise

    def steps(self, op: Op, inputs: int) -> tuple[MapStep, ...]:
        assert isinstance(op, _Elementwise)
        return ((op, tuple(range(inputs))),)


class FusedMapWay(_MapWay):
    op = FusedMap

    def steps(self, op: Op, inputs: int) -> tuple[MapStep, ...]:
        assert isinstance(op, FusedMap)
        return op.steps

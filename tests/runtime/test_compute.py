"""What the simulator's units compute: vector kernels agree with the portable ones within float16's rounding, and no result depends on the
part of the work a launch does."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

import flaot
from flaot.ir.op import Op
from flaot.ir.ops.conv import Act
from flaot.ir.ops.matmul import FusedMatMul, Gemm, MatMul
from flaot.ir.types import DType, Rounding
from flaot.plan.fields import kernel_id
from flaot.plan.program import Buffer, Space, Step, View
from flaot.runtime import native
from tests.kernels import parts
from tests.kernels.one_node import build
from tests.kernels.parts import Memory
from tests.kernels.test_tiling import CASES, f, fused
from tests.runtime.test_half import HALVES, INFINITY, at, hard_numbers

pytestmark = pytest.mark.skipif(not hasattr(native.library(), "fl_plane_widen"), reason="built for a CPU without AVX2")

Case = tuple[Op, Sequence[np.ndarray | None]]
LARGE: dict[str, Case] = {
    "stem": fused((1, 3, 30, 29), (40, 3, 7, 7), (2, 2), (3, 3, 3, 3), act=Act.clamp),
    "three panels of segments": fused((1, 300, 5, 9), (150, 300, 1, 1), (1, 1), (0, 0, 0, 0), residual=True),
    "strided points": fused((2, 24, 11, 10), (33, 24, 1, 1), (2, 2), (0, 0, 0, 0), act=Act.hard_swish),
    "one channel": fused((1, 1, 12, 21), (17, 1, 3, 3), (1, 1), (1, 1, 1, 1), residual=True),
    "one channel to one": fused((1, 1, 12, 21), (1, 1, 9, 2), (1, 1), (4, 1, 4, 0), residual=True),
    "depthwise with residual": fused((1, 37, 9, 14), (37, 1, 5, 5), (2, 2), (2, 2, 2, 2), 37, Act.silu, True),
    "wide depthwise": fused((1, 19, 9, 14), (19, 1, 2, 9), (1, 1), (0, 4, 1, 4), 19, Act.prelu, True),
    "line": fused((2, 20, 50), (35, 20, 9), (1,), (4, 4), act=Act.gelu),
    "row of a product": (MatMul(), [f(1, 600), f(600, 100)]),
    "products of their own": (MatMul(), [f(3, 2, 40, 33), f(3, 2, 33, 70)]),
    "shared products": (MatMul(), [f(3, 2, 9, 33), f(33, 70)]),
    "scaled and added": (Gemm(0.5, 2.0, True, True), [f(290, 21), f(70, 290), f(70)]),
    "activated": (FusedMatMul(False, True, 0.25, Act.sigmoid), [f(2, 50, 80), f(2, 65, 80), f(65), f(2, 50, 65)]),
}
ALL: dict[str, Case] = {name: (op, inputs) for name, (op, inputs, _) in CASES.items()} | LARGE


def sim_call(
    kernel: int, inputs: Sequence[View], outputs: Sequence[View], memory: Memory, params: bytes, scratch: int, threads: int = 1,
    portable: bool = False,
) -> int:
    """``native.call_kernel`` as the simulator computes it, rounding half to even."""
    views = [*inputs, *outputs]
    refs = (ctypes.POINTER(native.CTensor) * len(views))(*[ctypes.pointer(native.c_tensor(v)) for v in views])
    places = (ctypes.c_void_p * len(views))(*[memory[id(v.buffer)].ctypes.data + v.offset for v in views])
    status: int = native.library().fl_sim_call(
        ctypes.c_uint32(kernel), refs, places, ctypes.c_uint32(len(inputs)), ctypes.c_uint32(len(outputs)), params,
        ctypes.c_size_t(len(params)), ctypes.c_size_t(scratch), ctypes.c_uint32(0), ctypes.c_bool(False), ctypes.c_uint32(threads),
        ctypes.c_bool(portable),
    )
    return status


def narrowed(case: Case, dtype: DType, last: bool) -> Iterator[tuple[Step, Memory]]:
    """The steps of an op on float32, stored in a half type, and the bytes of what they read and write."""
    steps, memory = parts.lowered(*case, ("generic",), last)
    stored: Memory = {}
    twins: dict[int, Buffer] = {}
    for step in steps:
        for view in (*step.inputs, *step.outputs):
            key, data = id(view.buffer), memory[id(view.buffer)]
            if key in twins:
                continue
            twins[key] = Buffer(Space.arena, view.buffer.nbytes)
            stored[id(twins[key])] = narrow(data.view(np.float32), dtype) if view.dtype is DType.float32 else data
    for step in steps:
        yield replace(step, inputs=tuple(half(v, twins, dtype) for v in step.inputs),
                      outputs=tuple(half(v, twins, dtype) for v in step.outputs)), stored  # fmt: skip


def half(view: View, twins: dict[int, Buffer], dtype: DType) -> View:
    view = replace(view, buffer=twins[id(view.buffer)])
    return replace(view, dtype=dtype, offset=view.offset // 2) if view.dtype is DType.float32 else view


def narrow(x: np.ndarray, dtype: DType) -> np.ndarray:
    bits = x.astype(np.float16) if dtype is DType.float16 else (x.view(np.uint32) >> 16).astype(np.uint16)
    return np.ascontiguousarray(bits).view(np.uint8)


def compute(step: Step, memory: Memory, **how: bool | int) -> Memory:
    out = {k: a.copy() for k, a in memory.items()}
    name = kernel_id(step.kernel, step.variant)
    status = sim_call(name, step.inputs, step.outputs, out, step.params, step.scratch, **how)  # type: ignore[arg-type]
    assert status == 0
    return out


def floats(view: View, memory: Memory) -> np.ndarray:
    bits = parts.array(view, memory)
    return bits.view(np.float16).astype(np.float32) if view.dtype is DType.float16 else (bits.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("last", [False, True], ids=["planes", "channels last"])
@pytest.mark.parametrize("name", ALL)
def test_no_result_depends_on_parts(name: str, last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "call_kernel", sim_call)
    for step, memory in narrowed(ALL[name], DType.float16, last):
        parts.check(step, memory, fewer=name in LARGE)
        parts.run(step, memory)


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
@pytest.mark.parametrize("name", ALL)
def test_vector_kernels_agree_with_portable_ones(name: str, dtype: DType) -> None:
    """Within one rounding of the result and float32's error of sums; with two threads to the bit."""
    unit = 2.0**-10 if dtype is DType.float16 else 2.0**-7
    for last in (False, True):
        for step, memory in narrowed(ALL[name], dtype, last):
            slow, fast, two = compute(step, memory, portable=True), compute(step, memory), compute(step, memory, threads=2)
            for view in step.outputs:
                if view.dtype is dtype:
                    np.testing.assert_allclose(floats(view, fast), floats(view, slow), rtol=unit, atol=1e-4)
                np.testing.assert_array_equal(parts.array(view, fast), parts.array(view, two))
            memory.update(slow)


def test_a_session_lends_its_threads() -> None:
    """And results do not depend on how many there are."""
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((1, 16, 40, 40), np.float32), rng.standard_normal((32, 16, 3, 3), np.float32) / 12
    model, feeds = build("Conv", [x, w], constant=(1,), pads=[1, 1, 1, 1])
    npu, cpu = (flaot.compile(model.SerializeToString(), chip).plan for chip in ("npu_v3", "generic_cpu"))
    (one,), (two,) = (flaot.Session(npu, threads=n).run(feeds) for n in (1, 2))
    (host,) = flaot.Session(cpu).run(feeds)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, host, rtol=2e-3, atol=5e-3)


SHAPES = ((1, 1), (1, 23), (23, 1), (7, 9), (8, 16), (13, 40), (64, 5))


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_matrices_widen_and_narrow_as_the_core_does(dtype: DType) -> None:
    """Rows adjacent, columns adjacent, neither, broadcast and backwards; nothing around a matrix is written."""
    lib, rng = native.library(), np.random.default_rng(7)
    stored = rng.integers(0, 65536, 20000).astype(np.uint16)
    for rows, columns in SHAPES:
        for down, right in ((columns, 1), (1, rows), (columns + 3, 1), (1, rows + 5), (2 * columns, 2), (0, 1), (1, 0), (-1, 30), (30, -1)):
            matrix = np.array([rows, columns, down, right], np.int64)
            index = 9000 + np.arange(rows)[:, None] * down + np.arange(columns) * right
            wide = np.full((rows, columns + 2), 7, np.float32)
            lib.fl_plane_widen(int(dtype), at(matrix), at(stored[9000:]), at(wide), ctypes.c_int64(columns + 2), None)
            np.testing.assert_array_equal(wide[:, :columns].view(np.uint32), core_wide(stored[index], dtype).view(np.uint32))
            assert (wide[:, columns:] == 7).all()
            if index.size != np.unique(index).size:
                continue
            back = stored.copy()
            x = rng.standard_normal((rows, columns + 2), np.float32)
            lib.fl_plane_narrow(int(dtype), 0, ctypes.c_bool(False), at(matrix), at(x), ctypes.c_int64(columns + 2), at(back[9000:]))
            expected = stored.copy()
            expected[index] = core_narrow(np.ascontiguousarray(x[:, :columns]), dtype, Rounding.half_to_even, False)
            np.testing.assert_array_equal(back, expected)


def core_wide(bits: np.ndarray, dtype: DType) -> np.ndarray:
    out = np.zeros(bits.shape, np.float32)
    bits = np.ascontiguousarray(bits)
    native.library().fl_widen_run(int(dtype), at(bits), ctypes.c_int64(1), at(out), ctypes.c_int64(1), ctypes.c_int64(bits.size))
    return out


def core_narrow(x: np.ndarray, dtype: DType, mode: Rounding, flush: bool) -> np.ndarray:
    out = np.zeros(x.shape, np.uint16)
    view = View(Buffer(Space.arena, out.nbytes), dtype, (x.size,), (1,), 0)
    native.library().fl_narrow(ctypes.byref(native.c_tensor(view)), at(out), at(x), int(mode), ctypes.c_bool(flush))
    return out


@pytest.mark.parametrize("flush", [False, True], ids=["denormals", "flush"])
@pytest.mark.parametrize("mode", Rounding, ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_every_number_widens_and_narrows_as_in_the_core(dtype: DType, mode: Rounding, flush: bool) -> None:
    """All halves; all ties and their neighbours, both signs, NaN of every kind, infinities and random numbers."""
    bits = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    all_of_them = np.array([1, bits.size, bits.size, 1], np.int64)
    wide = np.zeros(bits.size, np.float32)
    native.library().fl_plane_widen(int(dtype), at(all_of_them), at(bits), at(wide), ctypes.c_int64(bits.size), None)
    np.testing.assert_array_equal(wide.view(np.uint32), core_wide(bits, dtype).view(np.uint32))
    assert np.isnan(wide).sum() == 2 * (0x7FFF - INFINITY[dtype])
    ties, random = hard_numbers(dtype)[0], np.random.default_rng(5).integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32)
    odd = np.array([0x7F800001, 0xFF801234, 0x7FC00000, 0x7FFFFFFF, 1, 0x80000001, 0x477FF000, 0x33000000, 0x33000001], np.uint32)
    x = np.concatenate([ties, -ties, random.view(np.float32), odd.view(np.float32), wide])
    out = np.zeros(x.size, np.uint16)
    matrix = np.array([1, x.size, x.size, 1], np.int64)
    native.library().fl_plane_narrow(int(dtype), int(mode), ctypes.c_bool(flush), at(matrix), at(x), ctypes.c_int64(x.size), at(out))
    np.testing.assert_array_equal(out, core_narrow(x, dtype, mode, flush))

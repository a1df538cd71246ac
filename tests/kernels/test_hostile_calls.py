"""Calls that once wrote outside their operands or had no defined result; found by tests/runtime/fuzz/calls.c, which runs many more."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from flaot.ir.types import DType
from flaot.kernels.base import KERNELS, load_all
from flaot.plan.fields import ISA_BITS, kernel_id
from flaot.plan.program import Buffer, Space, View
from flaot.runtime import native

F32 = DType.float32
GUARD = 4096


def call(kernel: str, inputs: list[tuple], outputs: list[tuple], scratch: int = 0, **params) -> list[np.ndarray]:
    """Runs every variant this CPU has on operands (dims, strides, data or None) between guards; the generic outputs."""
    load_all()
    results = []
    for variant in reversed(KERNELS[kernel].variants):
        if not variant_runs(variant):
            continue
        views, memory = [], {}
        for dims, strides, data in (*inputs, *outputs):
            data = np.full(max(int(np.prod(dims)), 0), 7, np.float32) if data is None else data
            block = np.full(2 * GUARD + data.nbytes, 1 + len(views), np.uint8)  # so that a copied guard shows
            block[GUARD : GUARD + data.nbytes] = data.view(np.uint8)
            view = View(Buffer(Space.arena, block.nbytes), DType.int64 if data.dtype == np.int64 else F32, dims, strides, GUARD)
            memory[id(view.buffer)] = block
            views.append(view)
        n = len(inputs)
        assert native.call_kernel(
            kernel_id(kernel, variant), views[:n], views[n:], memory, KERNELS[kernel].pack(**params), scratch, parts=3
        ) in (0, 0x401), variant
        for i, view in enumerate(views):
            block = memory[id(view.buffer)]
            assert (block[:GUARD] == 1 + i).all() and (block[-GUARD:] == 1 + i).all(), variant
        results = [memory[id(v.buffer)][GUARD:-GUARD].view(np.float32) for v in views[n:]]
    return results


def variant_runs(variant: str) -> bool:
    return variant == "generic" or bool(native.library().fl_host_isa() & ISA_BITS[variant])


@pytest.mark.parametrize("dims", [(6, 15, 0), (0, 15, 8), (6, 0, 8)])
def test_a_window_without_elements(dims: tuple[int, ...]) -> None:
    operand = (dims, (15, 1, 1), None)
    call("norm_f32", [(dims, (15, 1, 1), np.empty(0, np.float32))], [operand], axes=6, mode=0, has=0, epsilon=1e-5)


@pytest.mark.parametrize("kernel", ["resize_f32", "resize_nearest"])
def test_resizing_empty_pixels(kernel: str) -> None:
    empty = np.empty(0, np.float32)
    common = {"rows": -1, "columns": 0, "inner": 1}
    table = [*range(40)]
    if kernel == "resize_f32":
        weights = struct.unpack("<40i", struct.pack("<40f", *[1.0] * 40))
        common |= {"row_taps": 0, "column_taps": 1, "fill": 0.0, "table": [*table, *weights]}
    else:
        common |= {"fill": [0, 0], "table": table}
    call(kernel, [((40, 0), (1, 1), empty)], [((40, 0), (1, 1), empty)], **common)


def test_a_region_of_endless_negative_size() -> None:
    image, batch = np.ones(16, np.float32), np.zeros(1, np.int64)
    for far in (-1e30, -np.inf, np.nan, 1e30):
        region = np.array([0, 0, far, far], np.float32)
        call(
            "roi_align_f32", [((1, 1, 4, 4), (16, 16, 4, 1), image), ((1, 4), (4, 1), region), ((1,), (1,), batch)],
            [((1, 1, 2, 2), (4, 4, 2, 1), None)], sampling=0, scale=1.0, half_pixel=1, maximum=0,
        )


@pytest.mark.parametrize("log", [0, 1])
def test_softmax_of_what_is_no_number(log: int) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1.0, 3e38, -3e38] * 5, np.float32)
    (y,) = call("softmax_f32", [((40,), (1,), x)], [((40,), (1,), None)], axis=0, log=log)
    assert np.isnan(y).any()


@pytest.mark.parametrize("offset", [-(2**31), -1, 2**31 - 1])
@pytest.mark.parametrize("keys", [0, 5])
def test_attention_to_keys_out_of_reach(offset: int, keys: int) -> None:
    q, k = ((1, 2, 3, 4), (0, 12, 4, 1), None), ((1, 1, keys, 4), (0, 0, 4, 1), np.ones(4 * keys, np.float32))
    common = {"scale": np.nan, "softcap": -1.0, "causal": -7, "offset": offset, "zero_blind": 3}
    call("attention_f32", [q, k, k], [q], scratch=4 * (keys + 8), **common)

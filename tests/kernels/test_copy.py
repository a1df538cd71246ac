"""The strided copy: transposes and slices of every element size against numpy, on every variant."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.ops.arithmetic import Add
from flaot.ir.ops.expand import Expand
from flaot.ir.ops.scatter import replaced_run
from flaot.ir.ops.slice import Slice
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import DType
from flaot.kernels.base import load_all
from flaot.kernels.common.strides import collapse
from flaot.plan.program import Buffer, Space, View
from flaot.schedule.evaluate import evaluate
from tests.kernels.reference import CHIPS

load_all()

SIZES = [np.uint8, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("seed", range(8))
def test_transposes(seed: int, dtype: type, chip: str) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 6))
    x = rng.integers(0, 250, [int(d) for d in rng.choice([1, 2, 3, 7, 8, 15, 16, 17, 40], rank)]).astype(dtype)
    perm = tuple(int(p) for p in rng.permutation(rank))
    for parts in (1, 3):
        (got,) = evaluate(Transpose(perm), [x], CHIPS[chip], parts=parts)
        np.testing.assert_array_equal(got, x.transpose(perm))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 300), (300, 1), (16, 16), (31, 47), (64, 257), (5, 5), (300, 300)])
def test_matrices(rows: int, columns: int, chip: str) -> None:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    np.testing.assert_array_equal(evaluate(Transpose((1, 0)), [x], CHIPS[chip], parts=3)[0], x.T)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", SIZES)
def test_slices_and_repeats(dtype: type, chip: str) -> None:
    x = np.arange(7 * 40 * 33).reshape(7, 40, 33).astype(dtype)
    cut = Slice((0, 1, 2), (6, 1, 30), (-2, 3, -1), (4, 13, 31))
    np.testing.assert_array_equal(evaluate(cut, [x], CHIPS[chip])[0], x[6::-2, 1:40:3, 30::-1])
    np.testing.assert_array_equal(evaluate(Slice((2,), (0,), (1,), (0,)), [x], CHIPS[chip])[0], x[:, :, :0])
    row = x[:1, :1]
    np.testing.assert_array_equal(evaluate(Expand((3, 5, 33)), [row], CHIPS[chip])[0], np.broadcast_to(row, (3, 5, 33)))


def test_collapse() -> None:


    buffer = Buffer(Space.arena, 10**6)

    def view(dims: tuple[int, ...], strides: tuple[int, ...]) -> View:
        return View(buffer, DType.float32, dims, strides)

    x, y = collapse([view((2, 1, 3, 4, 5), (60, 7, 20, 5, 1)), view((2, 1, 3, 4, 5), (60, 0, 20, 5, 1))])
    assert (x.dims, x.strides, y.strides) == ((120,), (1,), (1,))
    x, y = collapse([view((3, 4, 5), (0, 5, 1)), view((3, 4, 5), (20, 5, 1))])
    assert (x.dims, x.strides, y.strides) == ((3, 20), (0, 1), (20, 1))
    x, y = collapse([view((3, 4, 5), (1, 3, 12)), view((3, 4, 5), (1, 3, 12))])
    assert (x.dims, x.strides) == ((60,), (1,))
    assert collapse([view((), ()), view((), ())])[0].dims == ()
    assert collapse([view((4, 0), (1, 1)), view((4, 0), (1, 1))])[0].dims == (0,)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 31, 32, 33, 100])
def test_every_other_element(size: int, chip: str) -> None:
    x = np.arange(3 * size, dtype=np.float32).reshape(3, size)
    for start in (0, 1):
        want = x[:, start::2]
        (got,) = evaluate(Slice((1,), (start if want.size else 0,), (2,), (want.shape[1],)), [x], CHIPS[chip])
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("chip", CHIPS)
def test_map_of_a_transposed_operand(chip: str) -> None:
    """The operand is first copied into the order it is read in, repeated axes once."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 40, 60, 3)).astype(np.float32)
    b = rng.standard_normal((40, 60, 3)).astype(np.float32)
    for last in (False, True):
        (got,) = evaluate(Add(), [x, b], CHIPS[chip], last=last)
        np.testing.assert_array_equal(got, x + b)


def test_slice_assignment_is_a_concat() -> None:
    grid = np.stack(np.meshgrid(np.arange(2), np.arange(1, 3), np.arange(3), indexing="ij"), -1)
    assert replaced_run(grid, (2, 5, 3)) == (1, 1, 2)
    assert replaced_run(grid - np.array([2, 5, 3]), (2, 5, 3)) == (1, 1, 2)
    assert replaced_run(grid[:, ::-1], (2, 5, 3)) is None
    assert replaced_run(grid, (3, 5, 3)) is None
    assert replaced_run(np.array([[3], [4]]), (6, 2)) == (0, 3, 2)
    assert replaced_run(np.array([[3], [3]]), (6, 2)) is None
    assert replaced_run(np.array([[-7]]), (6, 2)) is None

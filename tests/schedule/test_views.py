"""Views: reshaping without a copy agrees with numpy wherever numpy finds strides too."""

import random

import numpy as np
import pytest

from flaot.ir.types import DType, TensorType
from flaot.plan.program import Buffer, Space, View


def view_of(array):
    item = array.itemsize
    return View(Buffer(Space.arena, 0), DType.float32, array.shape, tuple(s // item for s in array.strides))


def shows(view, memory):
    data = np.lib.stride_tricks.as_strided(memory, view.dims, [s * 4 for s in view.strides])
    return data


def random_array(rng):
    shape = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 5))]
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    axes = list(range(len(shape)))
    rng.shuffle(axes)
    return array.transpose(axes), array


def random_shape(rng, elements):
    shape, left = [], elements
    while left > 1:
        d = rng.choice([d for d in range(1, left + 1) if left % d == 0])
        shape.append(d)
        left //= d
    return tuple(shape) or (1,)


@pytest.mark.parametrize("seed", range(300))
def test_reshaped_shows_what_a_copy_would_hold(seed):
    rng = random.Random(seed)
    array, memory = random_array(rng)
    dims = random_shape(rng, array.size)
    view = view_of(array).reshaped(dims)
    if view is not None:
        assert np.array_equal(shows(view, memory), array.reshape(dims))
    else:
        assert not np.shares_memory(array.reshape(dims), memory)


def test_channel_shuffle_of_a_channels_last_tensor_is_a_view():
    x = View.dense(Buffer(Space.arena, 0), TensorType(DType.float32, (1, 6, 2, 2)), (0, 2, 3, 1))
    halves = x.reshaped((3, 2, 4))
    assert halves is not None and halves.strides == (2, 1, 6)
    assert x.reshaped((6, 2, 2)) is not None and x.reshaped((24,)) is None

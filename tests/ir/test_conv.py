"""Conv and FusedConv refuse what they cannot mean, and infer what they can."""

from __future__ import annotations

import pytest

from flaot.ir.op import OpTypeError
from flaot.ir.ops.conv import Act, Conv, FusedConv
from flaot.ir.types import DType, TensorType


def f32(*shape: int) -> TensorType:
    return TensorType(DType.float32, shape)


@pytest.mark.parametrize(
    ("op", "x", "w", "sentence"),
    [
        (Conv((0,), (0, 0), (1,)), f32(1, 2, 9), f32(4, 2, 3), "strides"),
        (Conv((1,), (0, 0), (0,)), f32(1, 2, 9), f32(4, 2, 3), "dilations"),
        (Conv((1,), (-1, 0), (1,)), f32(1, 2, 9), f32(4, 2, 3), "pads"),
        (Conv((1,), (0,), (1,)), f32(1, 2, 9), f32(4, 2, 3), "pads"),
        (Conv((1,), (0, 0), (1,), 0), f32(1, 2, 9), f32(4, 2, 3), "group 0"),
        (Conv((1,), (0, 0), (1,), 3), f32(1, 6, 9), f32(4, 2, 3), "multiple of group"),
        (Conv((1,), (0, 0), (1,), 2), f32(1, 2, 9), f32(4, 2, 3), "input channels"),
        (Conv((1,), (1, 0), (3,)), f32(1, 2, 5), f32(4, 2, 3), "larger than the padded input"),
        (Conv((1, 1), (0,) * 4, (1, 1)), f32(1, 2, 5, 5), f32(4, 2, 3), "rank"),
        (FusedConv((1,), (0, 0), (1,), 1, Act.prelu), f32(1, 2, 5), f32(4, 2, 3), "slope"),
    ],
)
def test_refuses(op: Conv, x: TensorType, w: TensorType, sentence: str) -> None:
    inputs = [x, w, None, None, None] if isinstance(op, FusedConv) else [x, w, None]
    with pytest.raises(OpTypeError, match=sentence):
        op.infer(inputs)


def test_infers() -> None:
    assert Conv((2, 1), (1, 2, 0, 2), (1, 2)).infer([f32(3, 4, 9, 7), f32(6, 4, 3, 3), f32(6)]) == (f32(3, 6, 4, 7),)

"""Element types, tensor types and memory layouts of the IR."""

from __future__ import annotations

import builtins
import enum
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Importing numpy takes longer than running a small plan; `flaot run` does without.
    import numpy as np

MAX_RANK = 8
"""Highest tensor rank of the IR, the plan format and the kernels."""

MAX_ELEMENTS = 2**31 - 1
"""Highest element count of one tensor: dimensions and strides are signed 32-bit in plans."""


class DType(enum.IntEnum):
    """Element type; the numbers are ONNX's ``TensorProto.DataType``, in Python, C and plans alike."""

    float32 = 1
    uint8 = 2
    int8 = 3
    uint16 = 4
    int16 = 5
    int32 = 6
    int64 = 7
    bool = 9
    float16 = 10
    float64 = 11
    uint32 = 12
    uint64 = 13
    bfloat16 = 16

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]

    @property
    def numpy(self) -> np.dtype:
        """The numpy dtype; bfloat16 is carried as its bits (uint16)."""
        return _numpy_dtypes()[self]

    @property
    def is_float(self) -> builtins.bool:
        return self in (DType.float32, DType.float64, DType.float16, DType.bfloat16)

    @property
    def is_signed(self) -> builtins.bool:
        return self.is_float or self in (DType.int8, DType.int16, DType.int32, DType.int64)

    @classmethod
    def of(cls, dtype: np.dtype) -> DType:
        """The element type of a numpy dtype; KeyError for a dtype flaot does not carry."""
        import numpy as np

        return _from_numpy()[np.dtype(dtype)]


class Rounding(enum.IntEnum):
    """How a number between two numbers of an element type becomes one of them; the numbers are the same in Python, C and plans.

    ``half_up`` sends ties toward plus infinity, ``floor`` everything toward minus infinity.
    """

    half_to_even = 0
    half_away_from_zero = 1
    half_up = 2
    floor = 3
    toward_zero = 4


_SIZES = {d: int("".join(c for c in d.name if c.isdigit()) or 8) // 8 for d in DType}


@cache
def _numpy_dtypes() -> dict[DType, np.dtype]:
    import numpy as np

    return {d: np.dtype("uint16" if d is DType.bfloat16 else d.name) for d in DType}


@cache
def _from_numpy() -> dict[np.dtype, DType]:
    return {n: d for d, n in _numpy_dtypes().items() if d is not DType.bfloat16}


@dataclass(frozen=True)
class TensorType:
    """dtype and static shape of a value. Prints as ``float32[1,3,224,224]``."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.elements * self.dtype.size

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(self.dtype, tuple(int(d) for d in shape))

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Frozen:
    """An initializer that the model lists among its inputs too: a default that callers may feed, but not change.

    ``digest`` is the SHA-256 of its row-major little-endian bytes.
    """

    name: str
    type: TensorType
    digest: bytes


Layout = tuple[int, ...]
"""Storage order of the logical axes, outermost first: NCHW is (0, 1, 2, 3), NHWC is (0, 2, 3, 1)."""


def row_major(rank: int) -> Layout:
    """The layout that stores logical axes in order."""
    return tuple(range(rank))


def channels_last(rank: int) -> Layout:
    """The layout that stores axis 1 innermost: NHWC for rank 4, NLC for rank 3."""
    return (0, *range(2, rank), 1)


def dense_strides(shape: tuple[int, ...], layout: Layout | None = None) -> tuple[int, ...]:
    """Element strides, per logical axis, of a densely stored tensor.

    Axes of size 1 get stride 0, so that layouts differing only there compare equal.
    """
    strides, step = [0] * len(shape), 1
    for axis in reversed(layout if layout is not None else row_major(len(shape))):
        strides[axis] = step if shape[axis] != 1 else 0
        step *= shape[axis]
    return tuple(strides)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Numpy broadcasting of static shapes; ValueError names the two sizes that disagree."""
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, d in enumerate(shape, rank - len(shape)):
            if d != 1 and result[i] not in (1, d):
                raise ValueError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast: {result[i]} and {d} on axis {i}")
            if d != 1:
                result[i] = d
    return tuple(result)

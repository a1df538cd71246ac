"""TensorProto to numpy, checked: dims, type and byte count must agree before anything is allocated."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
import onnx

from flaot.errors import FlaotError, LimitError, ModelError, UnsupportedError, printable
from flaot.frontend.external import ExternalData
from flaot.ir.types import MAX_ELEMENTS, MAX_RANK, DType, TensorType

_FIELDS = {
    DType.float32: "float_data",
    DType.float64: "double_data",
    DType.int64: "int64_data",
    DType.uint32: "uint64_data",
    DType.uint64: "uint64_data",
}
_LISTS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def element_type(code: int) -> DType:
    """The IR's element type for an ONNX data type number."""
    try:
        return DType(code)
    except ValueError:
        pass
    names = {v: k for k, v in onnx.TensorProto.DataType.items() if v != 0}
    if code not in names:
        raise ModelError(f"data type {code}, which ONNX does not define")
    raise UnsupportedError(f"element type {names[code].lower()}, which flaot does not carry")


def checked_shape(dims: Sequence[int]) -> tuple[int, ...]:
    """``dims`` as a shape within the limits of the IR."""
    shape = tuple(dims[: MAX_RANK + 1])
    if len(dims) > MAX_RANK:
        raise UnsupportedError(f"rank {len(dims)}; the highest supported rank is {MAX_RANK}")
    if any(d < 0 for d in shape):
        raise ModelError(f"shape {list(shape)} has a negative dimension")
    if math.prod(d for d in shape if d) > MAX_ELEMENTS:
        raise LimitError(f"shape {list(shape)} has more than {MAX_ELEMENTS} elements")
    return shape


class Tensors:
    """Converts the tensors of one model."""

    def __init__(self, files: ExternalData) -> None:
        self._files = files

    def describe(self, tensor: onnx.TensorProto) -> TensorType:
        """Type of a tensor after checking that its data fits; errors name the tensor."""
        try:
            return self._describe(tensor)
        except FlaotError as e:
            raise e.at(f"tensor '{printable(tensor.name)}'") from None

    def _describe(self, tensor: onnx.TensorProto) -> TensorType:
        type = TensorType(element_type(tensor.data_type), checked_shape(tensor.dims))
        if tensor.HasField("segment"):
            raise UnsupportedError("segmented data")
        filled = [name for name in _LISTS if len(getattr(tensor, name))]
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            if filled or tensor.HasField("raw_data"):
                raise ModelError("external data and data in the model at once")
            self._files.find([(e.key, e.value) for e in tensor.external_data], type.nbytes)
        elif tensor.HasField("raw_data"):
            if filled:
                raise ModelError(f"raw_data and {filled[0]} are both set")
            if len(tensor.raw_data) != type.nbytes:
                raise ModelError(f"{len(tensor.raw_data)} bytes of data, {type.nbytes} needed for {type}")
        else:
            wanted = _FIELDS.get(type.dtype, "int32_data")
            if any(name != wanted for name in filled):
                raise ModelError(f"data of {type.dtype.name} in {filled[0]}, expected in {wanted}")
            count = len(getattr(tensor, wanted))
            if count != type.elements:
                raise ModelError(f"{count} elements of data, {type.elements} needed for {type}")
            if type.dtype.size < 4:
                _from_list(np.array(getattr(tensor, wanted)), type.dtype)
        return type

    def array(self, tensor: onnx.TensorProto) -> tuple[np.ndarray, DType]:
        """The data, contiguous (bfloat16 as uint16 bits), and its element type."""
        type = self.describe(tensor)
        try:
            return self._data(tensor, type).reshape(type.shape), type.dtype
        except FlaotError as e:
            raise e.at(f"tensor '{printable(tensor.name)}'") from None

    def _data(self, tensor: onnx.TensorProto, type: TensorType) -> np.ndarray:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raw = self._files.read([(e.key, e.value) for e in tensor.external_data], type.nbytes)
            return _native(raw, type.dtype)
        if tensor.HasField("raw_data"):
            raw = np.frombuffer(tensor.raw_data, np.uint8)
            return _native(raw, type.dtype)
        return _from_list(np.array(getattr(tensor, _FIELDS.get(type.dtype, "int32_data"))), type.dtype)

    def sparse(self, tensor: onnx.SparseTensorProto) -> tuple[np.ndarray, DType]:
        """The dense form of a sparse tensor."""
        try:
            return self._sparse(tensor)
        except FlaotError as e:
            raise e.at(f"sparse tensor '{printable(tensor.values.name)}'") from None

    def _sparse(self, tensor: onnx.SparseTensorProto) -> tuple[np.ndarray, DType]:
        values, dtype = self.array(tensor.values)
        indices, _ = self.array(tensor.indices)
        shape = checked_shape(tensor.dims)
        if math.prod(shape) * dtype.size > MAX_DENSE:
            raise LimitError(f"shape {list(shape)} takes more than {MAX_DENSE} bytes when dense")
        flat = _linear(indices, shape, values.size)
        out = np.zeros(math.prod(shape), values.dtype)
        out[flat] = values.reshape(-1)
        return out.reshape(shape), dtype


MAX_DENSE = 256 * 2**20
"""Highest byte count of a sparse tensor made dense."""


def _linear(indices: np.ndarray, shape: tuple[int, ...], count: int) -> np.ndarray:
    sizes = np.array([math.prod(shape)] if indices.ndim == 1 else shape, np.int64)
    if indices.dtype != np.int64 or indices.shape not in ((count,), (count, len(shape))):
        raise ModelError(f"indices of shape {list(indices.shape)} for {count} values of a rank {len(shape)} tensor")
    table = indices.reshape(count, -1) if count else np.zeros((0, len(sizes)), np.int64)
    if ((table < 0) | (table >= sizes)).any():
        raise ModelError(f"an index lies outside shape {list(shape)}")
    return np.asarray(table[:, 0] if indices.ndim == 1 else np.ravel_multi_index(tuple(table.T), shape))


def _native(raw: np.ndarray, dtype: DType) -> np.ndarray:
    """Little-endian bytes as an array of the machine's order. Booleans become 0 or 1."""
    if dtype is DType.bool:
        return np.asarray(raw != 0)
    data: np.ndarray = raw.view(dtype.numpy)
    return data.byteswap() if sys.byteorder == "big" else data


def _from_list(items: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype in (DType.float16, DType.bfloat16):
        return _narrow(items, np.dtype("uint16")).view(dtype.numpy)
    if dtype is DType.bool:
        return np.asarray(items != 0)
    return _narrow(items, dtype.numpy)


def _narrow(items: np.ndarray, dtype: np.dtype) -> np.ndarray:
    out = items.astype(dtype)
    if dtype.kind in "iu" and (out.astype(np.int64) != items.astype(np.int64)).any():
        raise ModelError(f"a number in the data does not fit {dtype.name}")
    return out

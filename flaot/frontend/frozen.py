"""Initializers that the model lists among its inputs too.

ONNX calls them defaults that a caller may override. Here they are constants like any other; the plan keeps their digest, so that
feeding the default is accepted and feeding something else is refused with the reason.
"""

from __future__ import annotations

import sys
from hashlib import sha256

import numpy as np
import onnx

from flaot.frontend.tensors import Tensors
from flaot.ir.types import DType, Frozen, TensorType


def frozen_inputs(graph: onnx.GraphProto, tensors: Tensors) -> list[Frozen]:
    """Name, type and digest of each, in the order of the initializers."""
    inputs = {v.name for v in graph.input}
    found = [_frozen(t.name, *tensors.array(t)) for t in graph.initializer if t.name in inputs]
    return found + [_frozen(t.values.name, *tensors.sparse(t)) for t in graph.sparse_initializer if t.values.name in inputs]


def _frozen(name: str, data: np.ndarray, dtype: DType) -> Frozen:
    little = data if sys.byteorder == "little" else data.byteswap()
    return Frozen(name, TensorType(dtype, data.shape), sha256(np.ascontiguousarray(little).data).digest())

"""The descriptor's own vectors as cases."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flaot.hcd import Hcd
from flaot.hcd.conformance import Array, Vector
from flaot.ir.types import DType
from flaot.optest.case import Case, Expected, Tensor

OPSET = 22
"""Vectors do not state one."""


def vector_cases(hcd: Hcd) -> list[Case]:
    """A case per vector of ``conformance``, named ``conformance/vector_0`` by its place in the list."""
    stated = hcd.full.conformance
    return [_case(i, v) for i, v in enumerate(stated.vectors if stated is not None else ())]


def origin_of(hcd: Hcd, case: Case) -> str:
    """The line that states the vector of a case."""
    return hcd.origin("conformance", "vectors", int(case.name.rpartition("_")[2]))


def _case(index: int, vector: Vector) -> Case:
    inputs = tuple(Tensor(a.shape, dtype=_dtype(a), values=a.values) for a in vector.inputs)
    expected = tuple(
        Expected(np.asarray(a.values, np.float64).reshape(a.shape), vector.max_relative_error or 0.0, vector.max_absolute_error or 0.0)
        for a in vector.outputs
    )
    stored = next((DType[n].name for n in _names(vector) if n in ("float16", "bfloat16")), "")
    attributes = dict(vector.attributes or {})
    return Case(
        f"conformance/vector_{index}", vector.op, inputs, attributes, outputs=len(expected), opset=OPSET, stored=stored, expected=expected
    )


def _names(vector: Vector) -> Iterator[str]:
    return (a.dtype.removeprefix("torch.") for a in (*vector.inputs, *vector.outputs))


def _dtype(a: Array) -> str:
    """Half types are fed as float32 values, which hold them."""
    name = a.dtype.removeprefix("torch.")
    return "float32" if name in ("float16", "bfloat16") else name

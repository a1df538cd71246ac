"""Readers that need more of onnx than NodeReader shows: Constant in all its spellings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flaot.frontend.node import OnnxNode

_NUMBERS: dict[str, Callable[[OnnxNode], np.ndarray]] = {
    "value_int": lambda r: np.array(r.int("value_int"), np.int64),
    "value_ints": lambda r: np.array(r.ints("value_ints"), np.int64),
    "value_float": lambda r: np.array(r.float("value_float"), np.float32),
    "value_floats": lambda r: np.array(r.floats("value_floats"), np.float32),
}


def constant(r: OnnxNode) -> None:
    """Constant: exactly one of value, sparse_value and value_*."""
    given = sorted(r.attributes)
    if len(given) != 1:
        r.fail(f"a Constant has exactly one value, this one has {', '.join(given) or 'none'}")
    (form,) = given
    if form == "value":
        r.result(r.tensor("value"))
    elif form == "sparse_value":
        r.result(r.sparse("sparse_value"))
    elif form in _NUMBERS:
        r.result(r.literal(_NUMBERS[form](r)))
    elif form in ("value_string", "value_strings"):
        r.unsupported("a constant of strings; flaot carries numbers only")
    else:
        r.fail(f"attribute '{form}' is not one of Constant")


READERS: dict[tuple[str, str], Callable[[OnnxNode], None]] = {("", "Constant"): constant}

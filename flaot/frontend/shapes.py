"""Static shapes of the graph inputs: declared dimensions joined with what ``--shape`` binds.

A dimension may be a number, a symbol (``batch``; a number below zero is the symbol of that spelling), or unknown (absent, ``?``).
Some exporters write 0 for unknown: it counts as 0 unless ``--shape`` says otherwise.

A binding names an input (all its dimensions) or a symbol (one dimension, everywhere).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from flaot.errors import ModelError, UnsupportedError, UsageError, printable
from flaot.frontend.tensors import checked_shape, element_type
from flaot.ir.types import TensorType

Dim = int | str | None
Bindings = Mapping[str, Sequence[int] | int]


def declared(info: onnx.ValueInfoProto) -> tuple[int, list[Dim] | None]:
    """Data type number and dimensions (None for unknown rank) of a value declaration."""
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        what = (kind or "no type").replace("_type", "").replace("_", " ")
        raise UnsupportedError(f"'{printable(info.name)}' is of type {what}; only tensors are supported")
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return tensor.elem_type, None
    return tensor.elem_type, [_dim(d) for d in tensor.shape.dim]


def _dim(d: Any) -> Dim:
    if d.HasField("dim_value"):
        return int(d.dim_value) if d.dim_value >= 0 else str(d.dim_value)
    return d.dim_param if d.dim_param not in ("", "?") else None


def input_types(inputs: Sequence[onnx.ValueInfoProto], bindings: Bindings) -> list[TensorType]:
    """The type of every graph input. Raises UsageError for bindings that fit nothing, ModelError naming what is unbound."""
    kinds = [declared(info) for info in inputs]
    _check_known(inputs, kinds, bindings)
    symbols = {name: size for name, size in bindings.items() if isinstance(size, int)}
    for info, (_, dims) in zip(inputs, kinds, strict=True):
        given = _given(info, dims, bindings)
        if given is not None:
            _unify(info.name, dims, given, symbols)
    types = []
    unbound: list[str] = []
    for info, (code, dims) in zip(inputs, kinds, strict=True):
        given = _given(info, dims, bindings)
        shape = given if given is not None else None if dims is None else [symbols.get(d) if isinstance(d, str) else d for d in dims]
        if shape is None or None in shape:
            unbound.append(_describe(info, dims, symbols))
            continue
        try:
            types.append(TensorType(element_type(code), checked_shape([int(d) for d in shape if d is not None])))
        except (ModelError, UnsupportedError) as e:
            raise e.at(f"input '{printable(info.name)}'") from None
    if unbound:
        raise ModelError("; ".join(unbound))
    return types


def _symbols(dims: list[Dim] | None) -> list[str]:
    return list(dict.fromkeys(d for d in dims or () if isinstance(d, str)))


def _check_known(inputs: Sequence[onnx.ValueInfoProto], kinds: list[tuple[int, list[Dim] | None]], bindings: Bindings) -> None:
    names = {info.name for info in inputs}
    symbols = {s for _, dims in kinds for s in _symbols(dims)}
    for name, size in bindings.items():
        if name not in names and not (name in symbols and isinstance(size, int)):
            known = ", ".join(printable(n) for n in (*sorted(names), *sorted(symbols)))
            raise UsageError(f"--shape {printable(name)}: the model has no such input or symbol; it has {known or 'no inputs'}")


def _given(info: onnx.ValueInfoProto, dims: list[Dim] | None, bindings: Bindings) -> list[int] | None:
    bound = bindings.get(info.name)
    if isinstance(bound, int):
        return None if info.name in _symbols(dims) else [bound]
    return None if bound is None else [int(d) for d in bound]


def _unify(name: str, dims: list[Dim] | None, given: list[int], symbols: dict[str, int]) -> None:
    shown = f"--shape {printable(name)}={','.join(map(str, given))}"
    if any(d < 0 for d in given):
        raise UsageError(f"{shown}: a dimension is negative")
    if dims is None:
        return
    if len(dims) != len(given):
        raise UsageError(f"{shown}: {len(given)} dimensions, the model declares {len(dims)}: {_text(dims)}")
    for axis, (d, size) in enumerate(zip(dims, given, strict=True)):
        fixed = symbols.setdefault(d, size) if isinstance(d, str) else d
        if fixed not in (None, 0) and fixed != size:
            raise UsageError(f"{shown}: axis {axis} is {size}, expected {fixed} (declared {_text(dims)})")


def _text(dims: list[Dim] | None) -> str:
    return "of unknown rank" if dims is None else "[" + ",".join("?" if d is None else printable(d) for d in dims) + "]"


def _describe(info: onnx.ValueInfoProto, dims: list[Dim] | None, symbols: Mapping[str, int]) -> str:
    free = [s for s in _symbols(dims) if s not in symbols]
    name = printable(info.name)
    flags = [f"--shape {printable(s)}=N" for s in free] if dims is not None and None not in dims else []
    sizes = "D0,D1,..." if dims is None else ",".join("N" if not isinstance(d, int) else str(d) for d in dims)
    flags.append(f"--shape {name}={sizes}")
    unknown = f"unbound dimensions {', '.join(map(printable, free))}" if free else "unknown dimensions"
    return f"input '{name}' {_text(dims)} has {unknown}; give {' or '.join([' '.join(flags[:-1]), flags[-1]] if flags[:-1] else flags)}"


def empty_input_hint(types: Mapping[str, TensorType]) -> str:
    """What to do about inputs that hold nothing, when reading failed; empty when there are none."""
    for name, type in types.items():
        if type.elements == 0:
            return f"input '{printable(name)}' is declared {list(type.shape)}; give --shape {printable(name)}=... if 0 means unknown"
    return ""


def check_declared(info: onnx.ValueInfoProto, found: TensorType, what: str) -> None:
    """A declared type must not contradict the inferred one in dtype, rank or a static dimension. Raises ModelError."""
    code, dims = declared(info)
    name = printable(info.name)
    if code and code != found.dtype:
        kind = onnx.TensorProto.DataType.Name(code).lower() if code in onnx.TensorProto.DataType.values() else f"data type {code}"
        raise ModelError(f"{what} '{name}' is declared {kind} but is computed as {found}")
    if dims is None:
        return
    clash = any(isinstance(d, int) and d not in (0, size) for d, size in zip(dims, found.shape, strict=False))
    if len(dims) != found.rank or clash:
        raise ModelError(f"{what} '{name}' is declared {_text(dims)} but is computed as {found}")

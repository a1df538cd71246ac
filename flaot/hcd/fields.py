"""Types of single values in a descriptor: words, counts, rates, names. What is wrong with a value is said in flaot's words."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from flaot.hcd.text import describe, nearest

UNIT_KINDS = ("cpu", "fp16", "bf16", "fp32", "int8", "int16", "int4", "attention", "vector")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
INTEGERS = tuple(d for d in DTYPES if "int" in d)
DTYPE_BYTES = {d: 1 if d == "bool" else int(d.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8 for d in DTYPES}
LAYOUTS = ("NCHW", "NHWC", "NHCW")
ISA_FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx_vnni", "avx512_bf16")
FALLBACKS = ("error", "warn", "allow")
TRANSFERS = ("synchronous", "asynchronous", "zero_copy")

HUGE = 2**40


class Word:
    """Annotation: the text must be one of ``known``; validated by the loader so that it can suggest the nearest."""

    def __init__(self, *known: str) -> None:
        self.known = known

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core), "enum": list(self.known)}


def one_of(known: tuple[str, ...]) -> Any:
    """A validator that accepts only words of ``known`` and says which is nearest to a wrong one."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"found {describe(value)}; {nearest(str(value), known)}")
        return value

    return check


def _dtype(value: Any) -> Any:
    """``torch.float16`` and ``float16`` are the same dtype."""
    return one_of(DTYPES)(value.removeprefix("torch.") if isinstance(value, str) else value)


def _distinct(values: Any) -> Any:
    if isinstance(values, tuple) and len({repr(v) for v in values}) < len(values):
        raise ValueError("an entry appears twice")
    return values


def _sorted(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else sorted(values)


def words(known: tuple[str, ...]) -> list[Any]:
    """Annotations of a text that is one of ``known``."""
    return [BeforeValidator(one_of(known)), Word(*known)]


def shaped(pattern: str, expected: str) -> list[Any]:
    """Annotations of a text that matches ``pattern`` as a whole."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"found {describe(value)}, expected {expected}")
        return value

    return [BeforeValidator(check), Field(pattern=f"^{pattern}$")]


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise ValueError(f"found {describe(value)}, expected text, a number, true or false")
    return value


def _by_spelling(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else sorted(values, key=json.dumps)


AS_SET = [BeforeValidator(_distinct), PlainSerializer(_sorted)]
"""Annotations of a list whose order means nothing."""

Text = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=HUGE)]
Rate = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=0, le=10**18)]
Integer = Annotated[int, Field(ge=-HUGE, le=HUGE)]
Number = Annotated[float, Field(ge=-1e30, le=1e30, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Scalar = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Name = Annotated[str, *shaped("[A-Za-z][A-Za-z0-9_]{0,63}", "a name of letters, digits and _ that begins with a letter")]
OpName = Annotated[str, *shaped("([a-z][a-z0-9.]{0,63}:)?[A-Z][A-Za-z0-9]{0,63}", "an operator's name such as Conv")]
DeviceType = Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,63}$")]
Kind = Annotated[str, BeforeValidator(one_of(UNIT_KINDS)), Word(*UNIT_KINDS)]
DTypeName = Annotated[str, BeforeValidator(_dtype), Word(*DTYPES)]
LayoutName = Annotated[str, *shaped("[A-Z]{1,8}([a-z][0-9]{0,4}){0,2}", "a layout such as NCHW or NCHWc8")]
Isa = Annotated[str, BeforeValidator(one_of(ISA_FEATURES)), Word(*ISA_FEATURES)]
DTypes = Annotated[tuple[DTypeName, ...], Field(min_length=1), *AS_SET]
Layouts = Annotated[tuple[LayoutName, ...], Field(min_length=1), *AS_SET]
Counts = Annotated[tuple[Count, ...], Field(min_length=1), *AS_SET]
AXES = "[A-Z]{1,8}[a-z]{0,2}"
Axis = Annotated[str, *shaped("[A-Z]", "an axis such as C")]
Names = Annotated[tuple[Name, ...], Field(min_length=1), *AS_SET]
Scalars = Annotated[tuple[Scalar, ...], Field(min_length=1), BeforeValidator(_distinct), PlainSerializer(_by_spelling)]
Isas = Annotated[tuple[Isa, ...], *AS_SET]


class Section(BaseModel):
    """A mapping of the descriptor: unknown keys are refused, values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _in_order(entries: Any) -> Any:
    """Sections of a list whose order means nothing, sorted by what they state."""
    if entries is None:
        return None
    stated = [e.model_dump(mode="json", exclude_none=True, exclude_unset=True) for e in entries]
    return sorted(stated, key=lambda e: json.dumps(e, sort_keys=True))


UNORDERED = [PlainSerializer(_in_order)]
"""Annotations of a list of sections whose order means nothing."""

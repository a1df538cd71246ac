"""Small vectors by which a chip or its simulator is held to its descriptor."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.fields import UNORDERED, Amount, DTypeName, Name, Number, OpName, Scalar, Section, Size


class Array(Section):
    """A small tensor, values in ONNX's order."""

    dtype: DTypeName = Field(description="element type")
    shape: Annotated[tuple[Size, ...], Field(max_length=8)] = Field(description="sizes")
    values: Annotated[tuple[Number, ...], Field(max_length=4096)] = Field(description="elements, the last axis fastest")


class Vector(Section):
    """One case: inputs and the outputs they must give."""

    op: OpName = Field(description="the operator")
    attributes: dict[Name, Scalar] | None = Field(default=None, description="attributes that are not the default")
    inputs: tuple[Array, ...] = Field(description="inputs in order")
    outputs: Annotated[tuple[Array, ...], Field(min_length=1)] = Field(description="expected outputs in order")
    max_relative_error: Amount | None = Field(default=None, description="error allowed relative to the expected value; exact when left out")
    max_absolute_error: Amount | None = Field(default=None, description="error allowed in absolute terms; exact when left out")


class Conformance(Section):
    """Small vectors the chip must reproduce."""

    vectors: Annotated[tuple[Vector, ...], Field(min_length=1), *UNORDERED] = Field(description="cases, any number per operator")

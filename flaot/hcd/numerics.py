"""Quantization and floating point: what the chip's arithmetic does."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.fields import AS_SET, Amount, DTypeName, Integer, OpName, Section, words

SCHEMES = ("per_tensor_symmetric", "per_tensor_asymmetric", "per_channel_symmetric", "per_channel_asymmetric")
SCALE_FORMS = ("float", "power_of_two", "multiplier_shift")
ROUNDINGS = ("half_to_even", "half_away_from_zero", "half_up", "floor", "toward_zero")
DENORMALS = ("keep", "flush")

Scheme = Annotated[str, *words(SCHEMES)]
ScaleForm = Annotated[str, *words(SCALE_FORMS)]
Rounding = Annotated[str, *words(ROUNDINGS)]
Denormals = Annotated[str, *words(DENORMALS)]


class Quantization(Section):
    """How integers stand for real numbers."""

    schemes: Annotated[tuple[Scheme, ...], Field(min_length=1), *AS_SET] | None = Field(
        default=None, description="schemes the units compute"
    )
    channel_axis: Annotated[int, Field(ge=-8, le=7)] | None = Field(default=None, description="axis of per-channel scales in the weights")
    zero_point_min: Integer | None = Field(default=None, description="lowest zero point")
    zero_point_max: Integer | None = Field(default=None, description="highest zero point")
    bias_dtype: DTypeName | None = Field(default=None, description="element type of the bias")
    scale_form: ScaleForm | None = Field(default=None, description="how results are rescaled")
    multiplier_bits: Annotated[int, Field(ge=2, le=64)] | None = Field(
        default=None, description="bits of the multiplier (multiplier_shift)"
    )
    rounding: Rounding | None = Field(default=None, description="how rescaled results are rounded")
    saturate: bool | None = Field(default=None, description="results beyond the range are clamped; false: they wrap")


class Approximation(Section):
    """Declared error of an operator that is not computed exactly."""

    max_ulp: Amount | None = Field(default=None, description="error in units of the last place")
    max_relative_error: Amount | None = Field(default=None, description="error relative to the exact result")
    max_absolute_error: Amount | None = Field(default=None, description="error in absolute terms")


class Numerics(Section):
    """How floating point is computed."""

    denormals: Denormals | None = Field(default=None, description="whether denormal numbers are kept or flushed to zero")
    float16_accumulator: DTypeName | None = Field(default=None, description="element type float16 products are summed in")
    fma: bool | None = Field(default=None, description="products are added without rounding in between")
    rounding: Rounding | None = Field(default=None, description="how results are rounded to their element type")
    approximations: dict[OpName, Approximation] | None = Field(
        default=None, description="operators computed approximately, with their error"
    )

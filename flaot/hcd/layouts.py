"""Storage orders beyond the plain ones, and who converts to them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.fields import AXES, Axis, Count, Names, Rate, Section, shaped


class Layout(Section):
    """A storage order by name. A lower-case axis is the inner block of the upper-case one: NCHWc with blocks {C: 8}."""

    axes: Annotated[str, *shaped(AXES, "axes from the slowest to the fastest, such as NHWC or NCHWc")] = Field(
        description="axes from the slowest to the fastest; a lower-case letter is the inner block of that axis"
    )
    blocks: dict[Axis, Count] | None = Field(default=None, description="elements of each blocked axis in a block")
    pad_to: dict[Axis, Count] | None = Field(default=None, description="each axis is padded to a multiple of this many elements")
    converted_by: Names | None = Field(default=None, description="who converts to and from it: compute units, 'host', 'dma'")
    convert_gb_per_s: Rate | None = Field(default=None, description="speed of the conversion, 1e9 bytes per second")
    convert_setup_cycles: Annotated[int, Field(ge=0, le=10**12)] | None = Field(
        default=None, description="cycles before the first byte is converted"
    )

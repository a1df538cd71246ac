"""Compute units: what computes, how much of it, in what element types and tiles."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.fields import UNORDERED, Count, Counts, DTypeName, Isas, Kind, Layouts, Rate, Section, Size


class Arithmetic(Section):
    """Multiply-accumulate rate of one pair of element types."""

    inputs: Annotated[tuple[DTypeName, ...], Field(min_length=2, max_length=2)] = Field(description="element types of the two factors")
    accumulator: DTypeName = Field(description="element type the products are summed in")
    macs_per_cycle: Count = Field(description="multiply-accumulates of each unit per cycle")


class Tile(Section):
    """Granularity per axis, in elements. Rows x depth by depth x columns is the matrix product a unit does at once."""

    rows: Count | None = Field(default=None, description="rows of the left factor")
    columns: Count | None = Field(default=None, description="columns of the right factor")
    depth: Count | None = Field(default=None, description="the axis that is summed over")
    channels: Count | None = Field(default=None, description="channels of an image tensor")
    height: Count | None = Field(default=None, description="height of an image tensor")
    width: Count | None = Field(default=None, description="width of an image tensor")


class ComputeUnit(Section):
    """One kind of compute unit. Its name in ``compute_units`` is its kind unless ``kind`` says otherwise."""

    kind: Kind | None = Field(default=None, description="what it computes; the unit's name when left out")
    enabled: bool | None = Field(default=None, description="false takes the unit out of use")
    count: Count | None = Field(default=None, description="number of identical units (cores of a cpu)")
    peak_gflops: Rate | None = Field(default=None, description="peak of all units together, 1e9 floating-point operations per second")
    peak_tflops: Rate | None = Field(default=None, description="peak of all units together, 1e12 floating-point operations per second")
    peak_gops: Rate | None = Field(default=None, description="peak of all units together, 1e9 integer operations per second")
    peak_tops: Rate | None = Field(default=None, description="peak of all units together, 1e12 integer operations per second")
    supported_layouts: Layouts | None = Field(default=None, description="storage orders of image tensors it reads and writes")
    clock_mhz: Rate | None = Field(default=None, description="clock of the unit in MHz; the chip's when left out")
    arithmetic: Annotated[tuple[Arithmetic, ...], *UNORDERED] | None = Field(
        default=None, description="multiply-accumulates per cycle by element types"
    )
    tile: Tile | None = Field(default=None, description="granularity: sizes are rounded up to multiples of these")
    launch_cycles: Size | None = Field(default=None, description="cycles from the start of a step to its first result")
    concurrency: Count | None = Field(default=None, description="steps in flight at once")
    isa: Isas | None = Field(default=None, description="instruction-set features (cpu)")
    max_sequence_length: Count | None = Field(default=None, description="longest sequence in tokens (attention)")
    supported_heads: Counts | None = Field(default=None, description="head counts it can run (attention)")

    @property
    def peak(self) -> float | None:
        """Operations per second of all units together, None when not stated."""
        stated = [(self.peak_gflops, 1e9), (self.peak_tflops, 1e12), (self.peak_gops, 1e9), (self.peak_tops, 1e12)]
        return next((v * scale for v, scale in stated if v is not None), None)

"""The descriptor's keys: one definition for validation, ``flaot hcd show``, the JSON Schema and the table in docs/hcd.md.

A field that may be left out is None until :mod:`flaot.hcd.derive` fills it in. Groups of keys have their own modules.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.conformance import Conformance
from flaot.hcd.fields import DTYPES, LAYOUTS, UNIT_KINDS, Count, DeviceType, DTypes, LayoutName, OpName, Rate, Section, Text
from flaot.hcd.layouts import Layout
from flaot.hcd.memory import Memory
from flaot.hcd.numerics import Numerics, Quantization
from flaot.hcd.operators import Fusion, Operator
from flaot.hcd.system import Dma, Host, Limits, Policy, Power
from flaot.hcd.units import ComputeUnit


class Chip(Section):
    """What the chip is."""

    name: Text = Field(description="name of the chip, as messages and plans show it")
    device_type: DeviceType = Field(
        description="device family, such as cpu or npu: lower-case letters, digits and _; decides which target executes it"
    )
    vendor: Text | None = Field(default=None, description="who makes it")
    version: Text | None = Field(default=None, description="version of this description, in quotes when it has fewer than two dots")
    revision: Text | None = Field(default=None, description="silicon revision")


class Tensor(Section):
    """What tensors may look like."""

    max_rank: Annotated[int, Field(ge=1, le=8)] | None = Field(default=None, description="highest number of dimensions")
    supported_dtypes: DTypes | None = Field(default=None, description="element types; a leading 'torch.' is accepted")
    default_layout: LayoutName | None = Field(default=None, description="storage order preferred for image tensors")


class Constraints(Section):
    """Limits on what runs."""

    max_batch_size: Count | None = Field(default=None, description="largest batch")
    max_sequence_length: Count | None = Field(default=None, description="longest sequence in tokens")
    memory_alignment_bytes: Count | None = Field(default=None, description="alignment of every buffer, a power of two of at most 4096")
    bfloat16_emulation: bool | None = Field(default=None, description="bfloat16 is computed by other units, by way of float32")


class Schema(Section):
    """A whole descriptor."""

    hcd_version: Annotated[int, Field(ge=1, le=2**31)] | None = Field(default=None, description="version of the descriptor's format")
    extends: Text | None = Field(default=None, description="the descriptor this one differs from: a bundled name, or a file beside it")
    chip: Chip = Field(description="what the chip is")
    clock_mhz: Rate | None = Field(default=None, description="clock of the chip in MHz")
    compute_units: dict[str, ComputeUnit] = Field(min_length=1, description="compute units by name")
    memory: Memory | None = Field(default=None, description="memories; required unless the chip is a cpu")
    tensor: Tensor | None = Field(default=None, description="what tensors may look like")
    constraints: Constraints | None = Field(default=None, description="limits on what runs")
    policy: Policy | None = Field(default=None, description="what the compiler may do on its own")
    operators: dict[OpName, Operator] | None = Field(
        default=None, min_length=1, description="operators by name; when present, an operator that is not listed is not supported"
    )
    fusions: tuple[Fusion, ...] | None = Field(default=None, description="groups of operators the chip runs as one")
    layouts: dict[LayoutName, Layout] | None = Field(default=None, description="storage orders beside NCHW, NHWC and NHCW, and conversions")
    dma: Dma | None = Field(default=None, description="the engine that moves data between memories")
    quantization: Quantization | None = Field(default=None, description="how integers stand for real numbers")
    numerics: Numerics | None = Field(default=None, description="how floating point is computed")
    host: Host | None = Field(default=None, description="the processor beside the chip")
    limits: Limits | None = Field(default=None, description="limits on plans")
    power: Power | None = Field(default=None, description="energy and power")
    conformance: Conformance | None = Field(default=None, description="small vectors the chip must reproduce")


__all__ = ["DTYPES", "LAYOUTS", "UNIT_KINDS", "Chip", "ComputeUnit", "Constraints", "Memory", "Policy", "Schema", "Tensor"]

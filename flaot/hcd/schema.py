"""The descriptor's keys: one definition for validation, ``flaot hcd show``, the JSON Schema and the table in docs/hcd.md.

A field that may be left out is None until :mod:`flaot.hcd.derive` fills it in.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from flaot.hcd.text import describe, nearest

UNIT_KINDS = ("cpu", "fp16", "bf16", "fp32", "int8", "int16", "int4", "attention", "vector")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
LAYOUTS = ("NCHW", "NHWC", "NHCW")
ISA_FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx_vnni", "avx512_bf16")
FALLBACKS = ("error", "warn", "allow")

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


_AS_SET = [BeforeValidator(_distinct), PlainSerializer(_sorted)]

Text = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=HUGE)]
Rate = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
DeviceType = Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,63}$")]
Kind = Annotated[str, BeforeValidator(one_of(UNIT_KINDS)), Word(*UNIT_KINDS)]
DTypeName = Annotated[str, BeforeValidator(_dtype), Word(*DTYPES)]
LayoutName = Annotated[str, BeforeValidator(one_of(LAYOUTS)), Word(*LAYOUTS)]
Isa = Annotated[str, BeforeValidator(one_of(ISA_FEATURES)), Word(*ISA_FEATURES)]
Fallback = Annotated[str, BeforeValidator(one_of(FALLBACKS)), Word(*FALLBACKS)]
DTypes = Annotated[tuple[DTypeName, ...], Field(min_length=1), *_AS_SET]
Layouts = Annotated[tuple[LayoutName, ...], Field(min_length=1), *_AS_SET]
Counts = Annotated[tuple[Count, ...], Field(min_length=1), *_AS_SET]
Isas = Annotated[tuple[Isa, ...], *_AS_SET]


class Section(BaseModel):
    """A mapping of the descriptor: unknown keys are refused, values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Chip(Section):
    """What the chip is."""

    name: Text = Field(description="name of the chip, as messages and plans show it")
    device_type: DeviceType = Field(
        description="device family, such as cpu or npu: lower-case letters, digits and _; decides which target executes it"
    )
    vendor: Text | None = Field(default=None, description="who makes it")
    version: Text | None = Field(default=None, description="version of this description, in quotes when it has fewer than two dots")
    revision: Text | None = Field(default=None, description="silicon revision")


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
    isa: Isas | None = Field(default=None, description="instruction-set features (cpu)")
    max_sequence_length: Count | None = Field(default=None, description="longest sequence in tokens (attention)")
    supported_heads: Counts | None = Field(default=None, description="head counts it can run (attention)")

    @property
    def peak(self) -> float | None:
        """Operations per second of all units together, None when not stated."""
        stated = [(self.peak_gflops, 1e9), (self.peak_tflops, 1e12), (self.peak_gops, 1e9), (self.peak_tops, 1e12)]
        return next((v * scale for v, scale in stated if v is not None), None)


class OnChip(Section):
    """The fast memory beside the units."""

    size_kb: Count = Field(description="size in kB of 1024 bytes")
    bandwidth_gb_per_s: Rate = Field(description="bandwidth, 1e9 bytes per second")


class OffChip(Section):
    """The large memory behind the fast one."""

    size_mb: Count | None = Field(default=None, description="size in MB of 1024 kB; unlimited when left out")
    bandwidth_gb_per_s: Rate = Field(description="bandwidth, 1e9 bytes per second")


class Memory(Section):
    """The chip's memories."""

    on_chip_cache: OnChip | None = Field(default=None, description="fast memory; required unless the chip is a cpu")
    off_chip_memory: OffChip | None = Field(default=None, description="main memory; required unless the chip is a cpu")


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


class Policy(Section):
    """What the compiler may do on its own."""

    fallback: Fallback | None = Field(default=None, description="when the chip lacks an operator: error, warn or allow the host to run it")


class Schema(Section):
    """A whole descriptor."""

    hcd_version: Annotated[int, Field(ge=1, le=2**31)] | None = Field(default=None, description="version of the descriptor's format")
    chip: Chip = Field(description="what the chip is")
    compute_units: dict[str, ComputeUnit] = Field(min_length=1, description="compute units by name")
    memory: Memory | None = Field(default=None, description="memories; required unless the chip is a cpu")
    tensor: Tensor | None = Field(default=None, description="what tensors may look like")
    constraints: Constraints | None = Field(default=None, description="limits on what runs")
    policy: Policy | None = Field(default=None, description="what the compiler may do on its own")

"""Cross-field rules of a descriptor. Each yields problems (refused) or warnings (implausible) for a path of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from flaot.hcd.schema import UNIT_KINDS, ComputeUnit, Schema
from flaot.hcd.text import nearest

FORMAT_VERSION = 1
MAX_ALIGNMENT = 4096
UNIT_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "int8": "int8", "int16": "int16"}
"""Element type a unit kind computes in; it must be among the tensor dtypes of the chip."""

PEAKS = ("peak_gflops", "peak_tflops", "peak_gops", "peak_tops")

AVX2 = ("avx2", "fma", "f16c")
AVX512 = (*AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")


@dataclass(frozen=True)
class Finding:
    """One problem or warning: ``path`` of the key, one sentence, the way out. ``on_value`` points at the value, not at its key."""

    path: tuple[str | int, ...]
    what: str
    hint: str = ""
    warning: bool = False
    on_value: bool = False


Rule = Callable[[Schema], Iterator[Finding]]
RULES: list[Rule] = []


def rule(fn: Rule) -> Rule:
    RULES.append(fn)
    return fn


def findings(hcd: Schema) -> list[Finding]:
    """Everything the rules have to say about a descriptor whose fields are valid one by one."""
    return [f for r in RULES for f in r(hcd)]


def kind_of(name: str, unit: ComputeUnit) -> str:
    """The kind of a compute unit: stated, or its name."""
    return unit.kind or name


def active_units(hcd: Schema) -> dict[str, ComputeUnit]:
    """Compute units that are not taken out of use."""
    return {n: u for n, u in hcd.compute_units.items() if u.enabled is not False}


def repeated(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Every entry that an earlier one equals, with its index."""
    return ((i, n) for i, n in enumerate(names) if n in names[:i])


def unknown(
    path: tuple[str | int, ...], names: Sequence[str] | None, known: Sequence[str], what: str, one: bool = False
) -> Iterator[Finding]:
    """A problem for every name that is not ``known``, at its place in the list at ``path``, or at ``path`` itself for ``one``."""
    for i, name in enumerate(names or ()):
        if name not in known:
            yield Finding(path if one else (*path, i), f"{name} is no {what}; {nearest(name, known)}", on_value=True)


def newer_version(stated: object) -> Finding | None:
    """A problem when the format is newer than this flaot; asked before anything else, as such a file may hold keys unknown here."""
    if not isinstance(stated, int) or stated <= FORMAT_VERSION:
        return None
    return Finding(("hcd_version",), f"version {stated}; this flaot reads version {FORMAT_VERSION}", "upgrade flaot", on_value=True)


@rule
def units_have_a_kind(hcd: Schema) -> Iterator[Finding]:
    for name, unit in hcd.compute_units.items():
        if kind_of(name, unit) not in UNIT_KINDS:
            yield Finding(
                ("compute_units", name), f"a unit of unknown kind; {nearest(name, list(UNIT_KINDS))}", "rename it, or state its 'kind'"
            )


@rule
def keys_fit_the_kind(hcd: Schema) -> Iterator[Finding]:
    belongs = {"isa": "cpu", "supported_heads": "attention", "max_sequence_length": "attention"}
    for name, unit in hcd.compute_units.items():
        for key, kind in belongs.items():
            if getattr(unit, key) is not None and kind_of(name, unit) != kind:
                yield Finding(("compute_units", name, key), f"belongs to units of kind {kind}, not {kind_of(name, unit)}")
        if kind_of(name, unit) == "attention" and unit.enabled is not False:
            for key in ("supported_heads", "max_sequence_length"):
                if getattr(unit, key) is None:
                    yield Finding(("compute_units", name), f"an attention unit without '{key}'")


@rule
def one_peak_figure(hcd: Schema) -> Iterator[Finding]:
    for name, unit in hcd.compute_units.items():
        stated = [k for k in PEAKS if getattr(unit, k) is not None]
        if len(stated) > 1:
            yield Finding(("compute_units", name, stated[1]), f"a second peak figure beside {stated[0]}", "keep one")
        kind = kind_of(name, unit)
        wrong = "flops" if kind.startswith("int") else "ops" if kind.startswith(("fp", "bf")) else ""
        for key in stated:
            if wrong and key.endswith(wrong) and not (wrong == "ops" and key.endswith("flops")):
                yield Finding(
                    ("compute_units", name, key),
                    f"a peak in {key[5:].upper()} for a unit of kind {kind}",
                    f"write {key.replace('flops', 'ops') if wrong == 'flops' else key.replace('ops', 'flops')}",
                )


@rule
def peak_is_plausible(hcd: Schema) -> Iterator[Finding]:
    for name, unit in hcd.compute_units.items():
        if unit.peak is None or unit.count is None or kind_of(name, unit) == "cpu":
            continue
        each = unit.peak / unit.count
        key = next(k for k in PEAKS if getattr(unit, k) is not None)
        if not 1e9 <= each <= 1e15:
            yield Finding(
                ("compute_units", name, key),
                f"{each / 1e9:g} G operations per second for each of {unit.count} units is implausible",
                "check the unit in the key (peak_gflops, peak_tflops, peak_gops, peak_tops)",
                warning=True,
            )


@rule
def default_layout_is_supported(hcd: Schema) -> Iterator[Finding]:
    wanted = hcd.tensor.default_layout if hcd.tensor else None
    offered = {x for u in hcd.compute_units.values() if u.enabled is not False for x in u.supported_layouts or ()}
    if wanted and offered and wanted not in offered:
        yield Finding(("tensor", "default_layout"), f"{wanted} is not among the supported layouts ({', '.join(sorted(offered))})")


@rule
def unit_dtypes_are_supported(hcd: Schema) -> Iterator[Finding]:
    dtypes = hcd.tensor.supported_dtypes if hcd.tensor else None
    for name, unit in hcd.compute_units.items():
        dtype = UNIT_DTYPES.get(kind_of(name, unit))
        if dtypes and dtype and dtype not in dtypes:
            yield Finding(
                ("compute_units", name), f"computes in {dtype}, which tensor.supported_dtypes lacks ({', '.join(sorted(dtypes))})"
            )


@rule
def alignment_is_a_power_of_two(hcd: Schema) -> Iterator[Finding]:
    alignment = hcd.constraints.memory_alignment_bytes if hcd.constraints else None
    path = ("constraints", "memory_alignment_bytes")
    if alignment is None:
        return
    if alignment & (alignment - 1) or alignment > MAX_ALIGNMENT:
        yield Finding(path, f"found {alignment}; expected a power of two of at most {MAX_ALIGNMENT}")
    elif hcd.memory and hcd.memory.on_chip_cache and alignment > hcd.memory.on_chip_cache.size_kb * 1024:
        yield Finding(path, f"{alignment} bytes exceed the on-chip cache of {hcd.memory.on_chip_cache.size_kb} kB")


@rule
def accelerators_state_their_memories(hcd: Schema) -> Iterator[Finding]:
    if hcd.chip.device_type == "cpu":
        return
    if hcd.memory is None:
        yield Finding((), f"a chip of device type {hcd.chip.device_type} without the section 'memory'")
        return
    for key in ("on_chip_cache", "off_chip_memory"):
        if getattr(hcd.memory, key) is None:
            yield Finding(("memory",), f"'{key}' is missing; a chip of device type {hcd.chip.device_type} states it")
    if hcd.tensor is None or hcd.tensor.supported_dtypes is None:
        yield Finding(("tensor",) if hcd.tensor else (), "'tensor.supported_dtypes' is missing")


@rule
def cache_is_the_faster_memory(hcd: Schema) -> Iterator[Finding]:
    if hcd.memory and hcd.memory.on_chip_cache and hcd.memory.off_chip_memory:
        fast, slow = hcd.memory.on_chip_cache.bandwidth_gb_per_s, hcd.memory.off_chip_memory.bandwidth_gb_per_s
        if fast < slow:
            yield Finding(
                ("memory", "on_chip_cache", "bandwidth_gb_per_s"), f"{fast:g} GB/s on chip is below {slow:g} GB/s off chip", warning=True
            )


@rule
def attention_fits_the_sequence_limit(hcd: Schema) -> Iterator[Finding]:
    limit = hcd.constraints.max_sequence_length if hcd.constraints else None
    for name, unit in hcd.compute_units.items():
        if limit and unit.max_sequence_length and unit.max_sequence_length > limit:
            yield Finding(
                ("compute_units", name, "max_sequence_length"),
                f"{unit.max_sequence_length} exceeds constraints.max_sequence_length ({limit})",
                warning=True,
            )


@rule
def cpus_have_a_cpu_unit(hcd: Schema) -> Iterator[Finding]:
    kinds = {kind_of(n, u) for n, u in hcd.compute_units.items()}
    if (hcd.chip.device_type == "cpu") != ("cpu" in kinds):
        yield Finding(("compute_units",), "a chip of device type cpu has a unit of kind cpu, and no other chip has one")
    for name, unit in hcd.compute_units.items():
        for feature, needs in (("avx2", AVX2), ("avx512f", AVX512)):
            missing = [f for f in needs if f not in (unit.isa or ())]
            if unit.isa and feature in unit.isa and missing:
                yield Finding(
                    ("compute_units", name, "isa"), f"{feature} without {', '.join(missing)}: kernels for it will not be used", warning=True
                )

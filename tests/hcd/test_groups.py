"""The optional groups: they load, print, digest, and every rule across keys fires at its place."""

from __future__ import annotations

import re

import pytest

from flaot.errors import FlaotError
from flaot.hcd import load, load_hcd
from flaot.hcd.document import key_table
from flaot.hcd.fields import DTYPE_BYTES
from flaot.hcd.schema import Schema
from flaot.hcd.show import as_lines
from tests.hcd.full import FULL

DIGESTS = {
    "edge_dsp": "01c16eae5a4cf88dd59c7a63e3bbd449bde7c6e5452d783af8934b4c54f9777a",
    "generic_cpu": "0aa980dc448c4ae1fb949bf19220694e0793b957b3db2da48c99390a3cf1c820",
    "npu_v2": "92cc3df70b5f78d82548f6c8a708d5c11895576e887497cb903c014aa97853a5",
    "npu_v3": "b48b2854fbc4ad08e56d53fd44cf120bbe7fe68bb249451f35261cf5cf9e97ee",
    "x86_64_avx2": "6650eae1b8e3fcc40e77dfa8d16a81d51a95231a65cd96b9a3b82397e8169057",
    "x86_64_avx512": "15c46aa227165a4626f5c4a5e61ec4c029abab9b93379967038e262918f49319",
}


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_digests_that_plans_hold_do_not_change(name):
    assert load_hcd(name).digest.hex() == DIGESTS[name]


def test_every_key_is_used_and_loads_without_warnings():
    hcd = load(FULL.encode(), "full.hcd")
    assert not hcd.warnings
    assert set(Schema.model_fields) - set(hcd.to_json()) == {"extends"}
    assert hcd.full.operators["Conv"].requires[1].when.attribute == "group"


def test_show_prints_what_loads_again_as_the_same_chip():
    hcd = load(FULL.encode(), "full.hcd")
    again = load("\n".join(as_lines(hcd)).encode(), "again.hcd")
    assert again.full.model_dump(mode="json") == hcd.full.model_dump(mode="json")


@pytest.mark.parametrize(
    "key", ["memory.regions[].kind", "operators.<name>.requires[].when.at_most", "dma.paths[].source", "limits.max_steps"]
)
def test_the_manual_lists_the_keys_of_lists_and_names(key):
    assert f"| `{key}` |" in key_table()


def test_sizes_of_dtypes():
    assert [DTYPE_BYTES[d] for d in ("bool", "uint8", "bfloat16", "float32", "int64")] == [1, 1, 2, 4, 8]


def swap(text: str, first: str, second: str) -> str:
    return text.replace(first, "\0").replace(second, first).replace("\0", second)


PAIRS = [
    ("    - {source: tcm, target: ddr}\n", "    - {source: rom, target: sram}\n"),
    ("      - {attribute: strides, one_of: [1, 2], when: {attribute: group, at_least: 2}}\n", "      - {input: W, constant: true}\n"),
    ("one_of: [1, 2]", "one_of: [2, 1]"),
    ("kind: tcm, size_kb: 128", "size_kb: 128, kind: tcm"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_digest_ignores_order_where_it_means_nothing(one, other):
    assert one in FULL
    changed = swap(FULL, one, other)
    assert changed != FULL
    assert load(changed.encode(), "y").digest == load(FULL.encode(), "x").digest


@pytest.mark.parametrize(
    ("old", "new"), [("at_most: 11", "at_most: 7"), ("level: 1", "level: 2"), ("setup_cycles: 100", "setup_cycles: 99")]
)
def test_digest_covers_the_groups(old, new):
    assert load(FULL.replace(old, new).encode(), "y").digest != load(FULL.encode(), "x").digest


UNKNOWN = [
    ("read_gb_per_s: 32", "read_gb_s: 32", "memory.regions[0].read_gb_s: unknown key; did you mean 'read_gb_per_s'?"),
    ("kind: dram", "kind: dran", "memory.regions[2].kind: found 'dran'; did you mean 'dram'?"),
    ("macs_per_cycle: 256", "mac_per_cycle: 256", "arithmetic[0].mac_per_cycle: unknown key; did you mean 'macs_per_cycle'?"),
    ("rows: 16", "row: 16", "compute_units.fp16.tile.row: unknown key; did you mean 'rows'?"),
    ("layouts_in:", "layout_in:", "operators.Conv.layout_in: unknown key; did you mean 'layouts_in'?"),
    ("max_product: 121", "max_prod: 121", "operators.Conv.requires[0].max_prod: unknown key; did you mean 'max_product'?"),
    (
        "{attribute: group, at_least: 2}",
        "{atribute: group, at_least: 2}",
        "requires[1].when.atribute: unknown key; did you mean 'attribute'?",
    ),
    ("{id: r,", "{idd: r,", "fusions[0].pattern[1].idd: unknown key; did you mean 'id'?"),
    ("pad_to:", "padto:", "layouts.NCHWc8.padto: unknown key; did you mean 'pad_to'?"),
    ("channels: 2\n", "chanels: 2\n", "dma.chanels: unknown key; did you mean 'channels'?"),
    (
        "rounding: half_away_from_zero",
        "rounding: half_away",
        "quantization.rounding: found 'half_away'; did you mean 'half_away_from_zero'?",
    ),
    ("denormals: flush", "denormals: flushed", "numerics.denormals: found 'flushed'; did you mean 'flush'?"),
    ("stack_kb", "stak_kb", "host.stak_kb: unknown key; did you mean 'stack_kb'?"),
    ("max_steps", "max_step", "limits.max_step: unknown key; did you mean 'max_steps'?"),
    ("cap_mw", "cap_w", "power.cap_w: unknown key; did you mean 'cap_mw'?"),
    ("max_relayouts", "max_relayout", "policy.max_relayout: unknown key; did you mean 'max_relayouts'?"),
    ("      max_absolute_error", "      max_abs_error", "conformance.vectors[0].max_abs_error: unknown key; did you mean"),
    ("{float16: 1.5", "{float61: 1.5", "power.energy_pj_per_mac.float61: found 'float61'; did you mean 'float"),
    ("  Relu: {in_place", "  relu: {in_place", "operators.relu: found 'relu', expected an operator's name such as Conv"),
    ("operators:\n", "operaters:\n", "operaters: unknown key; did you mean 'operators'?"),
    ("inputs: [int8, int8]", "inputs: [int8]", "found a list, expected at least 2 entries"),
    ("one_of: [1, 2]", "one_of: [[1], 2]", "one_of[0]: found a list, expected text, a number, true or false"),
    ("dimensions: 2", "dimensions: 4", "dma.dimensions: found the number 4, expected a number of at most 3"),
]

RULES = [
    ("    accumulator: float32\n", "    accumulator: int32\n", "operators.Conv.accumulator: int32 for sums of floating point"),
    ("name: sram", "name: tcm", "memory.regions[1].name: a second memory named tcm"),
    ("base_address: 131072", "base_address: 65536", "memory.regions[1].base_address: sram at 65536 overlaps tcm, which ends at 131072"),
    ("base_address: 131072", "base_address: 131073", "131073 is not a multiple of constraints.memory_alignment_bytes (64)"),
    (
        "kind: sram, size_kb: 512",
        "kind: sram, size_kb: 0",
        "memory.regions[1].preferred_for: sram is preferred for activations and has a size of 0",
    ),
    ("rights: [read, write]", "rights: [read]", "sram is preferred for activations and cannot be written"),
    ("memory_alignment_bytes: 64", "memory_alignment_bytes: 96", "found 96; expected a power of two"),
    ("read_gb_per_s: 32", "read_gb_per_s: 33", "memory.regions[0].read_gb_per_s: 33 GB/s exceed the 32 GB/s of 256 bits at 1000 MHz"),
    (", transfers_per_cycle: 2", "", "memory.regions[2].write_gb_per_s: 12.8 GB/s exceed the 6.4 GB/s of 64 bits at 800 MHz"),
    (
        "visible_to: [fp16, int8]",
        "visible_to: [fp61]",
        "memory.regions[0].visible_to[0]: fp61 is no compute unit, 'host' or 'dma'; did you mean",
    ),
    ("    - {source: rom, target: sram}\n", "", "memory.regions[3]: the region rom cannot be reached"),
    ("depth: 32", "depth: 32000", "compute_units.fp16.arithmetic[0]: one tile takes 2049024 bytes; the largest fast memory has 524288"),
    ("source: rom", "source: rim", "dma.paths[4].source: rim is no memory; did you mean 'rom'?"),
    ("source: rom", "source: sram", "dma.paths[4]: a path from sram to itself"),
    ("    - {source: sram, target: ddr}\n", "", "dma.paths: nothing spills from sram: no pair of paths to ddr and back"),
    ("energy_pj_per_byte: {ddr", "energy_pj_per_byte: {dddr", "power.energy_pj_per_byte.dddr: dddr is no memory; did you mean 'ddr'?"),
    ("units: [fp16]", "units: [fp32]", "operators.Conv.units[0]: fp32 is no compute unit in use; known: fp16, int8"),
    ("count: 4\n    peak", "enabled: false\n    count: 4\n    peak", "operators.Conv.units[0]: fp16 is no compute unit in use"),
    (
        "outputs: [float16]}\n    lay",
        "outputs: [float32]}\n    lay",
        "operators.Conv.dtypes[0].outputs[0]: float32 is not among tensor.sup",
    ),
    (
        "layouts_in: [NHWC]",
        "layouts_in: [NHCW]",
        "operators.Conv.layouts_in[0]: NHCW is not among the layouts of its units (NCHW, NCHWc8, NHWC)",
    ),
    ("    max_rank: 5", "    max_rank: 6", "operators.Conv.max_rank: 6 exceeds tensor.max_rank (5)"),
    ("min_rank: 3", "min_rank: 6", "operators.Conv.min_rank: 6 exceeds max_rank (5)"),
    (
        "{input: W, constant: true}",
        "{input: W, attribute: w, constant: true}",
        "requires[2]: a condition is about either an 'attribute' or an 'input'",
    ),
    ("{input: W, constant: true}", "{input: W}", "requires[2]: a condition without anything to hold"),
    ("{input: W, constant: true}", "{attribute: W, constant: true}", "requires[2].constant: belongs to conditions on an input"),
    ("{attribute: group, at_least: 2}", "{at_least: 2}", "requires[1].when: a condition is about either"),
    ("at_least: 1,", "at_least: 12,", "operators.Conv.requires[0].at_least: 12 exceeds at_most (11): no value is allowed"),
    ("requires: [{attribute: group, at_most: 1}]", "requires: [{at_most: 1}]", "fusions[0].pattern[0].requires[0]: a condition is about"),
    ("inputs: [c]}", "inputs: [r]}", "fusions[0].pattern[1].inputs[0]: r is no earlier node; list nodes in order"),
    ("inputs: [c]}", "inputs: [x]}", "fusions[0].pattern[0].id: nothing in the pattern reads c"),
    ("{id: r,", "{id: c,", "fusions[0].pattern[1].id: a second node with the id c"),
    ("result: Conv", "result: Softmax", "fusions[0].result: Softmax is not among the chip's operators; known: Conv, Relu"),
    ("- op: Relu", "- op: Rel", "conformance.vectors[0].op: Rel is not among the chip's operators; did you mean 'Relu'?"),
    ("values: [0, 2.5]", "values: [0]", "conformance.vectors[0].outputs[0].values: 1 values for a shape of 2 elements"),
    ("[NCHW, NHWC, NCHWc8]", "[NCHW, NHWC, NCHWc8, NCHWc9]", "compute_units.fp16.supported_layouts[3]: NCHWc9 is no layout; did you mean"),
    ("axes: NCHWc,", "axes: NCHHc,", "layouts.NCHWc8.axes: NCHHc: every axis appears once"),
    ("axes: NCHWc,", "axes: NCHWd,", "an inner block only beside its axis"),
    (" blocks: {C: 8},", "", "layouts.NCHWc8.axes: NCHWc has an inner block of C without a size in blocks"),
    ("pad_to: {C: 8}", "pad_to: {D: 8}", "layouts.NCHWc8.pad_to.D: D is no axis of NCHWc here"),
    ("layouts:\n", "layouts:\n  NHWC: {axes: NCHW}\n", "layouts.NHWC.axes: NCHW under the name NHWC; choose another name"),
    (" converted_by: [dma],", "", "layouts.NCHWc8: a layout that nobody converts to; state 'converted_by'"),
    ("converted_by: [dma]", "converted_by: [fp32]", "layouts.NCHWc8.converted_by[0]: fp32 is no compute unit in use, 'host', or 'dma'"),
    (
        "inputs: [int8, int8]",
        "inputs: [int8, uint8]",
        "compute_units.int8.arithmetic[0].inputs[1]: uint8 is not among tensor.supported_dtypes",
    ),
    ("accumulator: float32", "accumulator: int32", "arithmetic[0].accumulator: int32 for factors of floating point"),
    ("  channel_axis: 0\n", "", "quantization.schemes: per-channel schemes without 'channel_axis'"),
    ("zero_point_min: -128", "zero_point_min: 128", "quantization.zero_point_min: 128 exceeds zero_point_max (127)"),
    ("scale_form: multiplier_shift", "scale_form: float", "quantization.multiplier_bits: belongs to the scale form multiplier_shift"),
    ("per_tensor_asymmetric, ", "", "quantization.schemes: only symmetric schemes"),
    ("Relu: {max_ulp: 1}", "Relu: {}", "numerics.approximations.Relu: an approximation without its error"),
    ("cap_mw: 500.5", "cap_mw: 5", "power.cap_mw: 5 mW do not exceed idle_mw (10)"),
]


@pytest.mark.parametrize(("old", "new", "expected"), UNKNOWN + RULES)
def test_refused_with_its_place(old, new, expected):
    assert old in FULL
    with pytest.raises(FlaotError) as e:
        load(FULL.replace(old, new, 1).encode(), "full.hcd")
    text = str(e.value)
    assert expected in text and e.value.exit_code == 4
    line = next(x for x in text.splitlines() if expected in x)
    assert re.search(r"full\.hcd:\d+:\d+: ", line)


def test_a_problem_stands_at_its_value():
    with pytest.raises(FlaotError, match=r"full\.hcd:26:23: memory\.regions\[1\]\.base_address: sram at 65536"):
        load(FULL.replace("base_address: 131072", "base_address: 65536").encode(), "full.hcd")


def test_alignment_larger_than_a_region():
    small = FULL.replace("tcm, size_kb: 128", "tcm, size_kb: 1").replace("alignment_bytes: 64", "alignment_bytes: 2048")
    with pytest.raises(FlaotError, match=r"memory_alignment_bytes: 2048 bytes exceed the region tcm of 1 kB"):
        load(small.encode(), "full.hcd")


def test_regions_that_nobody_sees_together_may_share_addresses():
    apart = FULL.replace("base_address: 131072, rights", "base_address: 0, visible_to: [host], rights")
    assert load(apart.encode(), "full.hcd")


WARNINGS = [
    ("peak_tflops: 2.048", "peak_tflops: 4", "1000 operations per cycle of each unit exceed the 512 of 256 multiply-accumulates"),
    (
        "    count: 4\n    arithmetic:\n      - {inputs: [int8, int8], accumulator: int32, macs_per_cycle: 512}\n",
        "    count: 4\n    peak_gops: 1\n    clock_mhz: 2000\n",
        "0.125 operations per cycle of each of 4 units at 2000 MHz are implausible",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), WARNINGS)
def test_implausible_figures_are_warnings(old, new, expected):
    assert old in FULL
    assert any(expected in w for w in load(FULL.replace(old, new).encode(), "full.hcd").warnings)

"""Fields and cross-field rules: every message carries file:line:column, the path, found and allowed."""

import pytest

from flaot.errors import FlaotError, ProblemList
from flaot.hcd import bundled, load, load_hcd
from flaot.hcd.show import as_lines
from flaot.targets.cpu import cpu_of

MINIMAL = """\
chip: {name: NPU-V2, vendor: FlagOS Certified, version: 2.1.0, device_type: npu}
compute_units:
  fp16: {count: 128, peak_gflops: 12.8, supported_layouts: [NCHW, NHWC]}
  int8: {count: 256, peak_gops: 25.6}
  attention: {enabled: true, max_sequence_length: 2048, supported_heads: [1, 2, 4, 8]}
memory:
  on_chip_cache: {size_kb: 4096, bandwidth_gb_per_s: 128}
  off_chip_memory: {bandwidth_gb_per_s: 64}
tensor: {max_rank: 5, supported_dtypes: [torch.float16, torch.int8, torch.bfloat16], default_layout: NHWC}
constraints: {max_batch_size: 256, max_sequence_length: 4096, memory_alignment_bytes: 128}
"""


def problem(old: str, new: str) -> FlaotError:
    assert old in MINIMAL
    with pytest.raises(FlaotError) as e:
        load(MINIMAL.replace(old, new).encode(), "x.hcd")
    assert e.value.exit_code == 4
    return e.value


def test_minimal_form_loads_with_warnings_on_the_peaks():
    hcd = load(MINIMAL.encode(), "x.hcd")
    assert hcd.full.tensor.supported_dtypes == ("float16", "int8", "bfloat16")
    assert [w.split(": ")[0] for w in hcd.warnings] == ["x.hcd:3:22", "x.hcd:4:22"]


CASES = [
    ("count: 128", "cuont: 128", "x.hcd:3:10: compute_units.fp16.cuont: unknown key; did you mean 'count'?"),
    ("memory:\n", "memroy:\n", "x.hcd:6:1: memroy: unknown key; did you mean 'memory'?"),
    ("name: NPU-V2, ", "", "x.hcd:1:1: chip: the key 'name' is missing"),
    ("count: 128", "count: many", "x.hcd:3:17: compute_units.fp16.count: found 'many', expected a whole number"),
    ("count: 128", "count: 1.5", "found the number 1.5, expected a whole number"),
    ("count: 128", "count: 0", "expected a number of at least 1"),
    ("count: 128", "count: [1]", "found a list, expected a whole number"),
    ("size_kb: 4096", "size_kb: -1", "expected a number of at least 1"),
    ("size_kb: 4096", "size_kb: 18446744073709551616", "more than 18 digits"),
    ("enabled: true", "enabled: 1", "found the number 1, expected true or false"),
    ("version: 2.1.0", "version: 2.1", "expected text (numbers and dates in quotes)"),
    ("device_type: npu", "device_type: N P U", "found 'N P U', expected a word of lower-case letters, digits and _"),
    ("torch.float16", "torch.flot16", "found 'flot16'; did you mean 'float16'?"),
    (
        "default_layout: NHWC",
        "default_layout: NHCW",
        "x.hcd:9:86: tensor.default_layout: NHCW is not among the supported layouts (NCHW, NHWC)",
    ),
    ("torch.bfloat16", "torch.floaty", "supported_dtypes[2]: found 'floaty'; did you mean 'float"),
    ("bytes: 128", "bytes: 3", "x.hcd:10:63: constraints.memory_alignment_bytes: found 3; expected a power of two"),
    ("bytes: 128", "bytes: 8192", "expected a power of two of at most 4096"),
    ("size_kb: 4096", "size_kb: 0", "at least 1"),
    ("attention:", "atention:", "x.hcd:5:3: compute_units.atention: a unit of unknown kind; did you mean 'attention'?"),
    (", supported_heads: [1, 2, 4, 8]", "", "an attention unit without 'supported_heads'"),
    ("[1, 2, 4, 8]", "[1, 2, 2]", "an entry appears twice"),
    ("peak_gops: 25.6", "peak_gops: 25.6, peak_tops: 0.0256", "a second peak figure beside peak_gops"),
    ("peak_gops", "peak_gflops", "x.hcd:4:22: compute_units.int8.peak_gflops: a peak in GFLOPS for a unit of kind int8; write peak_gops"),
    ("peak_gflops", "peak_gops", "write peak_gflops"),
    ("torch.int8, ", "", "compute_units.int8: computes in int8, which tensor.supported_dtypes lacks"),
    ("  off_chip_memory: {bandwidth_gb_per_s: 64}\n", "", "'off_chip_memory' is missing"),
    ("chip: {", "hcd_version: 2\nchip: {", "x.hcd:1:14: hcd_version: version 2; this flaot reads version 1"),
]


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_refused(old, new, expected):
    assert expected in str(problem(old, new))


def test_all_problems_are_reported_together():
    text = (
        MINIMAL.replace("count: 128", "cuont: 128")
        .replace("max_rank: 5", "max_rank: 50")
        .replace("bandwidth_gb_per_s: 64", "bandwidth: 64")
    )
    with pytest.raises(ProblemList) as e:
        load(text.encode(), "x.hcd")
    assert {p.where for p in e.value.problems} >= {"x.hcd:3:10", "x.hcd:9:20", "x.hcd:8:21"}


def test_figures_of_the_bundled_npus():
    v3 = load_hcd("npu_v3").full
    assert (v3.chip.name, v3.chip.device_type, v3.chip.version) == ("NPU-V3", "npu_v3", "1.0.0")
    assert (v3.compute_units["fp16"].peak, v3.compute_units["int8"].peak) == (25.6e12, 51.2e12)
    assert v3.compute_units["attention"].supported_heads == (1, 2, 4, 8, 16)
    v2 = load_hcd("npu_v2")
    assert v2.full.memory.on_chip_cache.size_kb == 4096
    assert v2.full.constraints.memory_alignment_bytes == 128
    assert not v2.warnings


@pytest.mark.parametrize("name", sorted(bundled()))
def test_bundled_descriptors_load_without_warnings(name):
    hcd = load_hcd(name)
    assert hcd.full.tensor.max_rank and hcd.full.constraints.memory_alignment_bytes
    assert not hcd.warnings


def test_digest_ignores_order_comments_and_spelling():
    shuffled = "# a comment\n" + "\n".join(reversed(MINIMAL.split("\n", 1)))
    same = [MINIMAL.replace("torch.", ""), MINIMAL.replace("[NCHW, NHWC]", "[NHWC, NCHW]"), MINIMAL.replace("128}", "128.0}", 1), shuffled]
    for text in same:
        assert load(text.encode(), "y.hcd").digest == load(MINIMAL.encode(), "x.hcd").digest
    assert load(MINIMAL.replace("size_kb: 4096", "size_kb: 4095").encode(), "x").digest != load(MINIMAL.encode(), "x").digest


def test_derived_defaults_are_listed_with_their_source():
    hcd = load(b"chip: {name: c, device_type: cpu}\ncompute_units: {cpu: {isa: [avx2, fma, f16c]}}\n", "c.hcd")
    derived = {".".join(d.path): d.value for d in hcd.derived}
    assert derived["constraints.memory_alignment_bytes"] == 64
    assert derived["tensor.default_layout"] == "NCHW"
    assert all(d.source for d in hcd.derived)
    assert "tensor" not in hcd.to_json()


def test_what_time_costs_is_derived_with_its_source():
    hcd = load(MINIMAL.encode(), "x.hcd")
    derived = {".".join(d.path): (d.value, d.source) for d in hcd.derived}
    assert derived["clock_mhz"] == (1000, "cycles are nanoseconds unless stated")
    assert derived["dma.channels"] == (2, "one for what comes ahead of time, one for the rest")
    assert derived["dma.dimensions"] == (3, "the most a descriptor may state")
    assert derived["dma.gb_per_s"] == (64, "the bandwidth of off_chip_memory")
    assert derived["host.link_gb_per_s"] == (4, "4 GB/s, or off_chip_memory's if that is less")
    assert derived["host.link_setup_cycles"] == (1000, "a microsecond")
    assert {n: derived[n][0] for n in ("compute_units.fp16.launch_cycles", "dma.setup_cycles", "host.transfers")} == {
        "compute_units.fp16.launch_cycles": 0, "dma.setup_cycles": 0, "host.transfers": "synchronous",
    }
    assert not {"dma", "host", "clock_mhz"} & set(hcd.to_json())
    assert "  dimensions: 3  # derived: the most a descriptor may state" in as_lines(hcd)


def test_what_time_costs_follows_what_is_stated():
    slow = MINIMAL.replace("off_chip_memory: {bandwidth_gb_per_s: 64}", "off_chip_memory: {bandwidth_gb_per_s: 1.5}")
    hcd = load((slow + "clock_mhz: 250\ndma: {channels: 4}\n").encode(), "x.hcd")
    derived = {".".join(d.path): d.value for d in hcd.derived}
    assert (derived["host.link_gb_per_s"], derived["host.link_setup_cycles"], derived["dma.gb_per_s"]) == (1.5, 250, 1.5)
    assert "dma.channels" not in derived and "clock_mhz" not in derived and hcd.full.dma.channels == 4
    unified = load((slow + "host: {transfers: zero_copy}\n").encode(), "x.hcd")
    assert not {d.path[1] for d in unified.derived if d.path[0] == "host"}
    cpu = load(b"chip: {name: c, device_type: cpu}\ncompute_units: {cpu: {isa: [avx2]}}\n", "c.hcd")
    assert cpu.full.dma is None and cpu.full.host is None and cpu.full.clock_mhz is None


def test_origin_names_the_line_of_a_limit():
    assert load(MINIMAL.encode(), "npu.hcd").origin("constraints", "max_batch_size") == "npu.hcd:10"


def test_cpu_variants():
    assert cpu_of(load_hcd("generic_cpu")).variants == ("generic",)
    assert cpu_of(load_hcd("x86_64_avx2")).variants == ("generic", "avx2")
    assert cpu_of(load_hcd("x86_64_avx512"), precision_high=True).variants == ("generic", "avx2", "avx512")


def test_look_up(tmp_path):
    (tmp_path / "mine.hcd").write_text(MINIMAL)
    assert load_hcd(tmp_path / "mine.hcd").name == "NPU-V2"
    assert load_hcd("host").full.chip.device_type == "cpu"
    with pytest.raises(FlaotError, match="did you mean 'npu_v2'") as e:
        load_hcd("npu_2")
    assert e.value.exit_code == 4
    for bad in (tmp_path, tmp_path / "absent.hcd"):
        with pytest.raises(FlaotError) as e:
            load_hcd(bad)
        assert e.value.exit_code == 8


def test_a_device_type_of_another_vendor_is_a_valid_descriptor():
    assert load(MINIMAL.replace("device_type: npu", "device_type: acme_npu").encode(), "acme.hcd").full.chip.device_type == "acme_npu"

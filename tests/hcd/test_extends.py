"""Derivatives: what they inherit, where problems stand, which bases are refused."""

from __future__ import annotations

import pytest

from flaot.errors import FlaotError
from flaot.hcd import load, load_file, load_hcd
from flaot.hcd.show import as_lines
from tests.hcd.test_loader import MINIMAL

FAMILY = "extends: npu_v2\nchip: {name: NPU-V2-S}\ncompute_units:\n  fp16: {count: 64, peak_tflops: 6.4}\n"


def refused(path, *, code: int = 4) -> str:
    with pytest.raises(FlaotError) as e:
        load_file(path)
    assert e.value.exit_code == code
    return str(e.value)


def test_a_derivative_states_only_what_differs():
    small, base = load(FAMILY.encode(), "s.hcd"), load_hcd("npu_v2")
    assert (small.full.chip.name, small.full.chip.vendor) == ("NPU-V2-S", base.full.chip.vendor)
    assert small.full.compute_units["fp16"].supported_layouts == base.full.compute_units["fp16"].supported_layouts
    assert small.full.compute_units["fp16"].peak == 6.4e12
    assert small.full.memory == base.full.memory
    assert small.bases == ("npu_v2.hcd",)


def test_it_is_the_same_chip_as_one_that_states_everything():
    base, nothing_new = load_hcd("npu_v2"), load(b"extends: npu_v2\n", "s.hcd")
    assert nothing_new.digest == base.digest
    shown = as_lines(load(FAMILY.encode(), "s.hcd"))
    assert "# extends npu_v2.hcd" in shown
    flat, derived = load("\n".join(shown).encode(), "flat.hcd"), load(FAMILY.encode(), "s.hcd")
    assert flat.full.model_dump(mode="json") == derived.full.model_dump(mode="json")


def test_positions_are_those_of_the_file_that_states_the_key():
    small = load(FAMILY.encode(), "s.hcd")
    assert small.origin("compute_units", "fp16", "count") == "s.hcd:4"
    assert small.origin("constraints", "max_batch_size").startswith("npu_v2.hcd:")
    with pytest.raises(FlaotError, match=r"s\.hcd:4:21: compute_units\.fp16\.cuont: unknown key; did you mean 'count'"):
        load(FAMILY.replace("{count: 64", "{count: 64, cuont: 64").encode(), "s.hcd")
    with pytest.raises(FlaotError, match=r"npu_v2\.hcd:\d+:\d+: tensor\.default_layout: NHWC is not among"):
        load(FAMILY.replace("count: 64", "supported_layouts: [NCHW]").encode(), "s.hcd")


def test_lists_are_replaced():
    fewer = load(b"extends: npu_v2\ncompute_units: {attention: {supported_heads: [2]}}\n", "s.hcd")
    assert fewer.full.compute_units["attention"].supported_heads == (2,)


def test_a_base_in_a_file_and_its_base(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "base.hcd").write_text(MINIMAL)
    (tmp_path / "sub" / "middle.hcd").write_text("extends: ../base.hcd\nchip: {name: Middle}\n")
    (tmp_path / "top.hcd").write_text("extends: sub/middle.hcd\nchip: {vendor: Me}\n")
    top = load_file(tmp_path / "top.hcd")
    assert (top.full.chip.name, top.full.chip.vendor, top.full.tensor.max_rank) == ("Middle", "Me", 5)
    assert [b.rsplit("/", 1)[-1] for b in top.bases] == ["middle.hcd", "base.hcd"]
    assert "'../base.hcd' leads out of the descriptor's folder" in refused(tmp_path / "sub" / "middle.hcd")


def test_cycles(tmp_path):
    (tmp_path / "a.hcd").write_text("extends: b.hcd\n")
    (tmp_path / "b.hcd").write_text("chip: {name: b}\nextends: ./a.hcd\n")
    (tmp_path / "self.hcd").write_text("extends: self.hcd\n")
    assert "b.hcd:2:10: extends: ./a.hcd extends itself, by way of its bases" in refused(tmp_path / "a.hcd")
    assert "self.hcd:1:10: extends: self.hcd extends itself" in refused(tmp_path / "self.hcd")


def test_a_chain_is_short(tmp_path):
    for i in range(12):
        (tmp_path / f"c{i}.hcd").write_text(f"extends: c{i + 1}.hcd\n")
    assert "c8.hcd:1:10: extends: more than 8 bases" in refused(tmp_path / "c0.hcd")


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("npu_2", ":1:10: extends: no bundled descriptor named 'npu_2'; did you mean 'npu_v2'?"),
        ("absent.hcd", "absent.hcd: no such file or directory"),
        ("/etc/passwd", ":1:10: extends: '/etc/passwd' leads out of the descriptor's folder; put the base beside it"),
        ("../x.hcd", ":1:10: extends: '../x.hcd' leads out"),
        ("a/../../x.hcd", "leads out"),
        ("link.hcd", "'link.hcd' leads out"),
        ("[npu_v2]", ":1:10: extends: found a list, expected a bundled name or a file"),
        ('""', "extends: found '', expected a bundled name or a file"),
        ("folder/", "is not a regular file"),
        ("bad.hcd", "bad.hcd:1:7: the alias *x; aliases are not allowed"),
        ("newer.hcd", "newer.hcd:1:14: hcd_version: version 2"),
    ],
)
def test_bases_that_are_refused(tmp_path, stated, expected):
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (tmp_path / "x.hcd").write_text(MINIMAL)
    (inside / "link.hcd").symlink_to(tmp_path / "x.hcd")
    (inside / "bad.hcd").write_text("chip: *x\n")
    (inside / "newer.hcd").write_text("hcd_version: 2\n")
    (inside / "d.hcd").write_text(f"extends: {stated}\n")
    assert expected in refused(inside / "d.hcd")


def test_a_text_without_a_file_extends_bundled_descriptors_only():
    with pytest.raises(FlaotError, match=r"s\.hcd:1:10: extends: 'base\.hcd' is relative to a file"):
        load(b"extends: base.hcd\n", "s.hcd")

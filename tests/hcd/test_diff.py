"""Differences by key path, and the template."""

from __future__ import annotations

from flaot.hcd import load, load_hcd
from flaot.hcd.diff import differences
from flaot.hcd.schema import Schema
from flaot.hcd.template import TEMPLATE
from tests.hcd.full import FULL


def lines(old: str, new: str) -> list[str]:
    assert old in FULL
    return [str(d) for d in differences(load(FULL.encode(), "a"), load(FULL.replace(old, new, 1).encode(), "b"))]


def test_a_changed_an_added_and_a_missing_key():
    assert lines("setup_cycles: 100", "setup_cycles: 99") == ["~ dma.setup_cycles: 100 -> 99"]
    assert lines("limits: {max_steps: 1000, ", "limits: {") == ["- limits.max_steps: 1000"]
    assert lines("  Relu: {in_place: true}", "  Relu: {in_place: true, max_rank: 4}") == ["+ operators.Relu.max_rank: 4"]


def test_regions_are_compared_by_name_whatever_their_order():
    assert lines("size_kb: 4096", "size_kb: 8192") == ["~ memory.regions[rom].size_kb: 4096 -> 8192"]


def test_order_is_no_difference_and_defaults_are():
    a = load_hcd("npu_v2")
    assert differences(a, a) == []
    base = "chip: {name: c, device_type: cpu}\ncompute_units: {cpu: {count: 1}}\n"
    found = differences(load(base.encode(), "a"), load(base.replace("count: 1", "supported_layouts: [NHWC]").encode(), "b"))
    assert [d.path for d in found] == ["compute_units.cpu.supported_layouts", "tensor.default_layout"]


def test_the_template_validates_and_shows_every_group():
    assert not load(TEMPLATE.encode(), "new.hcd").warnings
    groups = {line.lstrip("# ").partition(":")[0] for line in TEMPLATE.splitlines()}
    assert set(Schema.model_fields) - groups == {"conformance"}


def test_the_templates_comments_validate_too():
    uncommented = []
    for line in TEMPLATE.splitlines():
        head, mark, rest = line.partition("# ")
        optional = mark and not head.strip() and (rest.lstrip().startswith("- ") or rest.partition(":")[1]) and "extends" not in rest
        uncommented.append(head + rest if optional and not rest.startswith(("A hardware", "Check")) else line)
    hcd = load("\n".join(uncommented).encode(), "new.hcd")
    assert {"operators", "fusions", "layouts", "dma", "quantization", "numerics", "host", "limits", "power", "policy"} <= set(hcd.to_json())

"""Warnings about operators, attributes and inputs that no node can have."""

from __future__ import annotations

from flaot.hcd import bundled, load_hcd
from flaot.mapping.audit import audit
from tests.mapping.models import chip


def test_bundled_descriptors_are_clean() -> None:
    assert {name: audit(load_hcd(name)) for name in bundled()} == dict.fromkeys(bundled(), ())


def test_unknown_names_are_told_with_their_lines() -> None:
    wrong = chip(
        "edge_dsp", ("  Sqrt: {units: [vector]}", "  Sqqrt: {units: [vector]}"), ("attribute: strides", "attribute: stride"),
        ("input: W", "input: Z"), ("  Exp: {units: [vector]}", "  Exp: {units: [vector]}\n  Tile: {units: [vector]}"),
    )
    found = audit(wrong)
    assert any(w.startswith("edge_dsp.hcd:") and "there is no operator Sqqrt; did you mean 'Sqrt'" in w for w in found)
    assert any("conditions on stride of Conv are never met; known are dilations, group, kernel_shape, pads, strides" in w for w in found)
    assert any("Conv has no input Z" in w for w in found)
    assert any("Tile is read as Expand, Reshape; list Expand as well" in w for w in found)
    assert len(found) == 4

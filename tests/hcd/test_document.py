"""The generated table and JSON Schema agree with what the loader accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from flaot.hcd.document import BEGIN, END, json_schema, key_table
from tests.hcd.full import FULL
from tests.hcd.test_loader import MINIMAL

DOCS = Path(__file__).resolve().parents[2] / "docs" / "hcd.md"


def test_the_table_in_the_manual_is_fresh():
    table = DOCS.read_text().partition(f"{BEGIN}\n")[2].partition(END)[0]
    assert table == key_table()


def test_the_table_lists_every_key_of_the_minimal_form():
    for key in ("compute_units.<name>.peak_gops", "memory.on_chip_cache.size_kb", "constraints.memory_alignment_bytes"):
        assert f"`{key}`" in key_table()


def test_json_schema_accepts_the_minimal_form_and_no_null():
    schema = json_schema()
    assert "null" not in str(schema)
    assert "torch.float16" in str(schema)
    jsonschema = pytest.importorskip("jsonschema")
    from flaot.hcd.text import parse

    for text in (MINIMAL, FULL, "extends: npu_v2\nchip: {name: mine}\n"):
        jsonschema.validate(parse(text.encode(), "x").plain(), schema)
    for text in ("chip: {name: mine, device_type: npu}\n", MINIMAL.replace("name: NPU-V2, ", ""), FULL.replace("kind: dram, ", "")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(parse(text.encode(), "x").plain(), schema)


def test_json_schema_lets_a_derivative_leave_keys_out_and_others_not():
    schema = json_schema()
    assert "required" not in schema and all("required" not in s for s in schema["$defs"].values())
    assert schema["if"] == {"not": {"required": ["extends"]}}
    assert schema["then"]["required"] == ["chip", "compute_units"]
    assert schema["then"]["properties"]["memory"]["properties"]["regions"]["items"]["required"] == ["name", "kind", "size_kb"]

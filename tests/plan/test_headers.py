"""Limits in headers that are written by hand are those of plans."""

from __future__ import annotations

import re
from pathlib import Path

from flaot.plan import fields

INCLUDE = Path(fields.__file__).resolve().parents[1] / "runtime" / "csrc" / "include" / "flaot"


def test_limits_in_c_are_those_of_plans() -> None:
    text = (INCLUDE / "adapter.h").read_text() + (INCLUDE / "kernel.h").read_text()
    found = {name: int(value) for name, value in re.findall(r"FL_(MAX_\w+) = (\d+)", text)}
    assert found == {name: getattr(fields, name) for name in found}
    assert {"MAX_UNITS", "MAX_RANK", "MAX_OPERANDS"} <= found.keys()

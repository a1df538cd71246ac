from __future__ import annotations

import pytest

from flaot.schedule.chip import compose


@pytest.fixture
def one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the plan for all of on-chip memory and every DMA channel, not those for less."""
    monkeypatch.setattr(compose, "FEW", 0)
    monkeypatch.setattr(compose, "MANY", 0)

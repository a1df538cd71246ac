"""Real images, text and speech give the answers a person would check."""

from __future__ import annotations

import pytest

from tests.models.check import compiled, run
from tests.models.manifest import folder, models
from tests.models.real_inputs import CASES

pytestmark = pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")

SLOW = {"page"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in CASES])
def test_answer(name: str) -> None:
    case = CASES[name]
    model = models()[case.model]
    plan = compiled(model.path, "host", case.shapes if case.shapes is not None else model.shapes)
    case.check([run(plan, feeds) for feeds in case.feeds()])

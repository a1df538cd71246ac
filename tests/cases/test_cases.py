"""Small models from public bug reports: each has the verdict tests/cases.ratchet records; a change in either direction fails."""

from __future__ import annotations

import pytest

from tests.cases.run import folder, judge, names, ratchet

pytestmark = [pytest.mark.slow, pytest.mark.skipif(folder() is None, reason="FLAOT_CASES is not set")]


@pytest.mark.parametrize("name", names())
def test_case_is_as_recorded(name: str) -> None:
    verdict = judge(name)
    assert verdict.word != "crash", verdict.why
    assert verdict == ratchet().get(name), "run python -m tests.cases.run --write and look at the difference"


def test_every_case_is_on_record() -> None:
    assert sorted(ratchet()) == names()

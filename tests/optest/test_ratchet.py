"""What a ratchet accepts, and the pages that are published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flaot.errors import UsageError
from flaot.hcd import load_hcd
from flaot.optest.probes.finding import Finding
from flaot.optest.ratchet import Ratchet, better_than, gone, worse_than
from flaot.optest.report import document, markdown, page
from flaot.optest.suite import Outcome
from flaot.optest.verdict import ELSEWHERE, PASS, TRAPPED, WRONG, Verdict

HELD = Ratchet("NPU", {"Relu/typical/a": PASS, "Add/typical/a": ELSEWHERE, "Add/typical/b": WRONG}, {"tensor.max_rank 6": "lies"})


def test_a_file_holds_what_was_written() -> None:
    text = HELD.text()
    assert Ratchet.parse(text.encode(), "f") == HELD
    assert '"Relu": ["typical/a"]' in text and '"wrong": ["Add/typical/b"]' in text


def test_worse_better_and_new() -> None:
    now = Ratchet(
        "NPU", {"Relu/typical/a": TRAPPED, "Add/typical/a": PASS, "Add/typical/b": WRONG, "Mul/x": PASS, "Div/x": WRONG},
        {"tensor.max_rank 6": "holds"},
    )
    assert worse_than(HELD, now) == [("Relu/typical/a", PASS, TRAPPED), ("Div/x", "", WRONG)]
    assert better_than(HELD, now) == [("Add/typical/a", ELSEWHERE, PASS), ("tensor.max_rank 6", "lies", "holds")]
    joined = HELD.joined(now)
    assert joined.cases["Relu/typical/a"] == PASS and joined.cases["Add/typical/a"] == PASS and joined.cases["Div/x"] == WRONG
    assert joined.probes == {"tensor.max_rank 6": "holds"}


def test_a_whole_run_drops_what_is_gone() -> None:
    now = Ratchet("NPU", {"Relu/typical/a": PASS}, {})
    assert HELD.joined(now).without_gone(now) == now and "Add/typical/a" in HELD.joined(now).cases


def test_what_is_gone_is_named() -> None:
    held = Ratchet("X", {"Relu/a": "pass", "Abs/b": "wrong"}, {"rank 4": "holds"})
    assert gone(held, Ratchet("X", {"Relu/a": "wrong", "Relu/c": "pass"}, {})) == ["Abs/b", "rank 4"]
    assert gone(held, held) == []


def test_part_of_a_run_is_judged_alone() -> None:
    assert worse_than(HELD, replace(HELD, cases={"Relu/typical/a": PASS}, probes={})) == []


BAD = b'{"format": 1, "chip": "x", "pass": 3, "others": {}, "probes": {}}'


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 1}', BAD])
def test_what_is_no_ratchet(data: bytes) -> None:
    with pytest.raises(UsageError, match="not a ratchet"):
        Ratchet.parse(data, "f")


def test_ratchets_of_other_times() -> None:
    with pytest.raises(UsageError, match="a ratchet of format 2"):
        Ratchet.parse(b'{"format": 2}', "f")
    with pytest.raises(UsageError, match="unknown verdict 'fine'"):
        Ratchet.parse(b'{"format": 1, "chip": "x", "pass": {}, "others": {"fine": ["a"]}, "probes": {}}', "f")


def test_pages_hold_chip_versions_verdicts_and_probes() -> None:
    hcd = load_hcd("npu_v3")
    verdicts = [Verdict("Relu/typical/a", "Relu", "typical", PASS), Verdict("Add/typical/a", "Add", "typical", WRONG, "got <1> | want 2")]
    lie = Finding("rank", "tensor.max_rank", "npu_v3.hcd:9", "6", "5", "lies", "rank 6 fails", "state max_rank: 5")
    d = document(Outcome(hcd, verdicts), [lie], "adapter toy 1.2")
    text, html = markdown(d), page(d)
    for held in (text, html):
        assert "NPU-V3" in held and hcd.digest.hex() in held and "adapter toy 1.2" in held and "npu_v3.hcd:9" in held and "lies" in held
    assert "| Relu | kept | 1 | 1 | exact | - |" in text and "got <1> \\| want 2" in text
    assert "got &lt;1&gt; | want 2" in html and html.startswith("<!doctype html>") and "src=" not in html and "href=" not in html

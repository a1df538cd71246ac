"""Strict YAML: what is refused, and where the message points."""

import pytest

from flaot.errors import FlaotError, ProblemList
from flaot.hcd.text import MAX_BYTES, parse, plain_scalar

REFUSED = {
    "empty": (b"", "x.hcd:1:1: the descriptor is empty"),
    "only comments": (b"# nothing\n", "x.hcd:1:1: the descriptor is empty"),
    "list": (b"- 1\n", "x.hcd:1:1: found a list"),
    "scalar": (b"text\n", "x.hcd:1:1: found 'text'"),
    "two documents": (b"a: 1\n---\nb: 2\n", "x.hcd:2:1: a second document"),
    "byte order mark": (b"\xef\xbb\xbfa: 1\n", "x.hcd:1:1: a byte order mark"),
    "utf-16": ("a: 1\n".encode("utf-16"), "x.hcd:1:1: UTF-16"),
    "utf-16 without mark": ("a: 1\n".encode("utf-16-le"), "x.hcd:1:1: UTF-16"),
    "tab indent": (b"a:\n\tb: 1\n", "x.hcd:2:1: a tab"),
    "nul": (b"a: 1\nb: \0\n", "x.hcd:2:4: control character U+0000"),
    "escape": (b"a: '\x1b[2J'\n", "x.hcd:1:5: control character U+001B"),
    "not utf-8": (b"a: \xff\n", "x.hcd:1:4: byte 0xff"),
    "duplicate key": (b"a: 1\nb: 2\na: 3\n", "x.hcd:3:1: the key 'a' for the second time; the first is on line 1"),
    "anchor": (b"a: &x 1\n", "x.hcd:1:4: the anchor &x"),
    "alias": (b"a: *x\n", "x.hcd:1:4: the alias *x"),
    "self alias": (b"a: &x [*x]\n", "x.hcd:1:4: the anchor &x"),
    "merge": (b"<<: {a: 1}\n", "x.hcd:1:1: the merge key"),
    "python tag": (b"a: !!python/object/apply:os.system [ls]\n", "x.hcd:1:4: the tag"),
    "binary tag": (b"a: !!binary aGk=\n", "x.hcd:1:4: the tag"),
    "own tag": (b"a: !mine 3\n", "x.hcd:1:4: the tag"),
    "list as key": (b"? [a]\n: 1\n", "x.hcd:1:3: a list or mapping used as a key"),
    "null": (b"a:\nb: 1\n", "no value (null)"),
    "unclosed": (b"{a: 1\n", "not valid YAML"),
    "deep": (b"a: " + b"[" * 50_000, "nest"),
    "deep blocks": (b"".join(b" " * i + b"a:\n" for i in range(60)), "nested deeper than 32 levels"),
    "long scalar": (b"a: " + b"x" * 10_000, "x.hcd:1:4: a value of 10000 characters"),
    "huge file": (b"#" * (MAX_BYTES + 1), f"at most {MAX_BYTES}"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_position(name):
    data, expected = REFUSED[name]
    with pytest.raises(FlaotError) as e:
        parse(data, "x.hcd")
    assert expected in str(e.value)
    assert e.value.exit_code == 4


@pytest.mark.parametrize(
    "text",
    [
        "NO",
        "yes",
        "On",
        "y",
        "010",
        "0x10",
        "0b1",
        "1:30",
        "1_000",
        "1e3",
        ".nan",
        "-.inf",
        ".5",
        "+1",
        "-0",
        "1.",
        "2026-01-01",
        "null",
        "~",
        "Null",
    ]
    + ["9" * 5000],
)
def test_ambiguous_scalars(text):
    with pytest.raises(ValueError):
        plain_scalar(text)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("-3", -3), ("12.50", 12.5), ("true", True), ("2.1.0", "2.1.0"), ("NHWC", "NHWC"), ("no-1", "no-1")]
)
def test_plain_scalars(text, value):
    assert plain_scalar(text) == value
    assert type(plain_scalar(text)) is type(value)


def test_quotes_make_text():
    assert parse(b"a: 'NO'\nb: \"010\"\n", "x").plain() == {"a": "NO", "b": "010"}


def test_crlf_is_accepted():
    assert parse(b"a: 1\r\nb:\r\n  c: [1, 2]\r\n", "x").plain() == {"a": 1, "b": {"c": [1, 2]}}


def test_every_ambiguous_value_is_reported_at_once():
    with pytest.raises(ProblemList) as e:
        parse(b"a: NO\nb: 010\nc: 1e3\n", "x.hcd")
    assert [p.where for p in e.value.problems] == ["x.hcd:1:4", "x.hcd:2:4", "x.hcd:3:4"]


def test_many_problems_are_counted():
    with pytest.raises(ProblemList) as e:
        parse(b"a: 1\n" * 5000, "x.hcd")
    assert str(e.value).splitlines()[-1] == "4979 more problems"

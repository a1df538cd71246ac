"""The light parser of ``flaot run`` and click's declaration say the same."""

from __future__ import annotations

import click
import pytest

from flaot.cli import quick
from flaot.cli.run import command


def test_the_two_declarations_are_equal():
    by_kind: dict[str, dict] = {"text": {}, "list": {}, "number": {}, "flag": {}}
    for p in command.params:
        if isinstance(p, click.Option):
            (name,) = p.opts
            if p.is_flag:
                by_kind["flag"][name] = p.name
            elif p.multiple:
                by_kind["list"][name] = p.name
            elif isinstance(p.type, click.IntRange):
                by_kind["number"][name] = (p.name, p.default, p.type.min, p.type.max)
            else:
                by_kind["text"][name] = p.name
    assert by_kind == {"text": quick.TEXTS, "list": quick.LISTS, "number": quick.NUMBERS, "flag": quick.FLAGS}


@pytest.mark.parametrize(
    "line",
    [
        "p.flp",
        "p.flp --inputs f.npz --outputs=o.npz --json",
        "--seed 7 p.flp --repeat=20 --threads 2 --profile",
        "p.flp --input a=b=c.npy --input x=x.npy",
        "p.flp --input=a=b",
        "p.flp --inputs --json",
    ],
)
def test_both_parsers_agree(line):
    words = line.split()
    assert quick.parse(["run", *words]) == command.make_context("run", list(words)).params


@pytest.mark.parametrize(
    "line",
    [
        "",
        "p q",
        "p --help",
        "p -h",
        "p --seed",
        "p --seed x",
        "p --seed -1",
        "p --threads 0",
        "p --repeat 9999999999",
        "p --bogus",
        "-- -p",
        "p --js",
        "p --profile=1",
    ],
)
def test_the_rest_is_left_to_click(line):
    assert quick.parse(["run", *line.split()]) is None


def test_other_commands_are_left_to_click():
    assert quick.parse([]) is None
    assert quick.parse(["verify", "p", "m"]) is None

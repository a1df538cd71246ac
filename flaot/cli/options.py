"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from flaot.cli.pairs import pairs
from flaot.errors import UsageError, printable

F = TypeVar("F", bound=Callable[..., Any])


class _Chip(click.Path):
    """A bundled descriptor by name, or a file."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from flaot.hcd.library import bundled

        names = [CompletionItem(n) for n in ("host", *bundled()) if n.startswith(incomplete)]
        return [*super().shell_complete(ctx, param, incomplete), *names]


FILE, CHIP = click.Path(readable=False), _Chip(readable=False)
"""Paths taken as they are, which the shell completes; what is wrong with a file is said where it is read."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


def only(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> str:
    """The value of an option that other commands take several times, this one once. Raises UsageError."""
    if len(given) > 1:
        raise UsageError(f"{param.opts[0]} is given {len(given)} times; {ctx.info_name} takes one")
    return given[0]


def input_options(fn: F) -> F:
    """``--inputs``, ``--input`` and ``--seed``: what to feed."""
    fn = click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1), help="Seed of the random inputs.")(fn)
    fn = click.option("--input", "single", multiple=True, metavar="NAME=X.npy", help="One input from a .npy file; repeatable.")(fn)
    return click.option("--inputs", type=FILE, metavar="FEEDS.npz", help="Inputs by name; those not given are seeded random.")(fn)


def thread_option(fn: F) -> F:
    return click.option("--threads", default=1, show_default=True, type=click.IntRange(1, 256), help="Threads to run on.")(fn)


def adapter_option(fn: F) -> F:
    text = "Library that runs the plan's chips, or 'simulator'. Without it an installed package's does, or else the simulator."
    return click.option("--adapter", type=FILE, metavar="LIB.so", help=text)(fn)


def adapters_option(fn: F) -> F:
    text = "Library that runs the chips of its device type, or 'simulator'; repeatable. Others run by installed adapters, else simulated."
    return click.option("--adapter", type=FILE, multiple=True, metavar="LIB.so", help=text)(fn)


def shapes(given: tuple[str, ...]) -> dict[str, tuple[int, ...] | int]:
    """``--shape x=1,3,224,224`` binds an input, ``--shape batch=1`` a symbol or an input of one dimension. Raises UsageError."""
    return {name: _shape(name, value) for name, value in pairs("--shape", given, "NAME=SIZES, such as x=1,3,224,224").items()}


def _shape(name: str, value: str) -> tuple[int, ...] | int:
    parts = [p.strip() for p in value.split(",")]
    if any(not (p.isascii() and p.isdigit()) or len(p) > 10 for p in parts):
        raise UsageError(f"--shape {printable(name)}={printable(value)}: expected whole numbers separated by commas, such as 1,3,224,224")
    sizes = tuple(int(p) for p in parts)
    return sizes[0] if len(sizes) == 1 else sizes

"""Options about where a model's nodes may go, shared by compile and query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from flaot.cli import console
from flaot.cli.options import CHIP, FILE
from flaot.cli.pairs import pairs
from flaot.files import read_file
from flaot.mapping import LEVELS as LEVELS
from flaot.plan.fields import MAX_DEPTH

if TYPE_CHECKING:
    from flaot.hcd import Board
    from flaot.mapping.policy import Policy
    from flaot.schedule.chip.compose import ChipOptions

F = TypeVar("F", bound=Callable[..., Any])

MAX_ROUTES = 1 << 20
"""Bytes of a file of routes."""

FALLBACK = (
    "What the host may run when the chip cannot: nothing, all but what breaks a limit (and say so), everything. "
    "The descriptor's policy by default, else warn."
)
ROUTE = "Send an operator or node to a device, such as Softmax=host or '/enc*/Gelu=npu_v3'; repeatable."
EXPAND = "Compute an operator by simpler ones although the chip has a unit that refuses it; repeatable."
PRECISION = "'high' keeps the model's element type with float32 sums and no approximating kernels, or fails."

_OPTIONS = (
    click.option("--fallback", type=click.Choice(["error", "warn", "allow"]), help=FALLBACK),
    click.option("--route", "route", multiple=True, metavar="WHAT=DEVICE", help=ROUTE),
    click.option("--routes", type=FILE, metavar="FILE", help="A YAML mapping of such routes."),
    click.option("--prefer", default="", metavar="DEVICE", help="Place nodes on this device wherever they can run there."),
    click.option("--exclude", multiple=True, metavar="DEVICE", help="Place no node on this device; repeatable."),
    click.option("--allow-expand", multiple=True, metavar="OP", help=EXPAND),
    click.option("--precision", type=click.Choice(["default", "high"]), default="default", help=PRECISION),
)


_CHIP_OPTIONS = (
    click.option(
        "--memory-pool-size", type=click.IntRange(1), metavar="KB",
        help="On-chip memory of chips to use, kB of 1024 bytes; all of it by default."
    ),
    click.option(
        "--queue-depth", type=click.IntRange(1, MAX_DEPTH), metavar="N",
        help="Most commands a queue of a chip holds; by default the descriptor's figure."
    ),
    click.option(
        "--async/--no-async", "asynchronous", default=True, show_default=True, help="Whether queues of a chip run at the same time."
    ),
)


def chips_option(fn: F) -> F:
    """``--hcd``, the host by default."""
    text = "Chip to compile for (host by default), or up to three of one plan, and the CPU beside them; repeatable. See 'flaot hcd list'."
    return click.option("--hcd", type=CHIP, multiple=True, metavar="NAME|FILE", help=text)(fn)


def chip_options(fn: F) -> F:
    """``--memory-pool-size``, ``--queue-depth`` and ``--async``."""
    for option in reversed(_CHIP_OPTIONS):
        fn = option(fn)
    return fn


def limits(given: dict[str, Any]) -> ChipOptions:
    """What these options ask of the schedule of chips."""
    from flaot.schedule.chip.compose import ChipOptions

    pool = given["memory_pool_size"]
    return ChipOptions(None if pool is None else pool * 1024, given["queue_depth"], given["asynchronous"])


def mapping_options(fn: F) -> F:
    """``--fallback``, ``--route``, ``--routes``, ``--prefer``, ``--exclude``, ``--allow-expand`` and ``--precision``."""
    for option in reversed(_OPTIONS):
        fn = option(fn)
    return fn


def board(given: tuple[str, ...], default: str = "") -> Board:
    """What the descriptors named describe together; their warnings are shown. Raises what loading raises, and UsageError."""
    from flaot.hcd import board_of
    from flaot.mapping.audit import audit

    found = board_of(given or (default,))
    console.warn([sentence for hcd in found.all for sentence in (*hcd.warnings, *audit(hcd))])
    return found


def policy(chip: Board, given: dict[str, Any]) -> Policy:
    """The policy these options ask for. Raises UsageError, HcdError for the file of routes, FileSystemError."""
    from flaot.mapping.policy import policy_of

    file = given["routes"]
    content = (read_file(file, "a file of routes", MAX_ROUTES), file) if file is not None else None
    return policy_of(
        chip, fallback=given["fallback"], routes=given["route"], route_file=content, prefer=given["prefer"], exclude=given["exclude"],
        allow_expand=given["allow_expand"],
    )


def layouts(given: tuple[str, ...]) -> dict[str, str]:
    """``--input-layout x=NHWC``. Raises UsageError."""
    return pairs("--input-layout", given, "NAME=LAYOUT, such as x=NHWC")

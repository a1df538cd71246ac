"""The click application: finds the sub-command and imports only its module."""

from __future__ import annotations

import difflib
import importlib

import click

from flaot.errors import UsageError, printable
from flaot.version import VERSION

COMMANDS = {
    "compile": "Compile an ONNX model into a plan for a chip.",
    "run": "Run a plan on inputs and show or save its outputs.",
    "verify": "Compare a plan with onnxruntime on the same inputs.",
    "query": "Say what a chip can run of an operator or a model, and why not.",
    "ops": "Show how chips run every operator.",
    "inspect": "Show what a plan holds, without its model.",
    "optest": "Measure the operators a chip claims, and probe for a descriptor that lies.",
    "explain": "Tell which rules fired on a model, which nearly did, and why not.",
    "hcd": "List, show, validate and measure hardware descriptors.",
    "new": "Make the files that a new op, chip or adapter starts from.",
    "devices": "List what plans can run on here, with adapters.",
    "doctor": "Show the versions of everything, and what is supported.",
    "completion": "Say how to switch on tab completion.",
    "version": "Print the version.",
}
"""Every sub-command with its line in ``flaot --help``: listing them imports none of them."""

EPILOG = """\b
Examples:
  flaot compile model.onnx -o model.flp
  flaot run model.flp --inputs feeds.npz
  flaot verify model.flp model.onnx --layers

\b
Exit codes: 0 ok, 1 check failed, 2 usage, 3 bad model, 4 bad hardware descriptor, 5 not supported on this chip,
6 bad or incompatible plan, 7 bad run input, 8 file or dependency, 9 limit exceeded, 70 bug in flaot, 130 interrupted."""


class Lazy(click.Group):
    """A group whose commands live in ``flaot.cli.<name>`` as ``command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"flaot.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest command when there is none of that name."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            hint = f"did you mean '{near[0]}'?" if near else "see 'flaot --help'"
            raise UsageError(f"there is no command '{printable(args[0])}'", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, "--version", message="%(prog)s %(version)s")
def cli() -> None:
    """Ahead-of-time converter from ONNX models to execution plans, with a C99 runtime that replays them."""


def call(arguments: list[str]) -> int:
    """Runs one command line; the exit code. Raises FlaotError; UsageError for what click refuses."""
    try:
        outcome = cli.main(arguments, prog_name="flaot", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.format_message(), err=True)
        return 2
    except click.ClickException as e:
        context = getattr(e, "ctx", None)
        hint = f"see '{context.command_path} --help'" if context is not None else ""
        raise UsageError(e.format_message().rstrip("."), hint=hint) from None

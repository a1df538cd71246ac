"""``flaot``: finds the sub-command, imports only its module, and turns every outcome into an exit code and one line."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from types import FrameType
from typing import Any

import click

from flaot.cli import console
from flaot.errors import FlaotError, LimitError, ProblemList, printable
from flaot.version import VERSION

COMMANDS = {
    "compile": "Compile an ONNX model into a plan for a chip.",
    "run": "Run a plan on inputs and show or save its outputs.",
    "verify": "Compare a plan with onnxruntime on the same inputs.",
    "inspect": "Show what a plan holds, without its model.",
    "hcd": "List, show and validate hardware descriptors.",
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, "--version", message="%(prog)s %(version)s")
def cli() -> None:
    """Ahead-of-time converter from ONNX models to execution plans, with a C99 runtime that replays them."""


class Terminated(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived; unwinds like KeyboardInterrupt (on which click prints) so that temporary files are removed."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated(number)


def main(argv: list[str] | None = None) -> None:
    """Entry point of the console script; always ends in SystemExit."""
    arguments = sys.argv[1:] if argv is None else argv
    console.prepare()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    code = _run(arguments)
    try:
        console.flush()
    except BrokenPipeError:
        code = code or console.abandon()
    except FlaotError as e:
        code = code or _report(e, False)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """The exit code of one command line; every failure has been reported when it returns."""
    as_json = "--json" in arguments
    try:
        outcome = cli.main(arguments, prog_name="flaot", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except FlaotError as e:
        return _report(e, as_json)
    except click.exceptions.NoArgsIsHelpError as e:
        console.err(e.format_message())
        return 2
    except click.ClickException as e:
        return _fail(f"{_one_line(e.format_message())}{_help_hint(e)}", 2)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", 130)
    except Terminated as e:
        sentence = "interrupted" if e.number == signal.SIGINT else f"ended by {signal.Signals(e.number).name}"
        return _fail(sentence, 128 + e.number)
    except BrokenPipeError:
        return console.abandon()
    except MemoryError:
        return _report(LimitError("out of memory"), as_json)
    except Exception as e:
        return _bug(e, as_json)


def _report(e: FlaotError, as_json: bool) -> int:
    problems = e.problems if isinstance(e, ProblemList) else [e]
    for p in problems:
        console.err(f"flaot: error: {_one_line(str(p))}")
    if as_json:
        console.document(e.to_json())
    return e.exit_code


def _fail(sentence: str, code: int) -> int:
    console.err(f"flaot: error: {sentence}")
    return code


def _help_hint(e: click.ClickException) -> str:
    context = getattr(e, "ctx", None)
    return f" (see '{context.command_path} --help')" if context is not None else ""


def _bug(e: Exception, as_json: bool) -> int:
    """One line naming the innermost place in flaot; FLAOT_DEBUG=1 shows the traceback as well."""
    if os.environ.get("FLAOT_DEBUG"):
        import traceback

        traceback.print_exception(e)
    sentence = f"bug in flaot: {type(e).__name__}: {printable(_one_line(str(e)), 300)} ({_innermost(e)})"
    hint = "please report it; FLAOT_DEBUG=1 shows the traceback"
    console.err(f"flaot: error: {sentence}; {hint}")
    if as_json:
        console.document({"error": "InternalError", "message": sentence, "where": _innermost(e), "hint": hint, "exit_code": 70})
    return 70


def _innermost(e: BaseException) -> str:
    """``flaot/rules/x.py:41 in rewrite``: the deepest frame inside the package."""
    found, frame = "flaot", e.__traceback__
    while frame is not None:
        code: Any = frame.tb_frame.f_code
        if "flaot" in frame.tb_frame.f_globals.get("__name__", ""):
            found = f"{frame.tb_frame.f_globals['__name__']}:{frame.tb_lineno} in {code.co_name}"
        frame = frame.tb_next
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main()

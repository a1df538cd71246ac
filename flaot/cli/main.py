"""``flaot``: turns every outcome into an exit code and one line.

A well-formed ``flaot run`` is started without click, whose import alone takes longer than a small plan; see :mod:`flaot.cli.quick`.
"""

from __future__ import annotations

import os
import signal
import sys

from flaot.cli import console
from flaot.errors import DependencyError, FlaotError, LimitError, ProblemList, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


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
        return _dispatch(arguments)
    except FlaotError as e:
        return _report(e, as_json)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except Terminated as e:
        sentence = "interrupted" if e.number == signal.SIGINT else f"ended by {signal.Signals(e.number).name}"
        return _fail(sentence, 128 + e.number)
    except BrokenPipeError:
        return console.abandon()
    except MemoryError:
        return _report(LimitError("out of memory"), as_json)
    except Exception as e:
        missing = _missing_package(e)
        return _bug(e, as_json) if missing is None else _report(missing, as_json)


def _dispatch(arguments: list[str]) -> int:
    from flaot.cli import quick

    options = quick.parse(arguments) if "_FLAOT_COMPLETE" not in os.environ else None
    if options is not None:
        from flaot.cli.running import run_plan

        run_plan(**options)
        return 0
    from flaot.cli import app

    return app.call(arguments)


def _missing_package(e: Exception) -> FlaotError | None:
    """What to say where a package that the command needs is not installed; None for every other exception."""
    package = (e.name or "").partition(".")[0] if isinstance(e, ModuleNotFoundError) else ""
    if package in ("", "flaot", *sys.stdlib_module_names):
        return None
    return DependencyError(f"the Python package '{printable(package)}' is not installed", hint="'flaot doctor' shows what flaot needs")


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

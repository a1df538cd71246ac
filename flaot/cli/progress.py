"""Signs of life for long work: on a terminal only, on standard error, gone when the work is done."""

from __future__ import annotations

import contextlib
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def on_terminal() -> bool:
    """Whether somebody watches standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def bar(total: int, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A bar of ``total`` parts; the function it yields names the part that begins."""
    if quiet or not on_terminal():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        begun = False

        def begin(text: str) -> None:
            nonlocal begun
            shown.update(task, description=text, advance=int(begun))
            begun = True

        yield begin


@contextlib.contextmanager
def spinner(text: str, quiet: bool) -> Iterator[None]:
    """A spinner beside a sentence, for work whose parts are not known."""
    if quiet or not on_terminal():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def counter(what: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A line that counts, once the work has lasted a second. Without rich, whose import takes longer than most runs."""
    shown = time.monotonic() + 0.8
    wrote = False

    def done(count: int) -> None:
        nonlocal shown, wrote
        if time.monotonic() - shown > 0.2:
            sys.stderr.write(f"\r{what} {count} of {total}")
            sys.stderr.flush()
            shown, wrote = time.monotonic(), True

    yield done if not quiet and on_terminal() else lambda count: None
    if wrote:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

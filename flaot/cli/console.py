"""Standard output and error: text for people, one JSON document with ``--json``, and closed or full outputs survived."""

from __future__ import annotations

import contextlib
import os
import sys

from flaot.errors import FileSystemError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO


def prepare() -> None:
    """Names from models never fail to print, whatever the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def out(text: str = "") -> None:
    """A line for the user. Raises FileSystemError when standard output takes no more."""
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        raise
    except OSError as e:
        raise _full(e) from None


def _full(e: OSError) -> FileSystemError:
    abandon()
    return FileSystemError((e.strerror or str(e)).lower(), where="standard output")


def err(text: str) -> None:
    """A line of log or error; a closed standard error is nobody's failure."""
    with contextlib.suppress(OSError, ValueError):
        _write(sys.stderr, text)


def warn(sentences: Sequence[str]) -> None:
    """One line of warning each."""
    for sentence in sentences:
        err(f"flaot: warning: {sentence}")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text + "\n")


def document(value: dict[str, Any]) -> None:
    """The one JSON document of ``--json``; numbers that JSON lacks (inf, nan) become null."""
    import json
    import re

    text = json.dumps(_finite(value), indent=2, ensure_ascii=False)
    # Lists of scalars on one line. Strings hold no raw line ends, so only structure matches.
    flat = re.compile(r"\[\n\s*([^\[\]{}]*?)\n\s*\]")
    out(flat.sub(lambda m: "[" + re.sub(r"\s*\n\s*", " ", m[1]) + "]", text))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and value - value != 0 else value


def flush() -> None:
    """Raises FileSystemError like :func:`out`."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as e:
        raise _full(e) from None


def abandon() -> int:
    """Standard output is gone: say nothing more on it. Returns the exit code of a process ended by SIGPIPE."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def table(rows: Sequence[Sequence[object]], header: Sequence[str] = (), indent: int = 2) -> None:
    """Columns aligned by spaces: numbers to the right, text to the left; nothing is cut."""
    text = [[str(c) for c in row] for row in rows]
    lines = ([list(header)] if header else []) + text
    if not lines:
        return
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    right = [bool(rows) and all(isinstance(r[i], int | float) or _numeric(str(r[i])) for r in rows) for i in range(len(widths))]
    for line in lines:
        cells = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)]
        out((" " * indent + "  ".join(cells)).rstrip())


def _numeric(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "-+." and text[1:2].isdigit() or text in ("nan", "inf", "-inf", "-", "")


def size(count: int) -> str:
    """Bytes for people: ``900 B``, ``23.4 kB``, ``1.3 MB`` (powers of 1000)."""
    if count < 1000:
        return f"{count} B"
    power = next((p for p in (1, 2, 3) if count < 999.5 * 1000**p), 4)
    scaled = count / 1000**power
    return f"{scaled:.3g} {'_kMGT'[power]}B" if scaled < 100 else f"{scaled:.0f} {'_kMGT'[power]}B"

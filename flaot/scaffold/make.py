"""Templates -> files. A template is plain text in which ``@Name@`` and ``@name@`` stand for the name, ``@type@`` for the device type."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flaot.errors import FileSystemError, UsageError, printable
from flaot.files import check_output, write_file

TEMPLATES = Path(__file__).parent


@dataclass(frozen=True)
class Made:
    """Files that were written, relative to ``folder``, and the sentences saying what to do next."""

    folder: Path
    files: tuple[str, ...]
    next: tuple[str, ...]


def template_text(template: str) -> str:
    """A template file, such as ``op/ir.py.in``."""
    return (TEMPLATES / template).read_text()


def filled(template: str, names: Mapping[str, str]) -> str:
    """The text of a template file with the names put in."""
    text = template_text(template)
    for placeholder, name in names.items():
        text = text.replace(f"@{placeholder}@", name)
    return text


def make(folder: Path, texts: Mapping[str, str], next: Sequence[str]) -> Made:
    """Writes ``texts`` by their path below ``folder``. Raises UsageError when one of them is there, FileSystemError when one cannot be
    written; in both cases before anything is written, as far as that can be known."""
    taken = [path for path in texts if os.path.lexists(folder / path)]
    if taken:
        raise UsageError(f"'{printable(folder / taken[0], 200)}' exists already; nothing was written", hint="choose another name")
    for path in texts:
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise FileSystemError((e.strerror or str(e)).lower(), where=printable(target.parent, 200)) from None
        check_output(str(target))
    for path, text in texts.items():
        write_file(str(folder / path), text.encode())
    return Made(folder, tuple(texts), tuple(next))

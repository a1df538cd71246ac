"""Shared libraries by their paths, and why one does not load."""

from __future__ import annotations

import ctypes
import os

from flaot.errors import DependencyError, UsageError, printable

SIMULATOR = "simulator"
"""What ``--adapter`` takes in place of a library to have every chip simulated."""

NAMES = "give the path of a library such as ./libmy_adapter.so, or 'simulator'"


def located(path: str) -> str:
    """The path as the system's loader takes it: names without a folder, which it looks up in places of its own, are first those of files
    here."""
    return os.path.abspath(path) if os.path.exists(path) else path


def load_adapter(path: str) -> ctypes.CDLL:
    """The library at ``path``, or of that name where the system's loader looks.

    Raises UsageError for an empty path, DependencyError for what does not load.
    """
    if not path:
        raise UsageError("an empty name where an adapter's library is expected", hint=NAMES)
    where = printable(path, 200)
    if os.path.isdir(path):
        raise DependencyError("is a directory, no library of an adapter", where=where, hint=NAMES)
    try:
        return ctypes.CDLL(located(path))
    except (OSError, ValueError) as e:
        reason, hint = _explained(path, str(e))
        raise DependencyError(f"the adapter does not load: {printable(reason, 300)}", where=where, hint=hint) from None


def _explained(path: str, said: str) -> tuple[str, str]:
    """What the loader says without the path, and the way out."""
    for shown in (located(path), path):
        said = said.removeprefix(f"{shown}: ")
    if not os.path.lexists(path):
        return "no such file" if "cannot open" in said else said, _meant(path) or NAMES
    if "undefined symbol" in said:
        return said, "link the adapter with what defines it"
    if "cannot open" in said:
        return said, "have LD_LIBRARY_PATH or the adapter's rpath name the folder of what it needs; 'ldd' lists that"
    return said, "a shared library (.so) for this machine is expected"


def _meant(path: str) -> str:
    """The device type, library or word that was probably meant, in words, or ""."""
    import difflib

    from flaot.runtime.installed import installed

    serving = next((i for i in installed() if i.device_type == path), None)
    if serving is not None:
        return f"{serving.source} serves device type '{printable(path)}' where --adapter is left out"
    folder, name = os.path.split(path)
    try:
        beside = [n for n in os.listdir(folder or ".") if n.endswith(".so")]
    except (OSError, ValueError):
        beside = []
    known = [*([] if folder else [SIMULATOR]), *beside]
    close = difflib.get_close_matches(name[:200].lower(), known, 1, 0.7)
    return f"did you mean '{printable(os.path.join(folder, close[0]), 200)}'?" if close else ""

"""Finding a descriptor: bundled by name, any file by path, or the one that fits this machine."""

from __future__ import annotations

from pathlib import Path

from flaot.errors import HcdError, printable
from flaot.hcd.bundle import bundled, folder
from flaot.hcd.host import best_for_host
from flaot.hcd.loader import Hcd, load, load_file
from flaot.hcd.text import nearest


def load_hcd(name_or_path: str | Path) -> Hcd:
    """The descriptor ``host``, a bundled name such as ``x86_64_avx2``, or a file.

    Raises HcdError (unknown name, bad content), FileSystemError (unreadable file) or ProblemList.
    """
    name = str(name_or_path)
    known = bundled()
    if name == "host":
        name = best_for_host()
    if name in known:
        return load(known[name].read_bytes(), known[name].name, known[name])
    if isinstance(name_or_path, Path) or "/" in name or name.endswith(".hcd") or Path(name).exists():
        return load_file(Path(name))
    raise HcdError(f"no bundled descriptor and no file named '{printable(name)}'", hint=nearest(name, ["host", *known]))


__all__ = ["bundled", "folder", "load_hcd"]

"""External tensor data: which files may be read, and reading just the bytes a tensor needs.

A location is a plain relative path below the model's folder. Every component is opened relative to the one before without following
symbolic links, and only a regular file with a single name is opened, so nothing outside the folder is reached and nothing blocks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import numpy as np

from flaot.errors import ModelError, printable

_KEYS = {"location", "offset", "length", "checksum"}


class ExternalData:
    """The external files of one model; a context manager that closes them."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._open: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> ExternalData:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for fd, _ in self._open.values():
            os.close(fd)
        self._open.clear()

    def read(self, entries: Iterable[tuple[str, str]], nbytes: int) -> np.ndarray:
        """The ``nbytes`` bytes (uint8) that ``key, value`` entries of a tensor point to. Raises ModelError."""
        location, offset, fd = self.find(entries, nbytes)
        out = np.empty(nbytes, np.uint8)
        view, done = memoryview(out.data), 0
        while done < nbytes:
            got = os.preadv(fd, [view[done : done + 2**30]], offset + done)
            if got == 0:
                raise ModelError(f"external data file '{printable(location)}' became shorter while it was read")
            done += got
        return out

    def find(self, entries: Iterable[tuple[str, str]], nbytes: int) -> tuple[str, int, int]:
        """Checks the entries; returns location, offset and open file."""
        fields: dict[str, str] = {}
        for key, value in entries:
            if key not in _KEYS or key in fields:
                raise ModelError(f"external data has the {'repeated' if key in fields else 'unknown'} key '{printable(key)}'")
            fields[key] = value
        location = fields.get("location", "")
        offset = _number(fields.get("offset", "0"), "offset")
        length = _number(fields["length"], "length") if "length" in fields else nbytes
        if length != nbytes:
            raise ModelError(f"external data of {length} bytes, {nbytes} needed")
        fd, size = self._file(location)
        if offset + nbytes > size:
            raise ModelError(
                f"external data ends at byte {offset + nbytes}, but '{printable(location)}' has {size} bytes"
            )
        return location, offset, fd

    def _file(self, location: str) -> tuple[int, int]:
        if location not in self._open:
            if self._folder is None:
                raise ModelError("external data in a model that was not read from a file", hint="pass the model's path")
            self._open[location] = _open_below(self._folder, location)
        return self._open[location]


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) >= 2**63:
        raise ModelError(f"external data {what} '{printable(text)}' is not a count of bytes")
    return int(text)


def _components(location: str) -> list[str]:
    parts = location.split("/")
    plain = location and "\0" not in location and "\\" not in location and ":" not in location
    if not plain or any(p in ("", "..", "_ORT_MEM_ADDR_", "*") for p in parts):
        raise ModelError(
            f"external data location '{printable(location)}' is refused; allowed are relative paths below the model's folder"
        )
    return [p for p in parts if p != "."] or [""]


def _open_below(folder: Path, location: str) -> tuple[int, int]:
    *folders, last = _components(location)
    shown = printable(location)
    opened: list[int] = []
    try:
        opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
        for name in folders:
            opened.append(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        before = os.stat(last, dir_fd=opened[-1], follow_symlinks=False)
        if not stat.S_ISREG(before.st_mode):
            raise ModelError(f"external data '{shown}' is refused: not a regular file (links are not followed)")
        if before.st_nlink != 1:
            raise ModelError(f"external data '{shown}' is refused: it is a hard link", hint="make a copy of it")
        fd = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened[-1])
        after = os.fstat(fd)
        if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino):
            os.close(fd)
            raise ModelError(f"external data '{shown}' was exchanged while it was opened")
        return fd, after.st_size
    except (OSError, ValueError) as e:
        raise ModelError(f"external data '{shown}' cannot be read: {getattr(e, 'strerror', None) or e}") from None
    finally:
        for fd in opened:
            os.close(fd)

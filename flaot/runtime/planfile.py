"""Plan files into memory: whole, aligned for use in place, and judged by their first bytes before anything large is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from flaot.errors import FileSystemError
from flaot.plan.fields import HEADER, MAX_ALIGNMENT
from flaot.plan.read import check_size, read_header
from flaot.runtime.capi import aligned


def load(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> tuple[np.ndarray, str]:
    """The plan's bytes, aligned to ``MAX_ALIGNMENT``, and how messages name it.

    The bytes are a private copy: a file that changes or shrinks later does no harm. Raises PlanError, FileSystemError, LimitError.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data = aligned(len(source), MAX_ALIGNMENT)[: len(source)]
        data[:] = np.frombuffer(source, np.uint8)
        return data, "plan"
    path = Path(source)
    try:
        return _read(path), str(path)
    except OSError as e:
        raise FileSystemError(f"cannot be read: {e.strerror or e}", where=str(path)) from e


def _read(path: Path) -> np.ndarray:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileSystemError("not a regular file", where=str(path))
    with path.open("rb", buffering=0) as file:
        head = np.frombuffer(file.read(HEADER.size), np.uint8)
        check_size(read_header(head, str(path)), status.st_size, str(path))
        data = aligned(status.st_size, MAX_ALIGNMENT)[: status.st_size]
        data[: len(head)] = head
        done = len(head)
        while done < len(data) and (got := file.readinto(data[done:].data)):
            done += got
    return data[:done]

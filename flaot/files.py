"""Output files appear whole or not at all: written without a name (or beside the target), synced, then renamed over it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence

from flaot.errors import FileSystemError, UsageError, printable

_MARK = ".flaot-"


def check_output(path: str, inputs: Sequence[str] = ()) -> str:
    """The real path an output will be written to, refused early when it cannot be.

    Raises UsageError for a path that is also an input, FileSystemError for a directory, device, pipe or unusable folder.
    """
    shown = printable(path, 200)
    if not path or path.endswith("/") or "\0" in path:
        raise FileSystemError("is not a file name", where=shown or "output")
    real = os.path.realpath(path)
    for other in inputs:
        with contextlib.suppress(OSError, ValueError):
            if os.path.samefile(real, other):
                raise UsageError(f"output '{shown}' is also an input; choose another name")
    try:
        mode = os.stat(real).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except (OSError, ValueError) as e:
        raise _failure(e, shown) from None
    if stat.S_ISDIR(mode):
        raise FileSystemError("is a directory; expected a file name", where=shown)
    if not stat.S_ISREG(mode):
        raise FileSystemError("is not a regular file; output goes to files only", where=shown)
    folder = os.path.dirname(real)
    if not os.path.isdir(folder):
        raise FileSystemError("its folder does not exist", where=shown)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileSystemError("its folder is not writable", where=shown)
    return real


def make_folder(path: str) -> None:
    """Makes a folder that files are to be written into, where there is none. Raises FileSystemError."""
    shown = printable(path, 200)
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise FileSystemError("is not a folder", where=shown) from None
    except (OSError, ValueError) as e:
        raise _failure(e, shown) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise FileSystemError("the folder is not writable", where=shown)


def write_file(path: str, data: bytes | Sequence[bytes]) -> None:
    """Replaces the file by ``data`` in one step; on any failure or signal the old file stays and nothing else is left.

    Raises FileSystemError.
    """
    real = check_output(path)
    folder, name = os.path.split(real)
    _remove_stale(folder, name)
    temporary = os.path.join(folder, f".{name[:200]}{_MARK}{os.getpid()}")
    try:
        try:
            _write_unnamed(folder, temporary, real, data)
        except OSError as e:
            if e.errno not in _NO_UNNAMED:
                raise
            _write_named(temporary, real, data)
        os.replace(temporary, real)
        _sync_folder(folder)
    except OSError as e:
        raise _failure(e, printable(path, 200)) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


_NO_UNNAMED = (errno.EISDIR, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOENT, errno.EXDEV)
"""What file systems and kernels without O_TMPFILE or /proc answer."""


def _write_unnamed(folder: str, temporary: str, real: str, data: bytes | Sequence[bytes]) -> None:
    """A file that has no name until it is complete: killed at any moment, nothing is left."""
    fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        _fill(fd, real, data)
        # With a directory descriptor os.link calls linkat, which can follow the link in /proc; the descriptor itself is not used.
        os.link(f"/proc/self/fd/{fd}", temporary, src_dir_fd=fd, follow_symlinks=True)
    finally:
        os.close(fd)


def _write_named(temporary: str, real: str, data: bytes | Sequence[bytes]) -> None:
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        _fill(fd, real, data)
    finally:
        os.close(fd)


def _fill(fd: int, real: str, data: bytes | Sequence[bytes]) -> None:
    for chunk in [data] if isinstance(data, bytes) else data:
        rest = memoryview(chunk)
        while len(rest):
            rest = rest[os.write(fd, rest) :]
    with contextlib.suppress(FileNotFoundError):
        os.fchmod(fd, stat.S_IMODE(os.stat(real).st_mode))
    os.fsync(fd)


def _sync_folder(folder: str) -> None:
    """Makes the rename itself durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove_stale(folder: str, name: str) -> None:
    """Leftovers of runs that were killed between giving the file a name and renaming it."""
    prefix = f".{name[:200]}{_MARK}"
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            owner = entry.removeprefix(prefix)
            if entry.startswith(prefix) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
                os.unlink(os.path.join(folder, entry))


def read_file(path: str, what: str, limit: int = 2**40) -> bytes:
    """The content of a regular file. Raises FileSystemError; never waits on a pipe or reads a device."""
    shown = printable(path, 200)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        raise _failure(e, shown) from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise FileSystemError(f"is not a regular file; expected {what}", where=shown)
        if info.st_size > limit:
            raise FileSystemError(f"{info.st_size} bytes; {what} has at most {limit}", where=shown)
        parts = []
        while chunk := os.read(fd, 1 << 26):
            parts.append(chunk)
        return b"".join(parts)
    except OSError as e:
        raise _failure(e, shown) from None
    finally:
        os.close(fd)


def _failure(e: OSError | ValueError, shown: str) -> FileSystemError:
    return FileSystemError((getattr(e, "strerror", None) or str(e)).lower(), where=shown)

"""The versions of everything flaot runs with, each with a verdict: what ``flaot doctor`` says."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

from flaot.about.devices import installed_devices
from flaot.about.table import BAD, MISSING, OK, OUTSIDE, Component, table
from flaot.errors import DependencyError
from flaot.plan import fields
from flaot.runtime.adapter import ABI
from flaot.runtime.library import functions, library, library_path
from flaot.version import VERSION


@dataclass(frozen=True)
class Found:
    """One component; ``found`` is "" where there is none."""

    name: str
    found: str
    supported: str
    verdict: str

    @property
    def good(self) -> bool:
        return self.verdict not in BAD

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def versions() -> list[Found]:
    """flaot and its native library, then the table's components, then installed adapters."""
    native, compiler = _native()
    rows = [Found("flaot", VERSION, VERSION, OK), *native, *(_component(c, compiler) for c in table())]
    return [*rows, *_adapters()]


def _native() -> tuple[list[Found], str | None]:
    """The library's numbers beside those of the Python part, and the compiler that built it."""
    wanted = {"plan format": fields.FORMAT, "kernel ABI": fields.ABI, "adapter ABI": ABI}
    try:
        library()
    except DependencyError:
        rows = [Found(name, "", str(want), MISSING) for name, want in wanted.items()]
        return [Found("native library", "", "as built with this flaot", MISSING), *rows], None
    try:
        lib, numbers = functions(), (ctypes.c_uint32 * 3)()
        lib.fl_host_numbers(numbers)
        lib.fl_host_compiler.restype = ctypes.c_char_p
        compiler: bytes = lib.fl_host_compiler()
    except DependencyError:
        return [Found("native library", "older than this flaot", "as built with this flaot", OUTSIDE)], None
    held = zip(wanted.items(), (int(n) for n in numbers), strict=True)
    rows = [Found(name, str(found), str(want), OK if found == want else OUTSIDE) for (name, want), found in held]
    return [Found("native library", library_path(), "as built with this flaot", OK), *rows], compiler.decode(errors="replace")


def _component(c: Component, compiler: str | None) -> Found:
    found = _version(c.name, compiler)
    return Found(c.name, found or "", c.supported, c.verdict(found))


def _version(name: str, compiler: str | None) -> str | None:
    match name:
        case "Python":
            return platform.python_version()
        case "compiler":
            return compiler
        case "operating system":
            return f"{platform.system()} {platform.release()}"
        case "machine":
            return platform.machine().lower().replace("amd64", "x86_64")
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _adapters() -> Iterator[Found]:
    for d in installed_devices():
        said = d.problem or f"{d.adapter} {d.version}, ABI {d.abi}"
        yield Found(f"adapter of {d.name}", said, f"ABI {ABI}", OUTSIDE if d.problem else OK)

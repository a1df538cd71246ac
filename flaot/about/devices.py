"""The devices plans can run on here: the host's CPU, the simulator, installed adapters, and those a caller names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from flaot.errors import DependencyError, printable
from flaot.hcd.host import best_for_host
from flaot.measure.host import cpu_name
from flaot.runtime.adapter import ABI, REBUILD, Adapter, Simulator, of_package, other_abi
from flaot.runtime.installed import installed
from flaot.runtime.library import functions
from flaot.runtime.loading import SIMULATOR
from flaot.version import VERSION

ISA = {1: "avx2", 2: "avx512"}
"""Bits of ``fl_host_isa``."""


@dataclass(frozen=True)
class Device:
    """``device_types`` empty: whatever has no adapter of its own. ``abi`` 0: none is spoken. ``problem`` says why it cannot be used."""

    name: str
    device_types: tuple[str, ...]
    adapter: str
    version: str
    abi: int
    source: str
    detail: str = ""
    problem: str = ""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def devices(files: Sequence[str] = ()) -> list[Device]:
    """All of them. Installed adapters that do not work have a ``problem``; raises DependencyError for such a one among ``files``."""
    return [_host(), _simulator(), *installed_devices(), *(_of(Adapter(path)) for path in files if path != SIMULATOR)]


def _host() -> Device:
    bits = int(functions().fl_host_isa())
    runs = ", ".join(["generic", *(name for bit, name in ISA.items() if bits & bit)])
    return Device("host", ("cpu",), "native library", VERSION, 0, "flaot", f"{cpu_name()}; kernels {runs}; descriptor {best_for_host()}")


def _simulator() -> Device:
    found = Simulator()
    detail = "any device type without an adapter"
    return Device("simulator", (), found.name, found.version, found.abi, "flaot", detail)


def installed_devices() -> Iterator[Device]:
    """The devices of installed packages."""
    for offered in installed():
        source = offered.source
        try:
            yield _of(of_package(offered), offered.device_type)
        except DependencyError as e:
            yield Device(offered.device_type, (offered.device_type,), "", "", 0, source, problem=str(e))


def _of(found: Adapter, wanted: str = "") -> Device:
    """``wanted`` is the device type a package promises."""
    problem = ""
    if found.abi != ABI:
        problem = f"{other_abi(found.abi)}; {REBUILD}"
    elif wanted and not found.serves(wanted):
        served = printable(found.device_type)
        problem = f"it serves device type '{served}', its package says '{printable(wanted)}'; the entry point's name has to be '{served}'"
    types = (found.device_type,) if found.device_type else (wanted,) if wanted else ()
    name = wanted or found.device_type or found.name or "unknown"
    return Device(name, types, found.name, found.version, found.abi, found.source, problem=problem)

"""Adapters: the code that makes a chip run plans, in the native library (the simulator) or in a shared library of a vendor.

A vendor's library has a function ``const fl_adapter *flaot_adapter(void)``; ``include/flaot/adapter.h`` is the contract. A chip of a
plan is run by the first of these that serves its device type: the library the caller names, one that an installed package offers
(:mod:`flaot.runtime.installed`), the simulator.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from flaot.errors import DependencyError, DeviceError, FlaotError, PlanError, printable
from flaot.runtime.installed import REINSTALL, Installed, installed_for
from flaot.runtime.library import CALL_STATUS, CHIP_STATUS, OK, functions, run_error, status_text
from flaot.runtime.loading import SIMULATOR, load_adapter

ABI = 2
"""FL_ADAPTER_ABI of adapter.h."""

DEVICE_TYPE, DEVICE_ABI = 0x201, 0x203
REBUILD = "build it again with this flaot's adapter.h, or use --adapter simulator"
STATED = "state what the chip has in its descriptor, which 'flaot optest' measures, and compile again"
NO_CHIP = "leave --adapter out, or compile for the adapter's chip"
ANOTHER_DEVICE = "use the adapter of that chip, or --adapter simulator"


class CAdapter(ctypes.Structure):
    """The fields of ``fl_adapter`` that say what it is; its functions follow."""

    _fields_ = [("abi", ctypes.c_uint32), ("device_type", ctypes.c_char_p), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p)]


class Adapter:
    """A vendor's adapter; ``device_type`` None serves every chip, ``source`` tells where it comes from.

    Raises DependencyError when the library is missing, does not load or has no ``flaot_adapter``, UsageError when ``path`` is empty.
    """

    def __init__(self, path: str, source: str = "") -> None:
        file = printable(path, 200)
        self.where, self.source = f"{source}: {file}" if source else file, source or file
        self._library = load_adapter(path)
        try:
            get = self._library.flaot_adapter
        except AttributeError:
            hint = "name the adapter's library, not that of its SDK"
            raise DependencyError("the library has no function flaot_adapter; it is no adapter", where=file, hint=hint) from None
        get.restype, get.argtypes = ctypes.POINTER(CAdapter), []
        found = get()
        if not found:
            problem = "its function flaot_adapter returns null"
            raise DependencyError(problem, where=file, hint="it has to return the adapter's table, see docs/adapters.md")
        self.pointer: int = ctypes.cast(found, ctypes.c_void_p).value or 0
        self._take(found.contents)

    def _take(self, found: CAdapter) -> None:
        self.abi = int(found.abi)
        known = self.abi == ABI
        self.device_type = _text(found.device_type) if known else None
        self.name, self.version = (_text(found.name) or "", _text(found.version) or "") if known else ("", "")

    def serves(self, device_type: str) -> bool:
        return self.device_type in (None, device_type)

    def to_json(self) -> dict[str, object]:
        return {"adapter": self.name, "version": self.version, "abi": self.abi, "source": self.source}


class Simulator(Adapter):
    """The adapter inside the native library, which serves every device type."""

    def __init__(self) -> None:
        found = CAdapter.in_dll(functions(), "fl_npu_sim")
        self.where = self.source = SIMULATOR
        self.pointer = 0
        self._take(found)


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")


def adapters_for(device_types: Sequence[str], given: Sequence[str] = ()) -> list[Adapter]:
    """What runs the chips of a plan, in order. ``given`` are paths of libraries, each for the chips of its device type; ``simulator`` among
    them simulates the others whatever packages are installed.

    Raises DependencyError for an adapter that does not load, also an installed one, and for several that serve one device type; PlanError
    for one that is given for a plan without chips.
    """
    named = [Adapter(g) for g in given if g != SIMULATOR]
    useless = next((a for a in named if a.abi != ABI or not any(a.serves(t) for t in device_types)), None)
    if useless is not None and not device_types:
        raise PlanError("the plan runs on the host alone and has no chip for the adapter", where=useless.where, hint=NO_CHIP)
    if useless is not None:
        return [useless for _ in device_types]  # attaching it says why
    return [_named(t, named) or (Simulator() if SIMULATOR in given else _found(t)) for t in device_types]


def _named(device_type: str, named: Sequence[Adapter]) -> Adapter | None:
    found = [a for a in named if a.serves(device_type)]
    if len(found) > 1:
        problem = f"adapters {' and '.join(str(a.where) for a in found)} both serve device type '{printable(device_type)}'"
        raise DependencyError(problem, hint="name one --adapter for each device type")
    return found[0] if found else None


def _found(device_type: str) -> Adapter:
    offered = installed_for(device_type)
    if offered is None:
        return Simulator()
    try:
        return of_package(offered)
    except DependencyError as e:
        raise e.at(offered.source) from None


def of_package(offered: Installed) -> Adapter:
    """Raises DependencyError, which does not name the package."""
    try:
        return Adapter(offered.library(), offered.source)
    except DependencyError as e:
        e.hint = REINSTALL
        raise


def attach(context: int, device: int, chip: str, device_type: str, adapter: Adapter) -> None:
    """Makes ``adapter`` run the steps of a device of the context's plan.

    Raises PlanError when it serves another device type, speaks another ABI or does not fit the plan, LimitError when the chip has not the
    memory, DeviceError when the chip or its SDK fails.
    """
    lib = functions()
    status: int = lib.fl_host_attach(context, device, adapter.pointer or None)
    if status != OK:
        message: bytes = lib.fl_host_message(context)
        raise _refused(status, message.decode(errors="replace"), f"chip {printable(chip)}", device_type, adapter)


def other_abi(abi: int) -> str:
    """What is wrong with an adapter of another ABI."""
    return f"adapter ABI {abi}, this flaot speaks {ABI}"


def mismatch(adapter: Adapter, chip: str, device_type: str) -> PlanError | None:
    """Why an adapter serves no chip of a device type, or None; ``chip`` is its name in words."""
    if adapter.abi != ABI:
        return PlanError(other_abi(adapter.abi), where=adapter.where, hint=REBUILD)
    if not adapter.serves(device_type):
        found = f"the adapter serves device type '{printable(adapter.device_type)}', {chip} of the plan is '{printable(device_type)}'"
        return PlanError(found, where=adapter.where, hint=ANOTHER_DEVICE)
    return None


def _refused(status: int, message: str, chip: str, device_type: str, adapter: Adapter) -> FlaotError:
    other = mismatch(adapter, chip, device_type) if status in (DEVICE_ABI, DEVICE_TYPE) else None
    if other is not None:
        return other
    if not CHIP_STATUS <= status < CALL_STATUS:
        return PlanError(printable(message, 300) or status_text(status), where=chip, hint=ANOTHER_DEVICE)
    error = run_error(status, message, chip)
    error.hint = error.hint if isinstance(error, DeviceError) else STATED
    return error

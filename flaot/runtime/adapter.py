"""Adapters: the code that makes a chip run plans, in the native library (the simulator) or in a shared library of a vendor.

A vendor's library has a function ``const fl_adapter *flaot_adapter(void)``; ``include/flaot/adapter.h`` is the contract.
"""

from __future__ import annotations

import ctypes

from flaot.errors import DependencyError, FlaotError, LimitError, PlanError, printable
from flaot.runtime.library import OK, functions, status_text

ABI = 2
"""FL_ADAPTER_ABI of adapter.h."""

DEVICE_TYPE, DEVICE_ABI, DEVICE_MEMORY = 0x201, 0x203, 0x204


class CAdapter(ctypes.Structure):
    """The fields of ``fl_adapter`` that say what it is; its functions follow."""

    _fields_ = [("abi", ctypes.c_uint32), ("device_type", ctypes.c_char_p), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p)]


class Adapter:
    """A vendor's adapter. Raises DependencyError when the library is missing, does not load or has no ``flaot_adapter``."""

    def __init__(self, path: str) -> None:
        self.where = printable(path, 200)
        try:
            self._library = ctypes.CDLL(path)
            get = self._library.flaot_adapter
        except OSError as e:
            raise DependencyError(f"the adapter does not load: {printable(e, 300)}") from None
        except AttributeError:
            raise DependencyError("the library has no function flaot_adapter; it is no adapter", where=self.where) from None
        get.restype, get.argtypes = ctypes.POINTER(CAdapter), []
        found = get()
        if not found:
            raise DependencyError("the adapter gives no description of itself", where=self.where)
        self.pointer: int = ctypes.cast(found, ctypes.c_void_p).value or 0
        self.abi = int(found.contents.abi)
        self.device_type: str | None = _text(found.contents.device_type)
        self.name, self.version = _text(found.contents.name) or "", _text(found.contents.version) or ""


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")


def attach(context: int, device: int, chip: str, device_type: str, adapter: Adapter | None) -> None:
    """Makes ``adapter`` (None: the simulator) run the steps of a device of the context's plan.

    Raises PlanError when it serves another device type, speaks another ABI or refuses the chip, LimitError without memory.
    """
    lib = functions()
    status: int = lib.fl_host_attach(context, device, adapter.pointer if adapter else None)
    if status != OK:
        message: bytes = lib.fl_host_message(context)
        raise _refused(status, message.decode(errors="replace"), f"chip {printable(chip)}", device_type, adapter)


def _refused(status: int, message: str, chip: str, device_type: str, adapter: Adapter | None) -> FlaotError:
    if adapter is not None and status == DEVICE_ABI:
        return PlanError(f"adapter ABI {adapter.abi}, this flaot speaks {ABI}", where=adapter.where, hint="use an adapter built for it")
    if adapter is not None and status == DEVICE_TYPE:
        found = f"the adapter serves device type '{printable(adapter.device_type)}', {chip} of the plan is '{printable(device_type)}'"
        return PlanError(found, where=adapter.where, hint="use the adapter of that chip, or none for the simulator")
    text = message or status_text(status)
    return (LimitError if status == DEVICE_MEMORY else PlanError)(text, where=chip)

"""Which names can be: said in full when one cannot, before anything is written."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

from flaot.errors import UsageError, printable
from flaot.files import read_file
from flaot.hcd import Hcd, bundled, load_hcd

OP_NAME, CHIP_NAME = r"[A-Z][A-Za-z0-9]{1,39}", r"[A-Za-z][A-Za-z0-9_-]{1,39}"
OP_RULE = "expected 2 to 40 of A-Z, a-z and 0-9, a capital first, such as HardSwish"
CHIP_RULE = "expected 2 to 40 of A-Z, a-z, 0-9, - and _, a letter first, such as My-NPU"
RESERVED = {
    "cpu": "it is the device type of CPUs, which run plans themselves",
    "host": "it means the CPU that runs the plan",
    "simulator": "--adapter simulator means the one that comes with flaot",
}
YAML_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
OTHER = "choose another name"


def op_name(name: str, checkout: Path, used: frozenset[str]) -> str:
    """The op's name as modules have it, ``hard_swish`` for ``HardSwish``. ``used`` are names that its files need for something else.

    Raises UsageError when it is no name of an op, is taken in the checkout, or that is no checkout, FileSystemError when it cannot be read.
    """
    if not re.fullmatch(OP_NAME, name):
        raise UsageError(f"'{printable(name)}' is no name of an op; {OP_RULE}")
    low = snake(name)
    for word in (name, low):
        if keyword.iskeyword(word):
            raise UsageError(f"'{name}' cannot be an op, as Python has the word '{word}'", hint=OTHER)
    if name in used:
        raise UsageError(f"'{name}' cannot be an op, as the files of an op need the name for something else", hint=OTHER)
    if not all(os.path.isdir(checkout / inside) for inside in ("flaot/ir/ops", "flaot/kernels", "tests/kernels")):
        raise UsageError(f"'{printable(checkout, 200)}' is no checkout of flaot; an op is part of flaot", hint="say where it is by --into")
    if _mentions(checkout / "flaot" / "ir" / "ops", rf'^class {name}\b|"{name}"'):
        raise UsageError(f"there is an op '{name}' already", hint=OTHER)
    if _mentions(checkout / "flaot" / "kernels", rf'Kernel\(\s*"{low}_f32"'):
        raise UsageError(f"there is a kernel '{low}_f32' already", hint=OTHER)
    for path in (f"flaot/kernels/{low}", f"flaot/kernels/{low}.py"):
        if os.path.lexists(checkout / path):
            raise UsageError(f"'{path}' exists already; nothing was written", hint=OTHER)
    return low


def new_chip(name: str) -> str:
    """The chip's name as files and device types have it, ``my_npu`` for ``My-NPU``. Raises UsageError for what is no name, or means another
    chip or device already."""
    low, known = _stem(name), _known()
    shipped = known.get(low) or next((h for h in known.values() if h.full.chip.device_type == low), None)
    if shipped is not None:
        raise UsageError(
            f"'{name}' cannot be a new chip, as {shipped.name} comes with flaot; its device type is '{shipped.full.chip.device_type}'",
            hint="choose another name, or state 'extends: " + shipped.source.removesuffix(".hcd") + "' in a descriptor of your own",
        )
    return low


def new_adapter(name: str) -> tuple[str, str]:
    """The same for the chip of an adapter, and the device type to serve: that of the chip of this name that comes with flaot, or a new one.

    Raises UsageError for what is no name, and for CPUs.
    """
    low = _stem(name)
    shipped = _known().get(low)
    if shipped is None:
        return low, low
    kind = shipped.full.chip.device_type
    if kind == "cpu":
        raise UsageError(f"'{name}' is a CPU that comes with flaot; CPUs need no adapter", hint=OTHER)
    return low, kind


def snake(name: str) -> str:
    """``HardSwish`` as ``hard_swish``, ``RMSNorm`` as ``rms_norm``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _stem(name: str) -> str:
    if not re.fullmatch(CHIP_NAME, name):
        raise UsageError(f"'{printable(name)}' is no name of a chip; {CHIP_RULE}")
    low = name.lower().replace("-", "_")
    if low in RESERVED:
        raise UsageError(f"'{name}' cannot be a chip: {RESERVED[low]}", hint=OTHER)
    if low in YAML_WORDS:
        raise UsageError(f"'{name}' cannot be a chip: it is no text in YAML, which descriptors are written in", hint=OTHER)
    return low


def _known() -> dict[str, Hcd]:
    """The descriptors that come with flaot, by the names of their files."""
    return {stem: load_hcd(stem) for stem in bundled()}


def _mentions(folder: Path, pattern: str) -> bool:
    """Whether a Python file in the folder or below says this."""
    said = re.compile(pattern, re.MULTILINE)
    return any(said.search(read_file(str(path), "a Python file").decode(errors="replace")) for path in folder.rglob("*.py"))

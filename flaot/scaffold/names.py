"""What there is to start: which names are allowed, which files are made, what comes next."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from flaot.errors import UsageError, printable
from flaot.hcd.template import TEMPLATE
from flaot.scaffold.make import Made, filled, make

OP_NAME, CHIP_NAME = r"[A-Z][A-Za-z0-9]{1,59}", r"[A-Za-z][A-Za-z0-9_-]{1,59}"


def op(name: str, into: Path) -> Made:
    """An op with its reader, kernel and test, in the checkout ``into``. Raises UsageError for a bad or taken name and another folder."""
    if not re.fullmatch(OP_NAME, name):
        raise UsageError(f"'{printable(name)}' is no name of an op; expected letters and digits such as HardSwish")
    if not (into / "flaot" / "ir" / "ops").is_dir() or not (into / "tests" / "kernels").is_dir():
        raise UsageError(f"'{printable(into, 200)}' is no checkout of flaot; an op is part of flaot", hint="say where it is by --into")
    low = snake(name)
    if keyword.iskeyword(low) or _has_op(into, name):
        raise UsageError(f"there is an op '{name}' already, or Python has the word '{low}'", hint="choose another name")
    names, kernel = {"Name": name, "name": low, "NAME": low.upper()}, f"flaot/kernels/{low}"
    files = {f"flaot/ir/ops/{low}.py": "op/ir.py.in", f"{kernel}/__init__.py": "op/kernel.py.in", f"{kernel}/generic.c": "op/generic.c.in"}
    files[f"tests/kernels/test_{low}.py"] = "op/test.py.in"
    if (into / kernel).exists():
        raise UsageError(f"'{kernel}' exists already; nothing was written", hint="choose another name")
    return make(into, {path: filled(template, names) for path, template in files.items()}, (
        "make generate native                      # the tables that C and Python share, and the library",
        f"python -m pytest tests/kernels/test_{low}.py",
        f"then put in place of y = x / (1 + alpha |x|) what {name} is: attributes, infer and cost in flaot/ir/ops/{low}.py,",
        f"{kernel}/generic.c, and the reference in the test; an operator of ONNX has no domain: @reads(\"{name}\")",
        "docs/kernels.md: the contract of a kernel, vector variants; make lint before committing",
    ))  # fmt: skip


def chip(name: str, into: Path) -> Made:
    """A descriptor and its test. Raises UsageError for a bad or taken name."""
    low = _stem(name)
    padded = f"device_type: {low}".ljust(len("device_type: npu") + 21)
    hcd = TEMPLATE.replace("My-NPU", name).replace("my_chip.hcd", f"{low}.hcd").replace("device_type: npu" + " " * 21, padded)
    test = filled("chip/test.py.in", {"Name": name, "name": low})
    return make(into, {f"{low}.hcd": hcd, f"test_{low}.py": test}, (
        f"python -m pytest {into / f'test_{low}.py'}",
        f"then state in {low}.hcd what the chip is; docs/hcd.md has all keys; flaot hcd validate {into / f'{low}.hcd'}",
        f"flaot query MODEL --hcd {into / f'{low}.hcd'}     # what it runs of a model, and why not",
        "in a checkout of flaot: a descriptor in hcd/ is bundled under its name",
    ))  # fmt: skip


def adapter(name: str, into: Path) -> Made:
    """A C adapter for a chip, in a folder of its own: source, stand-in for the SDK, Makefile, descriptor and test. Raises UsageError for
    a bad or taken name."""
    low = _stem(name)
    files = {"adapter.c": "adapter.c", "sdk.h": "sdk.h", "sdk.c": "sdk.c", "Makefile": "Makefile"}
    files |= {f"{low}.hcd": "chip.hcd", f"test_{low}.py": "test.py"}
    names, folder = {"Name": name, "name": low}, into / low
    return make(into, {f"{low}/{path}": filled(f"adapter/{template}.in", names) for path, template in files.items()}, (
        f"python -m pytest {folder}                # builds it (make, a C compiler) and runs a small plan on it",
        f"flaot compile model.onnx --hcd {folder / f'{low}.hcd'} -o model.flp",
        f"make -C {folder} && flaot run model.flp --adapter {folder / 'build' / f'lib{low}.so'}",
        "then put the vendor's SDK in place of sdk.h and sdk.c, bind kernels in adapter.c one by one, and list in the descriptor",
        "the operators they run; docs/runtime.md: what an adapter does",
    ))  # fmt: skip


def snake(name: str) -> str:
    """``HardSwish`` as ``hard_swish``, ``RMSNorm`` as ``rms_norm``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _stem(name: str) -> str:
    """The name of a chip or adapter as files and device types have it."""
    if not re.fullmatch(CHIP_NAME, name):
        raise UsageError(f"'{printable(name)}' is no name of a chip; expected letters, digits, - and _ such as My-NPU")
    return name.lower().replace("-", "_")


def _has_op(into: Path, name: str) -> bool:
    """Whether a class of that name is in the checkout's op files."""
    declared = re.compile(rf"^class {name}\b", re.MULTILINE)
    return any(declared.search(path.read_text()) for path in (into / "flaot" / "ir" / "ops").glob("*.py"))

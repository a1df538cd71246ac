"""What there is to start: which files are made, and what comes next."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from flaot.hcd.template import TEMPLATE
from flaot.scaffold.allowed import new_adapter, new_chip, op_name
from flaot.scaffold.make import Made, filled, make, template_text

OP_FILES = {"flaot/ir/ops/@name@.py": "op/ir.py.in", "flaot/kernels/@name@/__init__.py": "op/kernel.py.in"}
OP_FILES |= {"flaot/kernels/@name@/generic.c": "op/generic.c.in", "tests/kernels/test_@name@.py": "op/test.py.in"}
ADAPTER_FILES = {"adapter.c": "adapter.c", "sdk.h": "sdk.h", "sdk.c": "sdk.c", "Makefile": "Makefile"}
ADAPTER_FILES |= {"@name@.hcd": "chip.hcd", "test_@name@_adapter.py": "test.py"}


def op(name: str, into: Path) -> Made:
    """An op with its reader, kernel and test, in the checkout ``into``. Raises UsageError for a bad or taken name and another folder."""
    low = op_name(name, into, _needed("op/ir.py.in") | _needed("op/kernel.py.in"))
    kernel = f"flaot/kernels/{low}"
    names = {"Name": name, "name": low}
    return make(into, _texts(OP_FILES, "", names), (
        *([f"cd {_word(into)}"] if into != Path() else []),
        "make generate native                      # the tables that C and Python share, and the library",
        f"python -m pytest tests/kernels/test_{low}.py",
        f"then put in place of y = x / (1 + alpha |x|) what {name} is: attributes, infer and cost in flaot/ir/ops/{low}.py,",
        f"{kernel}/generic.c, and the reference in the test; an operator of ONNX has no domain: @reads(\"{name}\")",
        "docs/kernels.md: the contract of a kernel, vector variants; make lint before committing",
    ))  # fmt: skip


def chip(name: str, into: Path) -> Made:
    """A descriptor and its test. Raises UsageError for a bad or taken name."""
    low = new_chip(name)
    hcd, test = into / f"{low}.hcd", into / f"test_{low}.py"
    texts = {hcd.name: _descriptor(name, low), test.name: filled("chip/test.py.in", {"Name": name, "name": low})}
    return make(into, texts, (
        f"python -m pytest {_word(test)}     # needs pytest",
        f"flaot optest --hcd {_word(hcd)}     # tries every operator it claims in the simulator",
        f"then state in {low}.hcd what the chip is; docs/hcd.md of flaot has all keys; flaot hcd validate {_word(hcd)}",
        f"flaot query MODEL --hcd {_word(hcd)}     # what it runs of a model, and why not",
        "in a checkout of flaot: a descriptor in hcd/ is bundled under its name",
    ))  # fmt: skip


def adapter(name: str, into: Path) -> Made:
    """A C adapter for a chip, in a folder of its own: source, stand-in for the SDK, Makefile, descriptor and test. Raises UsageError for
    a bad or taken name."""
    low, kind = new_adapter(name)
    folder = into / low
    hcd, library = _word(folder / f"{low}.hcd"), _word(folder / "build" / f"lib{low}.so")
    return make(into, _texts(ADAPTER_FILES, f"{low}/", {"Name": name, "name": low, "type": kind}, "adapter/{}.in"), (
        f"python -m pytest {_word(folder)}                # builds it (make, a C compiler) and runs a small plan on it; needs pytest",
        f"make -C {_word(folder)}",
        f"flaot optest --hcd {hcd} --adapter {library}     # tries every operator it claims",
        f"flaot compile MODEL --hcd {hcd} -o model.flp && flaot run model.flp --adapter {library}",
        "then put the vendor's SDK in place of sdk.h and sdk.c, bind kernels in adapter.c one by one, and list in the descriptor",
        "the operators they run; docs/adapters.md of flaot: what an adapter does",
    ))  # fmt: skip


def _texts(files: dict[str, str], folder: str, names: dict[str, str], template: str = "{}") -> dict[str, str]:
    return {f"{folder}{path.replace('@name@', names['name'])}": filled(template.format(source), names) for path, source in files.items()}


def _descriptor(name: str, low: str) -> str:
    """The text of ``flaot hcd new`` with the name in it, comments where they were as far as there is room."""
    text = TEMPLATE.replace("my_chip.hcd", f"{low}.hcd")
    for line in re.findall(r"^  (?:name: My-NPU|device_type: npu) +#", TEMPLATE, re.MULTILINE):
        stated = line.rstrip(" #").replace("My-NPU", name).replace(": npu", f": {low}")
        text = text.replace(line, f"{stated} ".ljust(len(line) - 1) + "#")
    return text


def _needed(template: str) -> frozenset[str]:
    """Names a template imports or assigns, which an op cannot have."""
    lines = re.findall(r"^from \S+ import (.+)$|^(\w+) = ", template_text(template), re.MULTILINE)
    return frozenset(word for line in lines for said in line for word in re.findall(r"(?<!@)\b\w+\b(?!@)", said))


def _word(path: Path) -> str:
    """A path as the shell takes it."""
    return shlex.quote(str(path))

"""Who may import whom: the direction stated in docs/design.md, and the one door each foreign library has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "flaot"

MAY_IMPORT = {
    "errors": set(),
    "version": set(),
    "files": {"errors"},
    "ir": {"errors"},
    "frontend": {"ir", "errors"},
    "rewrite": {"ir", "errors"},
    "rules": {"rewrite", "ir", "errors"},
    "hcd": {"files", "errors"},
    "mapping": {"hcd", "kernels", "targets", "plan", "rules", "rewrite", "ir", "errors"},
    "kernels": {"plan", "targets", "ir", "errors"},
    "schedule": {"mapping", "kernels", "plan", "runtime", "targets", "ir", "hcd", "errors"},
    "plan": {"ir", "errors", "version"},
    "runtime": {"plan", "files", "errors"},
    "measure": {"hcd", "targets", "runtime", "errors"},
    "scaffold": {"hcd", "files", "errors"},
    "targets": {"hcd", "plan", "ir", "errors"},
    "optest": {
        "pipeline", "verify", "schedule", "mapping", "kernels", "targets", "plan", "runtime", "hcd", "ir", "files", "version", "errors",
    },
}
"""Part of the package -> the parts it may import besides itself. Parts not listed (cli, pipeline, verify, report) are free."""

FOREIGN = {
    "onnx": ("frontend", "verify", "optest"),
    "onnxruntime": ("verify",),
    "networkx": ("ir", "mapping"),
    "torch": (),
    "click": ("cli",),
    "yaml": ("hcd",),
}
"""Foreign library -> the parts of the package that may import it."""

FILES = sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """``ir`` for flaot/ir/graph.py, ``pipeline`` for flaot/pipeline.py."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def imported(path: Path) -> frozenset[str]:
    """Modules imported anywhere in the file, functions included; blocks for the type checker alone do not count."""
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{a.name}" for a in node.names)
        todo.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("name", sorted(MAY_IMPORT))
def test_a_part_imports_only_what_stands_before_it(name: str) -> None:
    allowed = MAY_IMPORT[name] | {name, "__init__"}
    wrong = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in FILES
        if part(path) == name
        for module in imported(path)
        if module.startswith("flaot.") and module.split(".")[1] not in allowed
    }
    assert not wrong


@pytest.mark.parametrize("library", sorted(FOREIGN))
def test_a_foreign_library_has_one_door(library: str) -> None:
    wrong = {
        f"{path.relative_to(ROOT)} imports {library}"
        for path in FILES
        if part(path) not in FOREIGN[library]
        for module in imported(path)
        if module.split(".")[0] == library
    }
    assert not wrong


def test_only_the_doors_import_the_pipeline() -> None:
    users = {part(p) for p in FILES for module in imported(p) if module.startswith("flaot.pipeline")}
    assert users <= {"cli", "__init__", "pipeline", "optest"}

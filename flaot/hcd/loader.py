"""File or name -> :class:`Hcd`: text, fields, cross-field rules, defaults; every problem with file:line:column."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, get_args, get_origin

import pydantic

from flaot.errors import HcdError, printable
from flaot.files import read_file
from flaot.hcd import checks
from flaot.hcd.derive import Derived, derive
from flaot.hcd.extends import with_bases
from flaot.hcd.rules import Finding, findings, newer_version
from flaot.hcd.schema import Schema
from flaot.hcd.text import MAX_BYTES, Tree, describe, nearest, parse, together

Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Hcd:
    """A validated descriptor.

    ``stated`` is what the file says, ``full`` the same with defaults filled in, ``derived`` the list of those defaults, ``warnings``
    sentences that begin with file:line:column, ``source`` the file or bundled name, ``bases`` what it extends, the nearest first,
    ``files`` the paths of all these.
    A descriptor is the same, digest included, whether it extends a base or states everything itself.
    """

    stated: Schema
    full: Schema
    derived: tuple[Derived, ...]
    warnings: tuple[str, ...]
    source: str
    tree: Tree
    bases: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return self.full.chip.name

    @property
    def digest(self) -> bytes:
        """SHA-256 of what the descriptor states; order, comments, spelling of dtypes and the file's name do not count."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True, separators=(",", ":")).encode()).digest()

    def to_json(self) -> dict[str, Any]:
        """What the descriptor states, JSON-ready."""
        return self.stated.model_dump(mode="json", exclude_none=True, exclude_unset=True)

    def origin(self, *path: str | int) -> str:
        """Where a limit is written, as ``npu_v3.hcd:41`` without folders, which plans must not hold; for a derived value the nearest
        section above it."""
        place = self.tree.find(path).key_place
        return f"{PurePath(place.file).name}:{place.line}"


def load(data: bytes, source: str, path: Path | None = None) -> Hcd:
    """A descriptor from its text; ``path`` is its file, beside which a base is looked for. Raises HcdError or ProblemList (exit code 4)."""
    tree, bases = with_bases(parse(data, source), path)
    newer = newer_version(tree.plain().get("hcd_version"))
    if newer:
        raise _located(tree, newer)
    try:
        stated = Schema.model_validate(_tuples(tree.plain()))
    except pydantic.ValidationError as e:
        raise together([_located(tree, _field_problem(error)) for error in e.errors()]) from None
    found = findings(stated)
    problems = [f for f in found if not f.warning]
    if problems:
        raise together([_located(tree, f) for f in problems])
    full, derived = derive(stated)
    files = (*([path] if path is not None else []), *(base for _, base in bases))
    return Hcd(stated, full, derived, tuple(str(_located(tree, f)) for f in found), source, tree, tuple(name for name, _ in bases), files)


def load_file(path: Path) -> Hcd:
    """Raises FileSystemError for a file that cannot be read, HcdError or ProblemList for its content."""
    return load(read_file(str(path), "a descriptor (.hcd)", MAX_BYTES), printable(path, 200), path)


def _tuples(value: Any) -> Any:
    """Lists as tuples: the schema is immutable."""
    if isinstance(value, dict):
        return {k: _tuples(v) for k, v in value.items()}
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _located(tree: Tree, finding: Finding) -> HcdError:
    """The finding as an error at its key's or value's position; the path of keys is part of the sentence."""
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{printable(p)}" for p in finding.path).lstrip(".")
    found = tree.find(finding.path)
    what = f"{path}: {finding.what}" if path else finding.what
    return HcdError(what, where=str(found.place if finding.on_value else found.key_place), hint=finding.hint)


def _field_problem(error: Any) -> Finding:
    """One of pydantic's errors in flaot's words."""
    path: Path_ = tuple(p for p in error["loc"] if p != "[key]")
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return Finding(path, "unknown key", nearest(str(path[-1]), _known_keys(path[:-1])))
    if kind == "missing":
        return Finding(path[:-1], f"the key '{path[-1]}' is missing")
    if kind == "value_error":
        return Finding(path, str(context["error"]), on_value=True)
    return Finding(path, f"found {describe(error['input'])}, expected {_expected(kind, context)}", on_value=True)


def _known_keys(path: Path_) -> list[str]:
    """The keys a section may have."""
    held: Any = Schema
    for part in path:
        fields = getattr(held, "model_fields", None)
        held = _inner(fields[str(part)].annotation if fields else get_args(held)[-1 if get_origin(held) is dict else 0])
    return list(held.model_fields)


def _inner(annotation: Any) -> Any:
    """A type without ``| None`` and annotations."""
    while get_origin(annotation) not in (None, dict, tuple):
        annotation = get_args(annotation)[0]
    return annotation


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text (numbers and dates in quotes)",
    "string_too_short": "text",
    "string_too_long": "text of at most 200 characters",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "string_pattern_mismatch": "a word of lower-case letters, digits and _",
    "too_long": "fewer entries",
    "finite_number": "a finite number",
}
_BOUNDS = {"greater_than": ("gt", "above"), "greater_than_equal": ("ge", "of at least"), "less_than_equal": ("le", "of at most")}


def _expected(kind: str, context: dict[str, Any]) -> str:
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"a number {words} {context[key]:g}" if isinstance(context[key], float) else f"a number {words} {context[key]}"
    if kind == "too_short":
        return "at least one entry" if context["min_length"] == 1 else f"at least {context['min_length']} entries"
    return _EXPECTED.get(kind, kind.replace("_", " "))


__all__ = ["Hcd", "checks", "load", "load_file"]

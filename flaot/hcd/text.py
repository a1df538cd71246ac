"""Strict YAML: a descriptor's text as a tree in which every key and value knows its line and column.

The part of YAML that two readers can understand differently is refused: anchors, aliases, merge keys, tags, duplicate keys, several
documents, and plain scalars such as ``NO``, ``010``, ``1:30`` or ``1e3``. PyYAML supplies the events only; nothing is constructed by it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from flaot.errors import FlaotError, HcdError, ProblemList, printable

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_SCALAR = 4096
MAX_PROBLEMS = 20


@dataclass(frozen=True)
class Place:
    """A position in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass
class Tree:
    """One YAML value: ``value`` is a str, int, float or bool, a list of Trees, or a dict of key to Tree.

    ``place`` is where the value begins, ``key_place`` where its key stands (the value's own place in lists and at the top).
    """

    value: Any
    place: Place
    key_place: Place

    def plain(self) -> Any:
        """The value without positions."""
        if isinstance(self.value, dict):
            return {k: t.plain() for k, t in self.value.items()}
        if isinstance(self.value, list):
            return [t.plain() for t in self.value]
        return self.value

    def find(self, path: tuple[str | int, ...]) -> Tree:
        """The subtree at ``path``, or the deepest one on the way there."""
        tree = self
        for part in path:
            if isinstance(tree.value, dict) and part in tree.value:
                tree = tree.value[str(part)]
            elif isinstance(tree.value, list) and isinstance(part, int) and part < len(tree.value):
                tree = tree.value[part]
        return tree


def parse(data: bytes, file: str) -> Tree:
    """Raises HcdError, or ProblemList for several independent problems, each with file:line:column."""
    return _Composer(_decode(data, file), file).document()


def _decode(data: bytes, file: str) -> str:
    start = Place(file, 1, 1)
    if len(data) > MAX_BYTES:
        raise HcdError(f"{len(data)} bytes; a descriptor holds at most {MAX_BYTES}", where=str(start))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(data) > 1 and 0 in data[:2] and any(data[:2])):
        raise HcdError("UTF-16 text; descriptors are UTF-8", where=str(start), hint="save the file as UTF-8")
    if data.startswith(b"\xef\xbb\xbf"):
        raise HcdError("a byte order mark; descriptors are UTF-8 without one", where=str(start), hint="save it without the mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise HcdError(f"byte 0x{data[e.start]:02x} is not UTF-8", where=str(_place(data[: e.start].decode(), file))) from None
    bad = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text)
    if bad:
        raise HcdError(f"control character U+{ord(bad.group()):04X}", where=str(_place(text[: bad.start()], file)))
    return text


def _place(before: str, file: str) -> Place:
    """The position right after ``before``."""
    return Place(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


class _Composer:
    """Builds the tree from PyYAML's events without recursion. Refusals that do not end the parse are collected."""

    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._problems: list[HcdError] = []
        self._root: Tree | None = None
        self._open: list[Tree] = []
        self._keys: list[tuple[str, Place] | None] = []

    def document(self) -> Tree:
        try:
            self._consume(self._events())
        except yaml.YAMLError as e:
            self._problems.append(self._syntax(e))
        except HcdError as e:
            self._problems.append(e)
        if self._problems:
            raise together(self._problems)
        if self._root is None:
            raise HcdError("the descriptor is empty", where=f"{self._file}:1:1", hint="see 'flaot hcd list' for bundled examples")
        if not isinstance(self._root.value, dict):
            raise HcdError(
                f"found {describe(self._root.value)}, expected a mapping of sections (chip, compute_units, ...)",
                where=str(self._root.place),
            )
        return self._root

    def _events(self) -> Iterator[Any]:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        yield from yaml.parse(self._text, Loader=loader)

    def _consume(self, events: Iterator[Any]) -> None:
        documents = 0
        for event in events:
            place = Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise HcdError("a second document; a descriptor file holds one", where=str(place))
            elif isinstance(event, yaml.AliasEvent):
                raise HcdError(f"the alias *{printable(event.anchor)}; aliases are not allowed, repeat the value", where=str(place))
            elif isinstance(event, yaml.NodeEvent):
                self._refuse_anchor_and_tag(event, place)
                self._node(event, place)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
                self._keys.pop()

    def _refuse_anchor_and_tag(self, event: Any, place: Place) -> None:
        if event.anchor is not None:
            raise HcdError(f"the anchor &{printable(event.anchor)}; anchors are not allowed, repeat the value", where=str(place))
        if event.tag is not None and event.tag != "!":
            raise HcdError(f"the tag {printable(event.tag)}; tags are not allowed", where=str(place))

    def _node(self, event: Any, place: Place) -> None:
        if self._open and isinstance(self._open[-1].value, dict) and self._keys[-1] is None:
            self._keys[-1] = (self._key(event, place), place)
            return
        if isinstance(event, yaml.ScalarEvent):
            self._attach(Tree(self._scalar(event, place), place, place))
            return
        tree = Tree({} if isinstance(event, yaml.MappingStartEvent) else [], place, place)
        self._attach(tree)
        self._open.append(tree)
        self._keys.append(None)
        if len(self._open) > MAX_DEPTH:
            raise HcdError(f"nested deeper than {MAX_DEPTH} levels", where=str(place))

    def _key(self, event: Any, place: Place) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise HcdError("a list or mapping used as a key", where=str(place))
        key: str = event.value
        if key == "<<":
            raise HcdError("the merge key <<; merging is not allowed, repeat the values", where=str(place))
        if not event.style:
            self._scalar(event, place)
        above = self._open[-1].value
        if key in above:
            self._problem(f"the key {printable(key)!r} for the second time; the first is on line {above[key].key_place.line}", place)
        return key

    def _attach(self, tree: Tree) -> None:
        if not self._open:
            self._root = tree
            return
        above = self._open[-1].value
        if isinstance(above, list):
            above.append(tree)
            return
        held = self._keys[-1]
        assert held is not None
        key, tree.key_place = held
        above.setdefault(key, tree)
        self._keys[-1] = None

    def _scalar(self, event: Any, place: Place) -> Any:
        text: str = event.value
        if len(text) > MAX_SCALAR:
            raise HcdError(f"a value of {len(text)} characters; at most {MAX_SCALAR} are allowed", where=str(place))
        if event.style:
            return text
        try:
            return plain_scalar(text)
        except ValueError as e:
            self._problem(str(e), place)
            return Refused(text)

    def _problem(self, sentence: str, place: Place) -> None:
        self._problems.append(HcdError(sentence, where=str(place)))

    def _syntax(self, e: yaml.YAMLError) -> HcdError:
        mark = getattr(e, "problem_mark", None)
        place = Place(self._file, mark.line + 1, mark.column + 1) if mark else Place(self._file, 1, 1)
        lines = self._text.splitlines()
        line = lines[place.line - 1] if place.line <= len(lines) else ""
        if "\t" in line[: place.column] or line[place.column - 1 : place.column] == "\t":
            return HcdError("a tab; indent and separate with spaces", where=f"{self._file}:{place.line}:{line.index(chr(9)) + 1}")
        what = getattr(e, "problem", None) or "not YAML"
        return HcdError(f"not valid YAML: {printable(what, 200)}", where=str(place))


class Refused(str):
    """A scalar that was refused already and must not be complained about twice."""


_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_WORDS = {"true": True, "false": False}
_BOOLISH = {"yes", "no", "on", "off", "y", "n", "true", "false"}
_NUMBERISH = re.compile(
    r"[-+]?(0[xXoObB][0-9a-fA-F_]+|[0-9][0-9_,]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9]+|[0-9]+(:[0-9]+)+(\.[0-9]*)?|\.(inf|nan))",
    re.IGNORECASE,
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")


def plain_scalar(text: str) -> Any:
    """The value of an unquoted scalar. Raises ValueError for a spelling that YAML readers understand differently."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and text != "-0":
        if len(text) > 18:
            raise ValueError(f"the number {printable(text, 24)} has more than 18 digits")
        return int(text)
    if _FLOAT.fullmatch(text) and len(text) <= 40:
        return float(text)
    shown = printable(text, 24)
    if text in ("", "~") or text.lower() == "null":
        raise ValueError("no value (null); give one or leave the key out")
    if text.lower() in _BOOLISH:
        raise ValueError(f"{shown!r} means true or false to some YAML readers; write true, false, or the word in quotes")
    if _NUMBERISH.fullmatch(text):
        raise ValueError(
            f"{shown!r} is read differently by different YAML readers; write a plain decimal number such as 1000 or 0.5, "
            "or put text in quotes"
        )
    if _DATE.fullmatch(text):
        raise ValueError(f"{shown!r} is a date to some YAML readers; put text in quotes")
    return text


def together(problems: Sequence[HcdError]) -> FlaotError:
    """One error for all problems; past MAX_PROBLEMS they are only counted."""
    if len(problems) == 1:
        return problems[0]
    shown: list[FlaotError] = list(problems[:MAX_PROBLEMS])
    if len(problems) > MAX_PROBLEMS:
        shown.append(HcdError(f"{len(problems) - MAX_PROBLEMS} more problems"))
    return ProblemList(shown)


def describe(value: Any) -> str:
    """A found value in words for a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"{printable(value, 40)!r}" if isinstance(value, str) else f"the number {value}"


def nearest(word: str, known: Sequence[str]) -> str:
    """A sentence that suggests the closest of ``known``, or lists them."""
    close = difflib.get_close_matches(word[:64], list(known), 1, 0.6)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"

"""Rows of dataclasses as few bytes, the same on every machine: every text once, numbers of variable length.

A byte of version, the texts (count, then length and UTF-8 each), then the rows as :class:`Packer` was told to write them. Numbers are
LEB128; a float is twice its tenths where that is exact, else 1 and eight bytes.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

VERSION = 2
T = TypeVar("T")


class Packer:
    """Collects texts and rows."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._body = bytearray()

    def number(self, n: int) -> None:
        """A number of at least 0."""
        self._body += _leb128(n)

    def text(self, text: str) -> None:
        self.number(self._texts.setdefault(text, len(self._texts)))

    def real(self, x: float) -> None:
        tenths = round(x * 10) if abs(x) < 2**50 else -1
        if tenths >= 0 and tenths / 10 == x:
            self.number(2 * tenths)
        else:
            self.number(1)
            self._body += struct.pack("<d", x)

    def rows(self, rows: Sequence[Any]) -> None:
        """How many dataclasses, and their fields in order: texts, numbers, floats, tuples of texts or of dataclasses."""
        self.number(len(rows))
        for row in rows:
            for f in dataclasses.fields(row):
                self._value(getattr(row, f.name))

    def _value(self, value: Any) -> None:
        match value:
            case str():
                self.text(value)
            case bool() | int():
                self.number(value)
            case float():
                self.real(value)
            case tuple() if not value or isinstance(value[0], str):
                self.number(len(value))
                for text in value:
                    self.text(text)
            case _:
                self.rows(value)

    def finish(self) -> bytes:
        texts = b"".join(_leb128(len(raw)) + raw for raw in (t.encode("utf-8", "replace") for t in self._texts))
        return bytes([VERSION]) + _leb128(len(self._texts)) + texts + bytes(self._body)


class Unpacker:
    """Reads what a :class:`Packer` made. Raises ValueError for anything else."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 1
        if not data or data[0] != VERSION:
            raise ValueError(f"version {data[0] if data else 'none'}; this flaot reads version {VERSION}")
        self._texts = [self._take(self.number()).decode("utf-8") for _ in range(self._count())]

    def number(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than nine bytes")

    def text(self) -> str:
        index = self.number()
        if index >= len(self._texts):
            raise ValueError(f"text {index} of {len(self._texts)}")
        return self._texts[index]

    def real(self) -> float:
        n = self.number()
        return float(struct.unpack("<d", self._take(8))[0]) if n == 1 else n / 2 / 10

    def rows(self, kind: type[T], inner: dict[str, type[Any]]) -> list[T]:
        """Dataclasses of one kind; ``inner`` are those its fields hold tuples of, by name."""
        readers = [self._reader(str(f.type), inner) for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
        return [kind(*(read() for read in readers)) for _ in range(self._count())]

    def _reader(self, type: str, inner: dict[str, type[Any]]) -> Callable[[], Any]:
        if type == "tuple[str, ...]":
            return lambda: tuple(self.text() for _ in range(self._count()))
        if type.startswith("tuple["):
            return lambda: tuple(self.rows(inner[type[6:].partition(",")[0]], inner))
        return {"str": self.text, "int": self.number, "float": self.real, "bool": lambda: bool(self.number())}[type]

    def finish(self) -> None:
        """Raises ValueError when something is left."""
        if self._at != len(self._data):
            raise ValueError(f"{len(self._data) - self._at} bytes too many")

    def _count(self) -> int:
        count = self.number()
        if count > len(self._data) - self._at:
            raise ValueError(f"{count} entries in {len(self._data) - self._at} bytes")
        return count

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise ValueError("it ends too early")
        self._at += size
        return taken


def _leb128(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])

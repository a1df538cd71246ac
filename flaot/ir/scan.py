"""Tokens of the text form of a graph (see flaot.ir.text), with the place of each for messages."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from flaot.errors import ModelError, printable

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\n]*) | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<blob>@[0-9a-f]+) | (?P<value>%[0-9]+)
      | (?P<number>[-+]?(?:inf\b|nan\b|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?))
      | (?P<word>[A-Za-z_][A-Za-z_0-9]*) | (?P<mark>[][(){}=:,.])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int


class Scanner:
    """Takes a text's tokens one after the other. Raises ModelError at ``file:line:column``."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file, self.next = text, file, 0
        self.tokens = self.scan()

    def scan(self) -> list[Token]:
        tokens, at = [], 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                self.fail(f"unexpected {printable(self.text[at])!r}", at)
            if match.lastgroup != "space":
                tokens.append(Token(str(match.lastgroup), match.group(), at))
            at = match.end()
        return [*tokens, Token("end", "end of text", len(self.text))]

    def fail(self, sentence: str, at: int | None = None) -> NoReturn:
        at = self.tokens[self.next].at if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        raise ModelError(sentence, where=f"{self.file}:{line}:{column}")

    @property
    def now(self) -> Token:
        return self.tokens[self.next]

    def is_next(self, text: str) -> bool:
        return self.now.text == text and self.now.kind in ("mark", "word")

    def maybe(self, text: str) -> bool:
        found = self.is_next(text)
        self.next += found
        return found

    def expect(self, text: str) -> None:
        if not self.maybe(text):
            self.fail(f"found '{printable(self.now.text)}', expected '{text}'")

    def take(self, kind: str, what: str) -> str:
        if self.now.kind != kind:
            self.fail(f"found '{printable(self.now.text)}', expected {what}")
        self.next += 1
        return self.tokens[self.next - 1].text

    def string(self) -> str:
        start = self.now.at
        try:
            return str(json.loads(self.take("string", "a quoted string")))
        except ValueError:
            self.fail("a string with a bad escape", start)

    def strings(self) -> tuple[str, ...]:
        found = []
        while self.now.kind == "string":
            found.append(self.string())
        return tuple(found)

    def integer(self) -> int:
        start, text = self.now.at, self.take("number", "a whole number")
        if not re.fullmatch(r"[-+]?[0-9]{1,20}", text):
            self.fail(f"found '{text}', expected a whole number", start)
        return int(text)

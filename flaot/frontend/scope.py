"""Names while a graph, a branch or a function body is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx

from flaot.ir.graph import Value


@dataclass(frozen=True)
class Missing:
    """Stands for a value that could not be made. ``reason`` is None when its problem has been reported already."""

    reason: str | None = None


Entry = Value | Missing | None
"""None is an optional input of a function that the caller left out."""


@dataclass
class Scope:
    """The names of one graph; those not found are looked for in ``parent``. ``pending`` holds initializers not used so far."""

    opsets: Mapping[str, int]
    parent: Scope | None = None
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    prefix: str = ""
    names: dict[str, Entry] = field(default_factory=dict)
    pending: dict[str, Callable[[], Value]] = field(default_factory=dict)

    @property
    def is_main(self) -> bool:
        """Whether the names are those of the model's own graph."""
        return self.parent is None and not self.prefix

    def defines(self, name: str) -> bool:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names or name in scope.pending:
                return True
            scope = scope.parent
        return False

    def find(self, name: str) -> Entry:
        """What a name stands for; KeyError when nothing defines it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            if name in scope.pending:
                scope.names[name] = scope.pending.pop(name)()
                return scope.names[name]
            scope = scope.parent
        raise KeyError(name)

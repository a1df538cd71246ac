"""Reads the text form of a graph (see flaot.ir.text). Every error has its line and column."""

from __future__ import annotations

import dataclasses
import enum
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from flaot.errors import FileSystemError, FlaotError, ModelError, printable
from flaot.ir.graph import HOST, Graph, Node, Place, Value
from flaot.ir.op import OPS, Op, OpTypeError, load_all
from flaot.ir.place import Facts
from flaot.ir.scan import Scanner
from flaot.ir.text import digest
from flaot.ir.types import DType, Frozen, TensorType

MAX_NESTING = 20


def load_graph(path: Path | str) -> Graph:
    """A graph saved by ``save_graph``."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        side = os.fspath(path) + ".npz"
        data: dict[str, np.ndarray] = {}
        if os.path.exists(side):
            with np.load(side, allow_pickle=False) as stored:
                data = {name: stored[name] for name in stored.files}
    except UnicodeDecodeError:
        raise ModelError("not the text of a graph, which --dump writes", where=printable(path, 300)) from None
    except (OSError, ValueError) as e:
        raise FileSystemError(f"cannot be read: {getattr(e, 'strerror', None) or e}", where=printable(path, 300)) from None
    return parse_graph(text, data, file=printable(path, 300))


def parse_graph(text: str, data: Mapping[str, np.ndarray] | None = None, file: str = "<text>") -> Graph:
    """The graph a text describes. ``data`` holds its large constants by digest. Raises ModelError at ``file:line:column``."""
    load_all()
    return _Parser(text, data or {}, file).graph()


@dataclasses.dataclass(frozen=True)
class _Declared:
    """What stands after the colon of a definition."""

    type: TensorType
    names: tuple[str, ...]
    layout: tuple[int, ...] | None
    stored: DType | None

    def describe(self, value: Value) -> None:
        value.names, value.layout, value.stored = self.names, self.layout, self.stored


class _Parser(Scanner):
    def __init__(self, text: str, data: Mapping[str, np.ndarray], file: str) -> None:
        super().__init__(text, file)
        self.data, self.depth = data, 0
        self.values: dict[str, Value] = {}
        self.result = Graph()

    # -- lines ---------------------------------------------------------------------------------------------------------

    def graph(self) -> Graph:
        self.expect("graph")
        self.result.name = self.string()
        if self.maybe("model"):
            self.result.digest = self.sha256("the model's SHA-256")
        if self.maybe("widened"):
            self.result.model_dtype = self.dtype()
        self.expect("{")
        while not self.maybe("}"):
            if self.maybe("output"):
                name = self.string()
                self.expect("=")
                self.result.set_output(name, self.value())
            elif self.maybe("frozen"):
                self.result.frozen.append(self.frozen())
            else:
                self.definition()
        if self.now.kind != "end":
            self.fail(f"found '{printable(self.now.text)}' after the graph")
        return self.result

    def sha256(self, what: str) -> bytes:
        start, text = self.now.at, self.string()
        if not re.fullmatch(r"[0-9a-f]{64}", text):
            self.fail(f"{what} must be 64 hexadecimal digits", start)
        return bytes.fromhex(text)

    def frozen(self) -> Frozen:
        name = self.string()
        self.expect(":")
        type = self.tensor_type()
        self.expect("=")
        return Frozen(name, type, self.sha256("the SHA-256 of a frozen initializer"))

    def definition(self) -> None:
        start = self.now.at
        names = [self.take("value", "a value like %0")]
        while self.maybe(","):
            names.append(self.take("value", "a value like %0"))
        self.expect("=")
        for name in names:
            if name in self.values:
                self.fail(f"{name} is defined twice", start)
        if len(names) == 1 and self.maybe("input"):
            self.values[names[0]] = self.input()
        elif len(names) == 1 and self.maybe("constant"):
            self.values[names[0]] = self.constant()
        else:
            self.values.update(zip(names, self.node(len(names)), strict=True))

    def input(self) -> Value:
        self.expect(":")
        declared = self.typed()
        value = self.result.add_input(declared.names[0] if declared.names else "", declared.type)
        declared.describe(value)
        return value

    def constant(self) -> Value:
        self.expect(":")
        declared = self.typed()
        self.expect("=")
        value = self.result.add_constant(self.elements(declared.type).reshape(declared.type.shape), dtype=declared.type.dtype)
        declared.describe(value)
        return value

    def elements(self, type: TensorType) -> np.ndarray:
        start = self.now.at
        if self.now.kind == "blob":
            key = self.take("blob", "a digest")[1:]
            if key not in self.data or digest(self.data[key]) != key:
                self.fail(f"no data for @{key}; it belongs in the .npz file beside the text", start)
            array = self.data[key]
        elif self.maybe("x"):
            try:
                array = np.frombuffer(bytes.fromhex(self.string()), type.dtype.numpy)
            except ValueError:
                self.fail("bytes that are not hexadecimal or do not fill the elements", start)
        else:
            array = self.numbers(type.dtype.numpy)
        if array.size != type.elements or array.dtype != type.dtype.numpy:
            self.fail(f"{array.size} elements of {array.dtype}, expected {type}", start)
        return array

    def numbers(self, dtype: np.dtype) -> np.ndarray:
        self.expect("[")
        items: list[object] = []
        while not self.maybe("]"):
            items.append(np.array(self.take("number", "a number")).astype(dtype) if dtype.kind == "f" else self.integer())
            if not self.is_next("]"):
                self.expect(",")
        try:
            return np.array(items, dtype)
        except (OverflowError, ValueError):
            self.fail(f"a number that does not fit {dtype}")

    def node(self, count: int) -> tuple[Value, ...]:
        start = self.now.at
        op = self.attribute(Op)
        if not isinstance(op, Op):
            self.fail("expected an op", start)
        self.expect("(")
        inputs: list[Value | None] = []
        while not self.maybe(")"):
            inputs.append(None if self.maybe("_") else self.value())
            if not self.is_next(")"):
                self.expect(",")
        self.expect(":")
        declared = [self.typed()]
        while self.maybe(","):
            declared.append(self.typed())
        place = self.place() if self.maybe("at") else HOST
        group = self.string() if self.maybe("group") else ""
        facts = self.facts() if self.maybe("facts") else Facts()
        origin = self.strings() if self.maybe("from") else ()
        node = self.add(op, inputs, declared, origin, count, start)
        node.place, node.group, node.facts = place, group, facts
        return node.outputs

    def facts(self) -> Facts:
        self.expect("(")
        numbers = [self.integer()]
        while self.maybe(","):
            numbers.append(self.integer())
        at = self.now.at
        self.expect(")")
        if len(numbers) != 3:
            self.fail("facts are three numbers: batch, sequence and heads", at)
        return Facts(*numbers)

    def place(self) -> Place:
        device, unit = self.string(), self.string()
        return Place(device, unit, self.dtype())

    def add(
        self,
        op: Op,
        inputs: list[Value | None],
        declared: list[_Declared],
        origin: tuple[str, ...],
        count: int,
        start: int,
    ) -> Node:
        try:
            node = self.result.add_node(op, inputs, origin=origin)
        except (OpTypeError, FlaotError, ValueError, AssertionError, IndexError) as e:
            self.fail(f"{op.name} refuses its inputs: {e}", start)
        found, wanted = node.output_types, [d.type for d in declared]
        if len(found) != count or found != wanted:
            self.fail(f"{op.name} gives {', '.join(map(str, found))}, declared {', '.join(map(str, wanted))}", start)
        for value, d in zip(node.outputs, declared, strict=True):
            d.describe(value)
        return node

    def value(self) -> Value:
        start, name = self.now.at, self.take("value", "a value like %0")
        if name not in self.values:
            self.fail(f"{name} is used before it is defined", start)
        return self.values[name]

    def typed(self) -> _Declared:
        type = self.tensor_type()
        names = self.strings()
        layout = self.layout(type.rank) if self.maybe("layout") else None
        return _Declared(type, names, layout, self.dtype() if self.maybe("stored") else None)

    def dtype(self) -> DType:
        start, word = self.now.at, self.take("word", "an element type")
        if word not in DType.__members__:
            self.fail(f"unknown element type '{word}'", start)
        return DType[word]

    def tensor_type(self) -> TensorType:
        dtype = self.dtype()
        self.expect("[")
        shape = []
        while not self.maybe("]"):
            shape.append(self.integer())
            if not self.is_next("]"):
                self.expect(",")
        return TensorType(dtype, tuple(shape))

    def layout(self, rank: int) -> tuple[int, ...]:
        self.expect("(")
        at, axes = self.now.at, []
        while not self.maybe(")"):
            axes.append(self.integer())
            if not self.is_next(")"):
                self.expect(",")
        if sorted(axes) != list(range(rank)):
            self.fail(f"a layout must order the {rank} axes", at)
        return tuple(axes)

    # -- attributes ----------------------------------------------------------------------------------------------------

    def attribute(self, owner: type) -> object:
        """A value in an op's attribute list; enums and records are looked for where ``owner`` is defined."""
        start, token = self.now.at, self.now
        if token.kind == "string":
            return self.string()
        if token.kind == "number":
            self.next += 1
            return int(token.text) if re.fullmatch(r"[-+]?[0-9]{1,20}", token.text) else float(token.text)
        if self.maybe("("):
            return self.items(owner)
        word = self.take("word", "an attribute value")
        if word in ("None", "True", "False"):
            return {"None": None, "True": True, "False": False}[word]
        if word in ("inf", "nan"):
            return float(word)
        if self.maybe("."):
            return self.member(owner, word, start)
        if self.is_next("("):
            return self.record(owner, word, start)
        if word in DType.__members__:
            return DType[word]
        self.fail(f"unknown attribute value '{word}'", start)

    def items(self, owner: type) -> tuple[object, ...]:
        found = []
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"attributes nested more than {MAX_NESTING} deep")
        while not self.maybe(")"):
            found.append(self.attribute(owner))
            if not self.is_next(")"):
                self.expect(",")
        self.depth -= 1
        return tuple(found)

    def member(self, owner: type, word: str, start: int) -> object:
        name = self.take("word", "a member")
        cls = getattr(sys.modules[owner.__module__], word, None)
        if not isinstance(cls, type) or not issubclass(cls, enum.Enum) or name not in cls.__members__:
            self.fail(f"unknown attribute value '{word}.{name}'", start)
        return cls[name]

    def record(self, owner: type, word: str, start: int) -> object:
        cls = OPS.get(word) or getattr(sys.modules[owner.__module__], word, None)
        if not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
            self.fail(f"unknown op '{word}'", start)
        known = {f.name for f in dataclasses.fields(cls)}
        given: dict[str, object] = {}
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"attributes nested more than {MAX_NESTING} deep")
        self.expect("(")
        while not self.maybe(")"):
            at, name = self.now.at, self.take("word", "an attribute name")
            if name not in known or name in given:
                self.fail(f"{word} has no attribute '{name}'" if name not in known else f"'{name}' is given twice", at)
            self.expect("=")
            given[name] = self.attribute(cls)
            if not self.is_next(")"):
                self.expect(",")
        self.depth -= 1
        try:
            return cls(**given)
        except (TypeError, ValueError, FlaotError) as e:
            self.fail(f"{word}: {e}", start)

"""The graph as text. ``parse_graph`` (flaot.ir.parse) is the inverse, so a dump can be read, edited and fed back in.

::

    graph "net" {
      %0 = input : float32[1,3] "x"
      frozen "k" : float32[1] = "4bf5...c5a8"
      %1 = constant : int64[2] "shape" = [3, 1]
      %2 = Softmax(axis=1)(%0) : float32[1,3] "y" from "softmax_0"
      output "y" = %2
    }

After a value's names may stand ``layout (0, 2, 3, 1)`` and ``stored float16``, after a node's results ``at "NPU-V3" "fp16" float16``
, ``group "conv_relu.1"`` and
``facts (1, 128, 8)``: batch, sequence and heads.

``model`` and a SHA-256 after the name say which model file it was read from, ``widened float16`` that the model is of that type;
``frozen`` lines name the initializers that it lists as
inputs too, with the SHA-256 of their bytes. Values are numbered in the order they are printed.
Large constants are written as ``@`` and the begin of their SHA-256; their bytes go to a ``.npz`` file beside the text (see
:func:`save_graph`).
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from flaot.ir.graph import HOST, Graph, Node, Value
from flaot.ir.op import Op
from flaot.ir.place import Facts
from flaot.ir.types import DType

INLINE_ELEMENTS = 16
"""Constants up to this size are printed in the text."""


def print_graph(graph: Graph) -> str:
    """The text form; equal graphs give equal text."""
    return _Printer().graph(graph)


def blobs(graph: Graph) -> dict[str, np.ndarray]:
    """The constants the text form refers to by digest."""
    large = (v.data for v in graph.values() if v.data is not None and not _is_inline(v.data))
    return {digest(data): data for data in large}


def save_graph(graph: Graph, path: Path | str) -> None:
    """Writes the text to ``path`` and its large constants to ``path`` with ``.npz`` appended."""
    Path(path).write_text(print_graph(graph), encoding="utf-8")
    Path(os.fspath(path) + ".npz").write_bytes(blob_file(graph))


def blob_file(graph: Graph) -> bytes:
    """Content of the ``.npz`` file beside the text."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **blobs(graph))
    return file.getvalue()


def digest(data: np.ndarray) -> str:
    """Begin of the SHA-256 over element type, shape and bytes."""
    head = f"{data.dtype.str}{data.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(data).tobytes()).hexdigest()[:24]


def quote(text: str) -> str:
    """A double-quoted string in ASCII."""
    return json.dumps(text)


def attribute(value: object) -> str:
    """One attribute of an op."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Op) or dataclasses.is_dataclass(value):
        fields = ", ".join(f"{f.name}={attribute(getattr(value, f.name))}" for f in dataclasses.fields(value))
        return f"{type(value).__name__}({fields})"
    if isinstance(value, tuple):
        return f"({', '.join(map(attribute, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, str):
        return quote(value)
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    raise TypeError(f"attribute of type {type(value).__name__} has no text form")


def _is_inline(data: np.ndarray) -> bool:
    return data.size <= INLINE_ELEMENTS


def _elements(data: np.ndarray) -> str:
    """Elements in row-major order; as hex bytes where decimal text would lose the bits of a NaN."""
    flat = np.ascontiguousarray(data).reshape(-1)
    if flat.dtype.kind == "f":
        if np.isnan(flat).any():
            return f"x{quote(flat.tobytes().hex())}"
        return "[" + ", ".join(map(str, flat)) + "]"
    return "[" + ", ".join(str(int(x)) for x in flat) + "]"


class _Printer:
    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.lines: list[str] = []

    def graph(self, graph: Graph) -> str:
        model = f" model {quote(graph.digest.hex())}" if any(graph.digest) else ""
        widened = f" widened {graph.model_dtype.name}" if graph.model_dtype is not None else ""
        self.lines.append(f"graph {quote(graph.name)}{model}{widened} {{")
        for value in graph.inputs:
            self.line(f"{self.new(value)} = input : {self.typed(value)}")
        for f in graph.frozen:
            self.line(f"frozen {quote(f.name)} : {f.type} = {quote(f.digest.hex())}")
        for node in graph.nodes():
            self.node(node)
        for output in graph.outputs:
            self.line(f"output {quote(output.name)} = {self.use(output.value)}")
        return "\n".join([*self.lines, "}", ""])

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def new(self, value: Value) -> str:
        self.numbers[value.id] = len(self.numbers)
        return f"%{self.numbers[value.id]}"

    def use(self, value: Value | None) -> str:
        if value is None:
            return "_"
        if value.id not in self.numbers and value.data is not None:
            data = _elements(value.data) if _is_inline(value.data) else "@" + digest(value.data)
            self.line(f"{self.new(value)} = constant : {self.typed(value)} = {data}")
        return f"%{self.numbers[value.id]}"

    def typed(self, value: Value) -> str:
        layout = f" layout {attribute(value.layout)}" if value.layout is not None else ""
        stored = f" stored {value.stored.name}" if value.stored is not None else ""
        return " ".join([str(value.type), *map(quote, value.names)]) + layout + stored

    def node(self, node: Node) -> None:
        inputs = ", ".join([self.use(v) for v in node.inputs])
        results = ", ".join([self.new(v) for v in node.outputs])
        self.line(f"{results} = {attribute(node.op)}({inputs}) : {self.types(node.outputs)}{self.place(node)}{self.origin(node)}")

    def types(self, values: Sequence[Value]) -> str:
        return ", ".join(map(self.typed, values))

    def place(self, node: Node) -> str:
        at = f" at {quote(node.place.device)} {quote(node.place.unit)} {node.place.dtype.name}" if node.place != HOST else ""
        known = node.facts
        facts = f" facts ({known.batch}, {known.sequence}, {known.heads})" if known != Facts() else ""
        return at + (f" group {quote(node.group)}" if node.group else "") + facts

    def origin(self, node: Node) -> str:
        return f" from {' '.join(map(quote, node.origin))}" if node.origin else ""

"""The NodeReader over an onnx NodeProto."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import onnx

from flaot.errors import FlaotError, ModelError, UnsupportedError, printable
from flaot.frontend.folding import Emitter
from flaot.frontend.load import domain_of
from flaot.frontend.order import label, where
from flaot.frontend.scope import Missing, Scope
from flaot.frontend.tensors import Tensors, element_type
from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.types import DType, TensorType

T = TypeVar("T")
A = onnx.AttributeProto


class Skip(Exception):
    """The node reads something whose problem has been reported already."""


class OnnxNode:
    """One ONNX node in its scope; implements :class:`flaot.ir.reading.NodeReader`."""

    def __init__(self, proto: onnx.NodeProto, scope: Scope, graph: Graph, emitter: Emitter, tensors: Tensors) -> None:
        self._proto, self._scope, self._graph = proto, scope, graph
        self._emitter, self._tensors = emitter, tensors
        self.op_type = proto.op_type
        self._domain = domain_of(proto.domain)
        self.opset = scope.opsets.get(self._domain, 0)
        self.where = where(proto)
        self.origin: tuple[builtins.str, ...] = (scope.prefix + label(proto),)
        self.n_outputs = _trimmed(proto.output)
        self._n_inputs = _trimmed(proto.input)
        self._attributes = self._bound_attributes()
        self.results: tuple[Value | None, ...] | None = None
        self.declined = False

    def _bound_attributes(self) -> dict[str, A]:
        bound = {}
        for a in self._proto.attribute:
            if not isinstance(a.name, builtins.str):
                self.fail("the name of an attribute is not valid UTF-8")
            if a.name in bound:
                self.fail(f"attribute '{printable(a.name)}' is given twice")
            given = self._scope.attributes.get(a.ref_attr_name) if a.ref_attr_name else a
            if given is not None:
                bound[a.name] = given
        return bound

    def require_import(self) -> None:
        """Refuses a node whose domain the model does not import."""
        if self._domain not in self._scope.opsets:
            self.fail(f"domain '{printable(self._domain or 'ai.onnx')}' is not imported", "add it to the model's opset_import")

    # -- attributes ----------------------------------------------------------------------------------------------------

    def _attribute(self, name: builtins.str, kind: builtins.int, default: T | None, get: Callable[[A], T]) -> T:
        a = self._attributes.get(name)
        if a is None:
            if default is None:
                self.fail(f"attribute '{name}' is missing")
            return default
        if a.type not in (kind, A.UNDEFINED):
            self.fail(f"attribute '{name}' is of type {A.AttributeType.Name(a.type)}, expected {A.AttributeType.Name(kind)}")
        return get(a)

    def int(self, name: builtins.str, default: builtins.int | None = None) -> builtins.int:
        return self._attribute(name, A.INT, default, lambda a: int(a.i))

    def float(self, name: builtins.str, default: builtins.float | None = None) -> builtins.float:
        return self._attribute(name, A.FLOAT, default, lambda a: float(a.f))

    def str(self, name: builtins.str, default: builtins.str | None = None) -> builtins.str:
        return self._attribute(name, A.STRING, default, lambda a: a.s.decode("utf-8", "backslashreplace"))

    def ints(self, name: builtins.str, default: Sequence[builtins.int] | None = None) -> tuple[builtins.int, ...]:
        fixed = None if default is None else tuple(default)
        return self._attribute(name, A.INTS, fixed, lambda a: tuple(a.ints))

    def floats(self, name: builtins.str, default: Sequence[builtins.float] | None = None) -> tuple[builtins.float, ...]:
        fixed = None if default is None else tuple(default)
        return self._attribute(name, A.FLOATS, fixed, lambda a: tuple(a.floats))

    def strs(self, name: builtins.str, default: Sequence[builtins.str] | None = None) -> tuple[builtins.str, ...]:
        fixed = None if default is None else tuple(default)
        return self._attribute(name, A.STRINGS, fixed, lambda a: tuple(s.decode("utf-8", "backslashreplace") for s in a.strings))

    def array(self, name: builtins.str) -> np.ndarray | None:
        if name not in self._attributes:
            return None
        proto: onnx.TensorProto = self._attribute(name, A.TENSOR, None, lambda a: a.t)
        return self._here(lambda: self._tensors.array(proto))[0]

    def tensor(self, name: builtins.str) -> Value:
        """A tensor attribute as a constant."""
        proto: onnx.TensorProto = self._attribute(name, A.TENSOR, None, lambda a: a.t)
        data, dtype = self._here(lambda: self._tensors.array(proto))
        return self._graph.add_constant(data, dtype=dtype)

    def sparse(self, name: builtins.str) -> Value:
        """A sparse tensor attribute as a dense constant."""
        proto: onnx.SparseTensorProto = self._attribute(name, A.SPARSE_TENSOR, None, lambda a: a.sparse_tensor)
        data, dtype = self._here(lambda: self._tensors.sparse(proto))
        return self._graph.add_constant(data, dtype=dtype)

    def dtype(self, name: builtins.str, default: DType | None = None) -> DType:
        code = self.int(name, None if default is None else builtins.int(default))
        return self._here(lambda: element_type(code))

    def has(self, name: builtins.str) -> bool:
        return name in self._attributes

    def graph(self, name: builtins.str) -> Any:
        return self._attribute(name, A.GRAPH, None, lambda a: a.g)

    @property
    def attributes(self) -> dict[builtins.str, A]:
        return self._attributes

    def resolved(self) -> onnx.NodeProto:
        """The node with references to attributes of an enclosing function replaced by what they stand for."""
        node = onnx.NodeProto()
        node.CopyFrom(self._proto)
        del node.attribute[:]
        for name, bound in self._attributes.items():
            copy = node.attribute.add()
            copy.CopyFrom(bound)
            copy.name = name
        return node

    # -- inputs --------------------------------------------------------------------------------------------------------

    def n_inputs(self) -> builtins.int:
        return self._n_inputs

    def optional(self, index: builtins.int) -> Value | None:
        if index >= self._n_inputs or not self._proto.input[index]:
            return None
        name = self._proto.input[index]
        try:
            found = self._here(lambda: self._scope.find(name))
        except KeyError:
            self.fail(f"input '{printable(name)}' is produced by nothing")
        if isinstance(found, Missing):
            if found.reason is None:
                raise Skip
            self.unsupported(f"input '{printable(name)}': {found.reason}")
        return found

    def input(self, index: builtins.int) -> Value:
        value = self.optional(index)
        if value is None:
            self.fail(f"input {index} is missing")
        return value

    def all_inputs(self) -> list[Value | None]:
        return [self.optional(i) for i in range(self._n_inputs)]

    def type(self, index: builtins.int) -> TensorType:
        return self.input(index).type

    def constant(self, index: builtins.int, what: builtins.str) -> np.ndarray:
        value = self.input(index)
        if value.data is None:
            reason = self._emitter.unfolded.get(value.id)
            if reason is not None:
                self.unsupported(f"{what} (input {index}) cannot be computed at compile time: {reason}")
            self.unsupported(f"{what} (input {index}, '{printable(self._proto.input[index])}') depends on run-time data")
        return value.data

    def optional_constant(self, index: builtins.int, what: builtins.str) -> np.ndarray | None:
        return None if self.optional(index) is None else self.constant(index, what)

    # -- results -------------------------------------------------------------------------------------------------------

    def emit(self, op: Op, inputs: Sequence[Value | None]) -> Value:
        return self.emit_many(op, inputs)[0]

    def emit_many(self, op: Op, inputs: Sequence[Value | None]) -> tuple[Value, ...]:
        return self._emitter.emit(op, inputs, self.where, self.origin)

    def literal(self, data: np.ndarray) -> Value:
        self._emitter.check_constant(data.nbytes, self.where)
        return self._graph.add_constant(data)

    def reserve(self, elements: builtins.int) -> None:
        self._emitter.check_constant(elements, self.where)

    def result(self, *values: Value | None) -> None:
        self.results = values

    def decline(self) -> None:
        self.declined = True

    def fail(self, sentence: builtins.str, hint: builtins.str = "") -> NoReturn:
        raise ModelError(sentence, where=self.where, hint=hint)

    def unsupported(self, sentence: builtins.str, hint: builtins.str = "") -> NoReturn:
        raise UnsupportedError(sentence, where=self.where, hint=hint)

    def _here(self, get: Callable[[], T]) -> T:
        try:
            return get()
        except FlaotError as e:
            raise e.at(self.where) from None


def _trimmed(names: Sequence[str]) -> int:
    count = len(names)
    while count and not names[count - 1]:
        count -= 1
    return count

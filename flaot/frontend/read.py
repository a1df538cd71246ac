"""ONNX model to Graph: opset differences gone, attributes typed, every value with a dtype and a static shape.

Graphs of taken branches and bodies of functions are read in place, from an explicit stack, so depth costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx

from flaot.errors import FlaotError, InternalError, LimitError, ModelError, ProblemList, UnsupportedError, printable
from flaot.frontend import builtin
from flaot.frontend.expansion import expansion, has_expansion
from flaot.frontend.external import ExternalData
from flaot.frontend.folding import Emitter, Evaluate
from flaot.frontend.frozen import frozen_inputs
from flaot.frontend.functions import functions_of, key_of
from flaot.frontend.load import Source, domain_of, load, opsets
from flaot.frontend.node import OnnxNode, Skip
from flaot.frontend.order import ordered, reads, where
from flaot.frontend.scope import Entry, Missing, Scope
from flaot.frontend.shapes import Bindings, check_declared, empty_input_hint, input_types
from flaot.frontend.tensors import Tensors
from flaot.ir.graph import Graph, Value
from flaot.ir.op import READERS, OpTypeError, load_all
from flaot.ir.types import DType

T = TypeVar("T")

MAX_PROBLEMS = 20
"""Problems reported of one model."""


def read(
    model: Path | str | bytes | onnx.ModelProto,
    *,
    shapes: Bindings | None = None,
    evaluate: Evaluate | None = None,
    file: str | None = None,
) -> Graph:
    """The graph of a model.

    Args:
        model: a path, the bytes of a file, or a message; only a path gives access to external data.
        shapes: dimensions by input name, or one dimension by symbol.
        evaluate: runs an op on arrays; nodes whose inputs are all constant are then computed here.
        file: name of the model in messages; the path by default.
    Raises ModelError, UnsupportedError, UsageError, LimitError or FileSystemError; ProblemList for several.
    """
    name = file if file is not None else printable(model, 300) or "''" if isinstance(model, Path | str) else "<model>"
    try:
        source = load(model)
        with ExternalData(source.folder) as files:
            return _Import(source, Tensors(files), evaluate).run(shapes or {})
    except MemoryError:
        raise LimitError("out of memory while reading the model", where=name) from None
    except ProblemList as e:
        raise ProblemList([p.at(name) for p in e.problems]) from None
    except FlaotError as e:
        raise e.at(name) from e.__cause__


@dataclass
class _Frame:
    """A graph being read: its remaining nodes, its names, and what to do with its results."""

    nodes: Iterator[onnx.NodeProto]
    scope: Scope
    close: Callable[[Scope], None]


class _Import:
    def __init__(self, source: Source, tensors: Tensors, evaluate: Evaluate | None) -> None:
        load_all()
        self.model = source.model
        self.tensors = tensors
        self.graph = Graph(source.model.graph.name, source.digest)
        self.emitter = Emitter(self.graph, evaluate)
        self.functions = functions_of(source.model)
        self.problems: list[FlaotError] = []
        self.absent: Counter[tuple[str, str]] = Counter()
        self.first: dict[tuple[str, str], FlaotError] = {}
        self.declared = {v.name: v for v in source.model.graph.value_info}
        self.frames: list[_Frame] = []

    def run(self, bindings: Bindings) -> Graph:
        proto = self.model.graph
        scope = Scope(opsets(self.model.opset_import))
        self._initializers(proto, scope)
        self.graph.frozen = frozen_inputs(proto, self.tensors)
        inputs = [v for v in proto.input if v.name not in scope.pending]
        _no_twins("inputs", [v.name for v in inputs])
        for info, type in zip(inputs, input_types(inputs, bindings), strict=True):
            scope.names[info.name] = self.graph.add_input(info.name, type)
        if not proto.output:
            raise ModelError("the graph has no outputs")
        known = list(dict.fromkeys((*scope.names, *scope.pending)))
        nodes = ordered(proto.node, known, lambda name: False)
        self.live = _live(nodes, [o.name for o in proto.output])
        self.frames.append(_Frame(iter(nodes), scope, self._outputs))
        while self.frames:
            frame = self.frames[-1]
            node = next(frame.nodes, None)
            if node is None:
                self.frames.pop()
                frame.close(frame.scope)
            else:
                self._step(node, frame.scope)
        self._report()
        return self.graph

    def _initializers(self, proto: onnx.GraphProto, scope: Scope) -> None:
        for tensor in proto.initializer:
            if tensor.name in scope.pending:
                raise ModelError(f"two initializers are named '{printable(tensor.name)}'")
            self.tensors.describe(tensor)
            scope.pending[tensor.name] = partial(self._constant, tensor.name if scope.is_main else "", self.tensors.array, tensor)
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            if name in scope.pending:
                raise ModelError(f"two initializers are named '{printable(name)}'")
            scope.pending[name] = partial(self._constant, name if scope.is_main else "", self.tensors.sparse, sparse)

    def _constant(self, name: str, convert: Callable[[T], tuple[np.ndarray, DType]], proto: T) -> Value:
        data, dtype = convert(proto)
        self.emitter.allow(data.nbytes)
        return self.graph.add_constant(data, name, dtype=dtype)

    # -- one node ------------------------------------------------------------------------------------------------------

    def _step(self, proto: onnx.NodeProto, scope: Scope) -> None:
        try:
            node = OnnxNode(proto, scope, self.graph, self.emitter, self.tensors)
            self._read(node, proto, scope)
            return
        except Skip:
            pass
        except OpTypeError as e:
            self.problems.append(ModelError(str(e), where=where(proto)))
        except UnsupportedError as e:
            # What no output needs cannot stop the model, unless it is malformed.
            if not scope.is_main or id(proto) in self.live:
                self.problems.append(e)
        except ModelError as e:
            self.problems.append(e)
        except MemoryError:
            raise LimitError("out of memory", where=where(proto)) from None
        except FlaotError:
            raise
        except Exception as e:
            raise InternalError(f"reading fails with {type(e).__name__}: {e}", where=where(proto)) from e
        for name in proto.output:
            scope.names[name] = Missing()

    def _read(self, node: OnnxNode, proto: onnx.NodeProto, scope: Scope) -> None:
        function = self.functions.get(key_of(proto))
        if function is not None:
            self._call(node, proto, function, scope)
            return
        domain = domain_of(proto.domain)
        reader = READERS.get((domain, proto.op_type)) or builtin.READERS.get((domain, proto.op_type))
        if reader is None and domain == "" and not onnx.defs.has(proto.op_type):
            reader = READERS.get(("com.microsoft", proto.op_type))
        if proto.op_type == "If" and domain == "" and reader is None:
            self._branch(node, proto, scope)
            return
        if reader is not None:
            node.require_import()
            reader(node)
        if (reader is None or node.declined) and has_expansion(proto, node.opset):
            known = expansion(node.resolved(), [v.type if v is not None else None for v in node.all_inputs()], node.opset)
            if known is not None:
                self._call(node, proto, known, scope)
                return
        if reader is None or node.declined:
            self._no_reader(proto, domain, id(proto) in self.live or not scope.is_main)
            raise Skip
        if node.results is None:
            raise InternalError("the reader of this operator declares no result", where=node.where)
        self._name_outputs(proto, scope, node.results, node.where)

    def _name_outputs(
        self, proto: onnx.NodeProto, scope: Scope, results: tuple[Entry, ...], where: str
    ) -> None:
        for slot, name in enumerate(proto.output):
            if not name:
                continue
            value = results[slot] if slot < len(results) else None
            if value is None:
                value = Missing(f"output {slot} of {where} is not supported")
            elif isinstance(value, Value) and scope.is_main:
                if name in self.declared:
                    check_declared(self.declared[name], value.type, "value")
                if name not in value.names:
                    value.names = (*value.names, name)
            scope.names[name] = value

    def _no_reader(self, proto: onnx.NodeProto, domain: str, needed: bool) -> None:
        key = (domain, proto.op_type)
        if onnx.defs.has(proto.op_type, domain=domain):
            if needed:
                self.absent[key] += 1
                self.first.setdefault(key, UnsupportedError(f"operator {_shown(key)} is not supported", where=where(proto)))
            return
        self.absent[key] += 1
        self.first.setdefault(key, ModelError(f"operator {_shown(key)} is not known", where=where(proto)))

    # -- graphs read in place ------------------------------------------------------------------------------------------

    def _branch(self, node: OnnxNode, proto: onnx.NodeProto, scope: Scope) -> None:
        condition = node.input(0).data
        if condition is None:
            node.unsupported("the condition depends on run-time data; only If with a constant condition is supported")
        if condition.size != 1 or condition.dtype != np.bool_:
            node.fail(f"the condition is {node.type(0)}, expected one bool")
        branch: onnx.GraphProto = node.graph("then_branch" if condition.reshape(())[()] else "else_branch")
        if len(branch.output) < node.n_outputs:
            node.fail(f"the branch has {len(branch.output)} outputs, the node {node.n_outputs}")
        inner = Scope(scope.opsets, scope, scope.attributes, node.origin[0] + "/")
        self._initializers(branch, inner)
        nodes = ordered(branch.node, inner.pending, inner.defines)
        self._enter(nodes, inner, [o.name for o in branch.output], node, proto, scope)

    def _call(self, node: OnnxNode, proto: onnx.NodeProto, function: onnx.FunctionProto, scope: Scope) -> None:
        if node.n_inputs() > len(function.input) or node.n_outputs > len(function.output):
            node.fail(
                f"{node.n_inputs()} inputs and {node.n_outputs} outputs; the function has {len(function.input)} and {len(function.output)}"
            )
        attributes = {a.name: a for a in function.attribute_proto} | node.attributes
        inner = Scope(opsets(function.opset_import), None, attributes, node.origin[0] + "/")
        for index, name in enumerate(function.input):
            inner.names[name] = node.optional(index)
        nodes = ordered(function.node, inner.names, lambda name: False)
        self._enter(nodes, inner, list(function.output), node, proto, scope)

    def _enter(
        self, nodes: list[onnx.NodeProto], inner: Scope, results: list[str], node: OnnxNode, proto: onnx.NodeProto, outer: Scope
    ) -> None:
        def close(done: Scope) -> None:
            used = zip(results, proto.output, strict=False)
            values = tuple(_result(done, inside, node.where) if outside else None for inside, outside in used)
            self._name_outputs(proto, outer, values, node.where)

        self.frames.append(_Frame(iter(nodes), inner, close))

    # -- results -------------------------------------------------------------------------------------------------------

    def _outputs(self, scope: Scope) -> None:
        _no_twins("outputs", [o.name for o in self.model.graph.output])
        for info in self.model.graph.output:
            shown = printable(info.name)
            try:
                value = scope.find(info.name)
            except KeyError:
                raise ModelError(f"graph output '{shown}' is produced by nothing") from None
            if isinstance(value, Missing):
                if value.reason is not None:
                    self.problems.append(UnsupportedError(f"graph output '{shown}': {value.reason}"))
                continue
            assert value is not None
            try:
                check_declared(info, value.type, "output")
            except FlaotError as e:
                self.problems.append(e)
            self.graph.set_output(info.name, value)

    def _report(self) -> None:
        for key, error in self.first.items():
            more = self.absent[key] - 1
            if more:
                error.what += f" (nor in {more} more node{'s' if more > 1 else ''})"
            self.problems.append(error)
        problems = sorted(self.problems, key=lambda e: e.exit_code)
        if problems:
            problems[-1].hint = problems[-1].hint or empty_input_hint({v.name: v.type for v in self.graph.inputs})
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise ProblemList(problems[:MAX_PROBLEMS])


def _no_twins(what: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ModelError(f"two graph {what} are named '{printable(name)}'")


def _result(scope: Scope, name: str, where: str) -> Entry:
    try:
        return scope.find(name)
    except KeyError:
        raise ModelError(f"its output '{printable(name)}' is produced by nothing", where=where) from None


def _shown(key: tuple[str, str]) -> str:
    return printable(f"{key[0]}:{key[1]}" if key[0] else key[1])


def _live(nodes: list[onnx.NodeProto], outputs: list[str]) -> set[int]:
    """Ids of the nodes some graph output needs; ``nodes`` are in order."""
    wanted, live = set(outputs), set()
    for node in reversed(nodes):
        if any(o in wanted for o in node.output):
            live.add(id(node))
            wanted.update(reads(node))
    return live



"""ONNX operators flaot has no op for, but whose meaning ONNX itself states as a function of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import defs, helper

from flaot.frontend.load import domain_of
from flaot.ir.types import TensorType


def has_expansion(node: onnx.NodeProto, opset: int) -> bool:
    """Whether ONNX states the operator as a function, perhaps only for some inputs."""
    schema = _schema(node, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _schema(node: onnx.NodeProto, opset: int) -> Any:
    try:
        return defs.get_schema(node.op_type, opset, domain_of(node.domain))
    except defs.SchemaError:
        return None


def expansion(node: onnx.NodeProto, types: Sequence[TensorType | None], opset: int) -> onnx.FunctionProto | None:
    """The function body ONNX defines for a node with inputs of these types; None when it defines none."""
    schema = _schema(node, opset)
    if schema is None:
        return None
    if schema.has_function:
        return _usable(schema, schema.function_body)
    if not schema.has_context_dependent_function:
        return None
    wanted = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if not wanted:
        return None
    protos = [_type_proto(t).SerializeToString() for t in types]
    try:
        body = schema.get_context_dependent_function_with_opset_version(max(wanted), node.SerializeToString(), protos)
    except Exception:  # onnx throws many kinds at nodes it cannot make sense of
        return None
    return _usable(schema, onnx.FunctionProto.FromString(body)) if body else None


def _usable(schema: Any, body: onnx.FunctionProto) -> onnx.FunctionProto | None:
    """The body with the schema's attribute defaults; None when it is empty."""
    if not body.node:
        return None
    given = {a.name for a in body.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            body.attribute_proto.append(attribute.default_value)
    return body


def _type_proto(type: TensorType | None) -> onnx.TypeProto:
    return onnx.TypeProto() if type is None else helper.make_tensor_type_proto(int(type.dtype), type.shape)

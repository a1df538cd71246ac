"""ONNX attributes and inputs of IR nodes, by the names descriptors use in conditions."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flaot.ir.graph import Node
from flaot.ir.op import Op
from flaot.ir.ops.activations import Gelu, GeluTanh
from flaot.ir.ops.attention import Attention
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.ops.pad import Pad
from flaot.ir.ops.roi_align import RoiAlign

FIELDS = {
    "kernel_shape": "kernel", "ceil_mode": "ceil", "storage_order": "column_major", "transA": "trans_a", "transB": "trans_b",
    "num_groups": "groups", "is_causal": "causal", "min": "low", "max": "high", "hidden_size": "hidden", "padding_mode": "padding",
    "coordinate_transformation_mode": "coordinates", "nearest_mode": "nearest", "cubic_coeff_a": "cubic_a",
    "extrapolation_value": "extrapolation", "output_height": "height", "output_width": "width", "sampling_ratio": "sampling",
    "spatial_scale": "scale", "select_last_index": "last", "detect_negative": "negative", "detect_positive": "positive",
}
"""ONNX attribute -> field of the IR op, where the names differ."""

AXES = ("axis", "axes")
"""Attributes that count dimensions: -1 is the last one."""


def _weights(node: Node) -> tuple[int, ...] | None:
    return node.inputs[1].type.shape[2:] if node.inputs[1] is not None else None


def _heads(slot: int) -> Callable[[Node], int | None]:
    def heads(node: Node) -> int | None:
        value = node.inputs[slot]
        return value.type.shape[1] if value is not None and value.type.rank > 1 else None

    return heads


def _pads(node: Node) -> tuple[int, ...]:
    assert isinstance(node.op, Pad)
    return (*node.op.before, *node.op.after)


COMPUTED: Mapping[type[Op], Mapping[str, Callable[[Node], Any]]] = {
    Attention: {"num_heads": _heads(0), "q_num_heads": _heads(0), "kv_num_heads": _heads(1)},
    Conv: {"kernel_shape": _weights},
    ConvTranspose: {"kernel_shape": _weights},
    Gelu: {"approximate": lambda node: "none"},
    GeluTanh: {"approximate": lambda node: "tanh"},
    Pad: {"pads": _pads},
    RoiAlign: {"mode": lambda node: "max" if getattr(node.op, "maximum", False) else "avg"},
}
"""Attributes that no field holds, by op."""

_INPUTS = {
    "Attention": ("q", "k", "v", "attn_mask"),
    "BatchNormalization": ("x", "scale", "b", "input_mean", "input_var"),
    "Conv": ("x", "w", "b"), "FusedConv": ("x", "w", "b"), "ConvTranspose": ("x", "w", "b"), "ConvInteger": ("x", "w"),
    "Gather": ("data", "indices"), "GatherElements": ("data", "indices"), "GatherND": ("data", "indices"),
    "Gemm": ("a", "b", "c"), "FusedMatMul": ("a", "b", "c"),
    "GroupNormalization": ("x", "scale", "bias"), "InstanceNormalization": ("input", "scale", "b"),
    "LayerNormalization": ("x", "scale", "b"), "RMSNormalization": ("x", "scale"),
    "PRelu": ("x", "slope"),
    "ScatterElements": ("data", "indices", "updates"), "ScatterND": ("data", "indices", "updates"),
    "Where": ("condition", "x", "y"),
}
"""Inputs in order by their ONNX names in lower case, by IR op."""

_ANY_INPUTS = {"x": 0, "a": 0, "input": 0, "data": 0, "b": 1, "y": 1}
"""Positions in ops that are not listed."""


def attribute_names(op: type[Op]) -> list[str]:
    """ONNX attributes of an IR op that conditions can be about."""
    fields = {f.name for f in dataclasses.fields(op)}
    onnx = {n for n, f in FIELDS.items() if f in fields}
    return sorted((fields - {FIELDS[n] for n in onnx}) | onnx | set(_computed(op)))


def attribute_of(node: Node, name: str) -> Any:
    """The value of an ONNX attribute of a node: number, text, or tuple of these; None when the op has no such attribute."""
    made = _computed(type(node.op)).get(name)
    if made is not None:
        return made(node)
    field = FIELDS.get(name, name)
    value = getattr(node.op, field) if field in {f.name for f in dataclasses.fields(node.op)} else None
    return value.name if isinstance(value, enum.Enum) else value


def _computed(op: type[Op]) -> dict[str, Callable[[Node], Any]]:
    return {name: made for cls in op.__mro__ for name, made in COMPUTED.get(cls, {}).items()}


def input_slot(op: type[Op], name: str) -> int | None:
    """The position of an input by its ONNX name (X, W, B, ...) or as ``input_2``; None for a name the op does not know."""
    if name.startswith("input_") and name[6:].isdigit():
        return int(name[6:])
    known = _INPUTS.get(op.__name__)
    if known is None:
        return _ANY_INPUTS.get(name.lower())
    return known.index(name.lower()) if name.lower() in known else None


def spellings(node: Node, attribute: str, entry: Any) -> Iterator[Any]:
    """Values under which a condition may list an entry: an axis counts from the front or from the back."""
    yield entry
    if attribute in AXES and isinstance(entry, int) and node.inputs and node.inputs[0] is not None:
        yield entry - node.inputs[0].type.rank

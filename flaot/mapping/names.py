"""ONNX names of IR ops, and ONNX attributes of IR nodes: what descriptors and command lines speak of."""

from __future__ import annotations

import dataclasses
from typing import Any

from flaot.ir.graph import Node
from flaot.ir.op import OPS, READERS, Op, load_all
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.conv_transpose import ConvTranspose

ALIASES = {
    "Silu": "Swish", "GeluTanh": "Gelu", "Fmod": "Mod", "ShiftLeft": "BitShift", "ShiftRight": "BitShift", "FusedConv": "Conv",
    "FusedMatMul": "MatMul",
}
"""IR op -> ONNX operator, where the names differ."""

INTERNAL = frozenset({"FusedConv", "FusedMatMul", "FusedMap", "Recast", "Relayout", "Transfer"})
"""IR ops that come about while compiling."""

READ_AS = {
    "Flatten": ("Reshape",), "Squeeze": ("Reshape",), "Unsqueeze": ("Reshape",), "GlobalAveragePool": ("AveragePool",),
    "GlobalMaxPool": ("MaxPool",), "GlobalLpPool": ("LpPool",), "DepthToSpace": ("Reshape", "Transpose"),
    "SpaceToDepth": ("Reshape", "Transpose"), "CastLike": ("Cast",), "Sum": ("Add",), "Mean": ("Add", "Mul"), "Greater": ("Less",),
    "GreaterOrEqual": ("LessOrEqual",), "Tile": ("Expand", "Reshape"), "Trilu": ("Where",), "Upsample": ("Resize",),
    "Scatter": ("ScatterElements",), "OneHot": ("Equal", "Where"), "ReverseSequence": ("Gather",), "AffineGrid": ("MatMul",),
}
"""ONNX operators that reading turns into others."""

_ATTRIBUTES = {
    "kernel_shape": "kernel", "ceil_mode": "ceil", "num_heads": "heads", "q_num_heads": "q_heads", "kv_num_heads": "kv_heads",
    "is_causal": "causal", "transA": "trans_a", "transB": "trans_b", "num_groups": "groups", "perm": "perm",
}
"""ONNX attribute -> field of the IR op, where the names differ."""

_INPUTS = {
    "X": 0, "x": 0, "A": 0, "input": 0, "data": 0, "Q": 0, "W": 1, "B": 1, "K": 1, "weight": 1, "weights": 1, "scale": 1, "indices": 1,
    "bias": 2, "C": 2, "V": 2,
}
"""Names of inputs in the ONNX text, by position; input_0, input_1, ... name any."""


def onnx_name(op: Op | type[Op]) -> str:
    """The ONNX operator an IR op is, as descriptors name it."""
    name = op.__name__ if isinstance(op, type) else op.name
    return ALIASES.get(name, name)


def names_of(op: Op) -> tuple[str, ...]:
    """Every name under which a descriptor may list the op, the op's own first."""
    return tuple(dict.fromkeys((op.name, onnx_name(op))))


def known_operators() -> list[str]:
    """Every operator name a descriptor or a command line may use."""
    load_all()
    return sorted({n for n in OPS if n not in INTERNAL} | set(ALIASES.values()) | {n for _, n in READERS})


def attribute_of(node: Node, name: str) -> Any:
    """The value of an ONNX attribute of a node: number, text, or tuple of numbers; None when the op has no such attribute."""
    if name == "kernel_shape" and isinstance(node.op, Conv | ConvTranspose):
        weights = node.inputs[1]
        return weights.type.shape[2:] if weights is not None else None
    field = _ATTRIBUTES.get(name, name)
    if field in {f.name for f in dataclasses.fields(node.op)}:
        return getattr(node.op, field)
    return getattr(node.op, field, None)


def input_of(node: Node, name: str) -> int | None:
    """The position of an input by its ONNX name (X, W, B, ...) or as ``input_2``; None when the node has no such input."""
    slot = int(name[6:]) if name.startswith("input_") and name[6:].isdigit() else _INPUTS.get(name)
    return slot if slot is not None and slot < len(node.inputs) and node.inputs[slot] is not None else None

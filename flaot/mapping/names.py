"""ONNX names of IR ops: what descriptors and command lines speak of."""

from __future__ import annotations

from flaot.ir.op import OPS, READERS, Op, load_all

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
    "SpaceToDepth": ("Reshape", "Transpose"), "CastLike": ("Cast",), "Sum": ("Add",), "Mean": ("Add", "Div"), "Greater": ("Less",),
    "GreaterOrEqual": ("LessOrEqual",), "Tile": ("Expand", "Reshape"), "Trilu": ("Where",), "Upsample": ("Resize",),
    "BatchNormalization": ("Mul", "Add"),
    "Scatter": ("ScatterElements",), "OneHot": ("Add", "Equal", "Less", "Reshape", "Where"), "ReverseSequence": ("GatherElements",),
    "AffineGrid": ("MatMul", "Reshape", "Transpose"),
}
"""ONNX operators that reading turns into others."""

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


def ops_named(name: str) -> list[type[Op]]:
    """IR ops an ONNX operator may become, those of its own name and of its aliases."""
    load_all()
    names = [name, *(n for n, onnx in ALIASES.items() if onnx == name and n not in INTERNAL)]
    return [OPS[n] for n in dict.fromkeys(names) if n in OPS]

"""Fusions as patterns over the IR: those a descriptor lists, or the documented table of its unit kinds when it lists none.

The model that patterns are matched with has been canonicalized, so a pattern is also taken in the form that is left of it: a
BatchNormalization and an Add of a constant after a product are in the product's weights and bias, and x * Sigmoid(x) is Swish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flaot.hcd import Hcd
from flaot.hcd.operators import Fusion, Predicate
from flaot.hcd.rules import active_units, kind_of
from flaot.mapping.names import READ_AS

COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"})
"""IR ops whose two inputs may be exchanged."""

PRODUCT_KINDS = ("fp16", "bf16", "fp32")
CHAIN_KINDS = (*PRODUCT_KINDS, "vector")
"""Kinds of compute units for which the table below holds."""

ANY_PRODUCT = ("Conv", "ConvTranspose", "MatMul", "Gemm")
MATRIX = ("MatMul", "Gemm")
ACTIVATIONS = ("Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSigmoid", "Tanh", "Gelu", "Swish", "HardSwish")


TREES = {"elementwise": (2, 8), "long_elementwise": (3, 24)}
"""Fusions of element-wise ops: level and most ops."""


@dataclass(frozen=True)
class Part:
    """One op of a pattern: ``ops`` are the operators it may be, ``inputs`` ids of earlier parts or names of values from outside."""

    id: str
    ops: tuple[str, ...]
    inputs: tuple[str, ...]
    requires: tuple[Predicate, ...] = ()

    def accepts(self, names: Sequence[str]) -> bool:
        """Whether an IR op known by these names is meant."""
        return any(n in names for op in self.ops for n in (op, *(READ_AS[op] if len(READ_AS.get(op, ())) == 1 else ())))

    @property
    def commutative(self) -> bool:
        return len(self.inputs) == 2 and any(op in COMMUTATIVE for op in self.ops)


@dataclass(frozen=True)
class Pattern:
    """A fusion: the parts in order, the last one gives the result. ``origin`` is its line, ``units`` where it holds (empty: anywhere).

    Without parts it stands for a tree of at most ``longest`` element-wise ops.
    """

    name: str
    level: int
    origin: str
    parts: tuple[Part, ...] = ()
    units: frozenset[str] = frozenset()
    longest: int = 0

    @property
    def summary(self) -> str:
        """``Conv -> Add -> Relu``; one of many activations is said in a word."""
        if not self.parts:
            return f"up to {self.longest} element-wise operators"
        return " -> ".join("|".join(p.ops) if len(p.ops) < 5 else "activation" for p in self.parts)

    def holds(self, chain: Sequence[str]) -> bool:
        """Whether operators of these names stand in this order somewhere in the pattern."""
        size = len(chain)
        windows = (self.parts[i : i + size] for i in range(len(self.parts) - size + 1))
        return any(all(p.accepts((name,)) for p, name in zip(w, chain, strict=True)) for w in windows)


def patterns(hcd: Hcd) -> list[Pattern]:
    """Every fusion of a chip, the largest first, those of one size as listed."""
    if hcd.full.fusions is not None:
        found = [p for i, fusion in enumerate(hcd.full.fusions) for p in _listed(fusion, hcd.origin("fusions", i))]
    else:
        found = _table(hcd)
    return sorted(found, key=lambda p: -len(p.parts))


def _listed(fusion: Fusion, origin: str) -> list[Pattern]:
    parts = tuple(Part(n.id, (n.op.rpartition(":")[2],), n.inputs, n.requires or ()) for n in fusion.pattern)
    left = _folded(_gated(parts))
    forms = [f for f in dict.fromkeys((parts, left)) if len(f) > 1]
    return [Pattern(fusion.name, fusion.level, origin, form) for form in forms]


def _folded(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Without what canonicalizing takes into a product."""
    kept: list[Part] = []
    into: dict[str, str] = {}
    for part in parts:
        inputs = tuple(into.get(n, n) for n in part.inputs)
        source = next((k for k in kept if k.id in inputs), None)
        shift = part.ops == ("Add",) and any(p.constant and p.input is not None and p.when is None for p in part.requires)
        if source is not None and source.ops[0] in ANY_PRODUCT and (shift or part.ops == ("BatchNormalization",)):
            into[part.id] = source.id
            if source.ops == ("MatMul",):
                kept[kept.index(source)] = replace(source, ops=("Gemm",))
        else:
            kept.append(replace(part, inputs=inputs))
    return tuple(kept)


def _gated(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """With Swish and HardSwish for x * Sigmoid(x) and x * HardSigmoid(x)."""
    names = {"Sigmoid": "Swish", "HardSigmoid": "HardSwish"}
    kept = list(parts)
    for gate in parts:
        readers = [p for p in kept if gate.id in p.inputs]
        if gate.ops[0] not in names or gate.requires or len(readers) != 1 or readers[0].ops != ("Mul",):
            continue
        (product,) = readers
        if sorted(product.inputs) == sorted((gate.id, gate.inputs[0])):
            kept[kept.index(product)] = Part(product.id, (names[gate.ops[0]],), (gate.inputs[0],), product.requires)
            kept.remove(gate)
    return tuple(kept)


def _table(hcd: Hcd) -> list[Pattern]:
    """What units of the known kinds fuse when the descriptor has no ``fusions``."""
    units = active_units(hcd.full)
    products, chains = (frozenset(n for n, u in units.items() if kind_of(n, u) in kinds) for kinds in (PRODUCT_KINDS, CHAIN_KINDS))
    origin = hcd.origin("compute_units")
    constant = (Predicate(input="input_1", constant=True),)
    bias, act = Part("b", ("Add",), ("p", "bias"), constant), Part("a", ACTIVATIONS, ("p",))
    matrix, product = Part("p", MATRIX, ("x", "w")), Part("p", ANY_PRODUCT, ("x", "w"))
    scale, residual = Part("s", ("Mul", "Div"), ("p", "scale"), constant), Part("r", ("Add",), ("p", "residual"))

    def then(part: Part, id: str) -> Part:
        return replace(part, inputs=(id, *part.inputs[1:]))

    rows: list[tuple[str, int, tuple[Part, ...]]] = [
        ("product_bias", 1, (matrix, bias)),
        ("product_activation", 1, (product, act)),
        ("product_slopes", 1, (Part("p", ("Conv",), ("x", "w")), Part("a", ("PRelu",), ("p", "slopes"), constant))),
        ("product_bias_activation", 1, (matrix, bias, then(act, "b"))),
        ("product_residual", 2, (product, residual)),
        ("product_residual_activation", 2, (product, residual, then(act, "r"))),
        ("product_bias_residual", 2, (matrix, bias, then(residual, "b"))),
        ("product_bias_residual_activation", 2, (matrix, bias, then(residual, "b"), then(act, "r"))),
        ("product_scale", 2, (matrix, scale)),
        ("product_scale_sum", 2, (matrix, scale, then(residual, "s"))),
    ]
    found = [Pattern(name, level, origin, parts, products) for name, level, parts in rows] if products else []
    chain = [Pattern(name, level, origin, (), chains, size) for name, (level, size) in TREES.items()]
    return found + (chain if chains else [])

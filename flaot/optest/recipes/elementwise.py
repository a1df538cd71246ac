"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from flaot.ir.types import DType
from flaot.mapping.capability import SIGNIFICAND
from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe
from flaot.optest.recipes.shapes import shapes


@dataclass(frozen=True)
class Domain:
    """Values an operator is tried on: ``keeps`` says that results are of the size of the operand, whatever that is, ``flat`` that large
    operands do no harm."""

    low: float = -4.0
    high: float = 4.0
    step: float = 0.0
    keeps: bool = False
    flat: bool = False
    opset: int = 18


UNARY = {
    "Abs": Domain(keeps=True), "Acos": Domain(-0.99, 0.99), "Acosh": Domain(1.01, 50), "Asin": Domain(-0.99, 0.99), "Asinh": Domain(),
    "Atan": Domain(flat=True), "Atanh": Domain(-0.95, 0.95), "Ceil": Domain(step=0.25, keeps=True), "Celu": Domain(), "Cos": Domain(),
    "Cosh": Domain(), "Elu": Domain(), "Erf": Domain(flat=True), "Exp": Domain(), "Floor": Domain(step=0.25, keeps=True),
    "Gelu": Domain(opset=20), "HardSigmoid": Domain(flat=True), "HardSwish": Domain(), "LeakyRelu": Domain(keeps=True),
    "Log": Domain(0.1, 50), "Mish": Domain(), "Neg": Domain(keeps=True), "Reciprocal": Domain(0.25, 8), "Relu": Domain(keeps=True),
    "Round": Domain(step=0.25, keeps=True), "Selu": Domain(), "Shrink": Domain(step=0.25), "Sigmoid": Domain(flat=True),
    "Sign": Domain(step=0.25, keeps=True), "Sin": Domain(), "Sinh": Domain(), "Softplus": Domain(), "Softsign": Domain(flat=True),
    "Sqrt": Domain(0, 50), "Swish": Domain(opset=24), "Tan": Domain(-1.2, 1.2), "Tanh": Domain(flat=True),
    "ThresholdedRelu": Domain(step=0.25),
}  # fmt: skip
BINARY = {
    "Add": Domain(keeps=True), "Sub": Domain(keeps=True), "Mul": Domain(), "Div": Domain(0.5, 4), "Max": Domain(keeps=True),
    "Min": Domain(keeps=True), "Mod": Domain(0.5, 8, 0.5), "Pow": Domain(0.5, 3), "Sum": Domain(keeps=True), "Mean": Domain(keeps=True),
    "PRelu": Domain(keeps=True),
}  # fmt: skip
ATTRIBUTES: dict[str, dict[str, Any]] = {"Mod": {"fmod": 1}}


@recipe(*UNARY)
def unary(op: str, limits: Limits) -> Iterator[Case]:
    """One operand of every shape; values of every size."""
    d = UNARY[op]
    for s in shapes(op, limits):
        yield Case(s.name, op, (Tensor(s.dims, d.low, d.high, step=d.step),), opset=d.opset, layout=s.layout, slow=s.slow)
    for name, stored, values in values_for(d, limits):
        yield Case(f"precision/{name}", op, (Tensor((len(values),), values=values),), opset=d.opset, stored=stored)


@recipe(*BINARY)
def binary(op: str, limits: Limits) -> Iterator[Case]:
    """Two operands of one shape, of shapes that are stretched, and one that is constant."""
    d = BINARY[op]
    base = Case("", op, (), ATTRIBUTES.get(op, {}))
    for s in shapes(op, limits):
        x = Tensor(s.dims, d.low, d.high, step=d.step)
        y = x if op != "PRelu" else Tensor((s.dims[1], *(1,) * (len(s.dims) - 2)) if len(s.dims) > 1 else s.dims, 0, 1)
        yield replace(base, name=s.name, inputs=(x, y), layout=s.layout, slow=s.slow)
    x = Tensor((3, 1, 5), d.low, d.high, step=d.step)
    if op != "PRelu":
        yield replace(base, name="boundary/both_stretched", inputs=(x, replace(x, shape=(1, 4, 5))))
        yield replace(base, name="boundary/scalar", inputs=(x, replace(x, shape=())))
        for rank in (limits.max_rank,):
            a, b = (2, 1) * rank, (1, 3) * rank
            yield replace(base, name=f"boundary/stretched_rank_{rank}", inputs=(replace(x, shape=a[:rank]), replace(x, shape=b[:rank])))
    yield replace(base, name="typical/constant", inputs=(x, replace(x, shape=(5,), constant=True)))
    for name, stored, values in values_for(d, limits):
        one = Tensor((len(values),), values=values)
        other = replace(one, values=tuple(reversed(values)) if name.startswith(("significand", "ties")) else (1.0,))
        other = replace(one, values=(0.5,)) if op == "PRelu" else other
        if op == "Add" or not name.startswith("denormal"):
            yield replace(base, name=f"precision/{name}", inputs=(one, other), stored=stored)


def values_for(d: Domain, limits: Limits) -> Iterator[tuple[str, str, tuple[float, ...]]]:
    """Name, element type and values: every bit of the significand, halves, large, small and denormal ones."""
    for stored in limits.floats:
        dtype = DType[stored]
        eps = 2.0 ** (1 - SIGNIFICAND[dtype])
        top, low = (15, -14) if dtype is DType.float16 else (100, -100)
        label = stored if len(limits.floats) > 1 else "values"
        if d.step:
            yield f"ties_{label}", stored, tuple(k * 0.5 for k in range(1 if d.low > 0 else -9, 10))
        else:
            begin = d.high / 2 if d.high < 1 else 1.0 if d.low < 1 else d.low
            scale = d.high / 2 if d.high < 1 else 1.0
            count = min(1 << (SIGNIFICAND[dtype] - 1), 128)
            stride = (1 << (SIGNIFICAND[dtype] - 1)) // count
            odd = [begin + scale * eps * min(k * stride + 1, (1 << (SIGNIFICAND[dtype] - 1)) - 1) for k in range(count)]
            yield f"significand_{label}", stored, tuple(v for v in odd if d.low <= v <= d.high)
        if d.keeps or d.flat:
            signs = (1, -1) if d.low < 0 else (1,)
            yield f"large_{label}", stored, tuple(s * 1.5 * 2.0 ** (top - k) for k in range(1, 8) for s in signs)
        if d.keeps and not d.step:
            yield f"small_{label}", stored, tuple(1.25 * 2.0 ** (low + k) for k in range(6))
            if not limits.flush and dtype is DType.float16:
                yield f"denormal_{label}", stored, tuple(k * 2.0**-24 for k in range(1, 64))


@recipe("Clip")
def clip(op: str, limits: Limits) -> Iterator[Case]:
    """Both bounds, one of them, and every shape."""
    low, high, zero, six = (Tensor((), values=(v,), constant=True) for v in (-1.0, 1.5, 0.0, 6.0))
    for s in shapes(op, limits):
        yield Case(s.name, op, (Tensor(s.dims), low, high), layout=s.layout, slow=s.slow)
    yield Case("typical/relu6", op, (Tensor((2, 9), -9, 9), zero, six))
    yield Case("boundary/upper_alone", op, (Tensor((2, 9)), None, high))


@recipe("Where")
def where(op: str, limits: Limits) -> Iterator[Case]:
    """A condition given at run time, and a constant one."""
    for s in shapes(op, limits):
        yield Case(s.name, op, (Tensor(s.dims, 0, 2, "bool"), Tensor(s.dims), Tensor(s.dims)), layout=s.layout, slow=s.slow)
    yield Case("typical/mask", op, (Tensor((1, 6, 6), 0, 2, "bool", constant=True), Tensor((2, 6, 6)), Tensor((), constant=True)))


@recipe("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def comparison(op: str, limits: Limits) -> Iterator[Case]:
    """Values that are often equal."""
    for s in shapes(op, limits):
        x = Tensor(s.dims, step=0.5)
        yield Case(s.name, op, (x, x), layout=s.layout, slow=s.slow)


@recipe("And", "Or", "Xor")
def logical(op: str, limits: Limits) -> Iterator[Case]:
    """Booleans of every shape."""
    for s in shapes(op, limits):
        yield Case(s.name, op, (Tensor(s.dims, 0, 2, "bool"), Tensor(s.dims, 0, 2, "bool")), layout=s.layout, slow=s.slow)


@recipe("Not")
def negation(op: str, limits: Limits) -> Iterator[Case]:
    """The same of one operand."""
    for s in shapes(op, limits):
        yield Case(s.name, op, (Tensor(s.dims, 0, 2, "bool"),), layout=s.layout, slow=s.slow)


@recipe("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift")
def bits(op: str, limits: Limits) -> Iterator[Case]:
    """Bytes; shifts stay below their width."""
    shift = op == "BitShift"
    for s in shapes(op, limits):
        y = Tensor(s.dims, 0, 7 if shift else 255, "uint8")
        attributes = {"direction": "LEFT"} if shift else {}
        yield Case(s.name, op, (Tensor(s.dims, 0, 255, "uint8"), y), attributes, layout=s.layout, slow=s.slow)


@recipe("BitwiseNot")
def inversion(op: str, limits: Limits) -> Iterator[Case]:
    """Bytes."""
    for s in shapes(op, limits):
        yield Case(s.name, op, (Tensor(s.dims, 0, 255, "uint8"),), layout=s.layout, slow=s.slow)


@recipe("IsNaN", "IsInf")
def tests(op: str, limits: Limits) -> Iterator[Case]:
    """NaN and infinities among numbers."""
    special = (0.0, float("nan"), 1.0, float("inf"), -2.0, float("-inf"))
    for s in shapes(op, limits):
        yield Case(s.name, op, (Tensor(s.dims, values=special),), layout=s.layout, slow=s.slow)


@recipe("Cast", "CastLike")
def cast(op: str, limits: Limits) -> Iterator[Case]:
    """Between float32 and the integers the chip lists."""
    for name, number in (("int8", 3), ("uint8", 2), ("int16", 5), ("int32", 6), ("int64", 7), ("bool", 9)):
        if name in limits.dtypes:
            x = Tensor((2, 3, 5), -100 if name.startswith("i") else 0, 100, step=1)
            way = (("to", x, number, name), ("from", Tensor(x.shape, x.low, x.high if name != "bool" else 2, name), 1, "float32"))
            for word, given, target, like in way:
                if op == "CastLike":
                    yield Case(f"typical/{word}_{name}", op, (given, Tensor((1,), dtype=like, constant=True)), opset=19)
                else:
                    yield Case(f"typical/{word}_{name}", op, (given,), {"to": target}, opset=19)

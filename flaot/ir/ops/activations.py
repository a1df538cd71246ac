"""Activation functions: one input, the same type and shape out."""

from __future__ import annotations

from dataclasses import dataclass

from flaot.ir.op import reads
from flaot.ir.ops.elementwise import NUMBERS, SIGNED, _Elementwise
from flaot.ir.reading import NodeReader


@dataclass(frozen=True)
class Relu(_Elementwise):
    """max(x, 0); NaN stays NaN."""

    code, dtypes, exact = "relu", SIGNED, True


@dataclass(frozen=True)
class Sigmoid(_Elementwise):
    """1 / (1 + exp(-x))."""

    code, work, magnitude = "sigmoid", 20, 1.0


@dataclass(frozen=True)
class Tanh(_Elementwise):
    code, work, magnitude = "tanh", 20, 1.0


@dataclass(frozen=True)
class Erf(_Elementwise):
    code, work, magnitude = "erf", 20, 1.0


@dataclass(frozen=True)
class Silu(_Elementwise):
    """x * sigmoid(alpha * x): Swish."""

    alpha: float = 1.0
    code, work = "silu", 20

    @property
    def arguments(self) -> tuple[float, ...]:
        return (self.alpha,)


@dataclass(frozen=True)
class Gelu(_Elementwise):
    """x * (1 + erf(x / sqrt 2)) / 2."""

    code, work = "gelu", 24


@dataclass(frozen=True)
class GeluTanh(_Elementwise):
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2."""

    code, work = "gelu_tanh", 26


@dataclass(frozen=True)
class _Sloped(_Elementwise):
    alpha: float

    @property
    def arguments(self) -> tuple[float, ...]:
        return (self.alpha,)


@dataclass(frozen=True)
class LeakyRelu(_Sloped):
    """x where x >= 0, else alpha * x."""

    code = "leaky_relu"


@dataclass(frozen=True)
class ThresholdedRelu(_Sloped):
    """x where x > alpha, else 0."""

    code = "thresholded_relu"


@dataclass(frozen=True)
class Elu(_Sloped):
    """x where x >= 0, else alpha * (exp(x) - 1)."""

    code, work = "elu", 15


@dataclass(frozen=True)
class Celu(_Sloped):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""

    code, work = "celu", 15


@dataclass(frozen=True)
class Selu(_Elementwise):
    """gamma * x where x > 0, else gamma * alpha * (exp(x) - 1)."""

    alpha: float
    gamma: float
    code, work = "selu", 15

    @property
    def arguments(self) -> tuple[float, ...]:
        return (self.alpha, self.gamma)


@dataclass(frozen=True)
class HardSigmoid(_Elementwise):
    """max(0, min(1, alpha * x + beta))."""

    alpha: float
    beta: float
    code, work, magnitude = "hard_sigmoid", 4, 1.0

    @property
    def arguments(self) -> tuple[float, ...]:
        return (self.alpha, self.beta)


@dataclass(frozen=True)
class HardSwish(_Elementwise):
    """x * max(0, min(1, x / 6 + 1 / 2))."""

    code, work = "hard_swish", 5


@dataclass(frozen=True)
class Softplus(_Elementwise):
    """log(1 + exp(x))."""

    code, work = "softplus", 30


@dataclass(frozen=True)
class Softsign(_Elementwise):
    """x / (1 + |x|)."""

    code, work, magnitude = "softsign", 8, 1.0


@dataclass(frozen=True)
class Mish(_Elementwise):
    """x * tanh(log(1 + exp(x)))."""

    code, work = "mish", 30


@dataclass(frozen=True)
class Shrink(_Elementwise):
    """x + bias below -lambd, x - bias above lambd, 0 between."""

    lambd: float
    bias: float
    code, dtypes = "shrink", NUMBERS

    @property
    def arguments(self) -> tuple[float, ...]:
        return (self.lambd, self.bias)


PLAIN = {c.__name__: c for c in (Relu, Sigmoid, Tanh, Erf, HardSwish, Softplus, Softsign, Mish)}
SLOPED: dict[str, tuple[type[_Sloped], float]] = {
    "LeakyRelu": (LeakyRelu, 0.01), "ThresholdedRelu": (ThresholdedRelu, 1.0), "Elu": (Elu, 1.0), "Celu": (Celu, 1.0),
}  # fmt: skip


@reads(*PLAIN)
def read_plain(r: NodeReader) -> None:
    r.result(r.emit(PLAIN[r.op_type](), [r.input(0)]))


@reads(*SLOPED)
def read_sloped(r: NodeReader) -> None:
    op, default = SLOPED[r.op_type]
    alpha = r.float("alpha", default)
    if op is Celu and alpha == 0.0:
        r.fail("alpha is 0; Celu divides by it")
    r.result(r.emit(op(alpha), [r.input(0)]))


@reads("Selu")
def read_selu(r: NodeReader) -> None:
    op = Selu(r.float("alpha", 1.67326319217681884765625), r.float("gamma", 1.05070102214813232421875))
    r.result(r.emit(op, [r.input(0)]))


@reads("HardSigmoid")
def read_hard_sigmoid(r: NodeReader) -> None:
    r.result(r.emit(HardSigmoid(r.float("alpha", 0.2), r.float("beta", 0.5)), [r.input(0)]))


@reads("Shrink")
def read_shrink(r: NodeReader) -> None:
    r.result(r.emit(Shrink(r.float("lambd", 0.5), r.float("bias", 0.0)), [r.input(0)]))


@reads("Gelu")
def read_gelu(r: NodeReader) -> None:
    kinds = {"none": Gelu, "tanh": GeluTanh}
    how = r.str("approximate", "none")
    if how not in kinds:
        r.fail(f"approximate is '{how}'; allowed are none and tanh")
    r.result(r.emit(kinds[how](), [r.input(0)]))


@reads("Swish")
def read_swish(r: NodeReader) -> None:
    r.result(r.emit(Silu(r.float("alpha", 1.0)), [r.input(0)]))

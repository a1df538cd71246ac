"""LSTM, GRU and RNN: layers that carry a state from step to step.

Shapes, with T steps, N sequences, I inputs, H hidden units, D directions and G gates (LSTM 4, GRU 3, RNN 1):
X [T, N, I], W [D, G H, I], R [D, G H, H], B [D, 2 G H], sequence lengths int32 [N], initial states [D, N, H],
peepholes P [D, 3 H]; Y [T, D, N, H], final states [D, N, H]. ``batch_first`` puts N first in X, Y and the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType

Activation = tuple[str, float, float]
"""Name as ONNX spells it, alpha, beta."""

ACTIVATIONS: dict[str, tuple[float | None, float | None]] = {
    "Sigmoid": (None, None), "Tanh": (None, None), "Relu": (None, None), "Affine": (1.0, 0.0), "LeakyRelu": (0.01, None),
    "ThresholdedRelu": (1.0, None), "ScaledTanh": (1.0, 1.0), "HardSigmoid": (0.2, 0.5), "Elu": (1.0, None),
    "Softsign": (None, None), "Softplus": (None, None),
}  # fmt: skip
"""Default alpha and beta; None where the function has no such parameter."""

FLOATS = (DType.float32, DType.float16, DType.bfloat16)
DIRECTIONS = ("forward", "reverse", "bidirectional")


@dataclass(frozen=True)
class _Recurrent(Op):
    """Inputs X, W, R, B, lengths, initial hidden state (and for LSTM initial cell state, peepholes); from B on each may be None.

    ``activations`` are those of each direction in turn. ``clip`` bounds the inputs of the gates' activations; 0 does not.
    """

    gates: ClassVar[int]
    defaults: ClassVar[tuple[str, ...]]
    states: ClassVar[int] = 1

    hidden: int
    direction: str
    activations: tuple[Activation, ...]
    clip: float = 0.0
    batch_first: bool = False

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, w, r = inputs[:3]
        assert x is not None and w is not None and r is not None
        require(x.dtype in FLOATS, f"{self.name} of {x.dtype.name}; it takes float32, float16 and bfloat16")
        require(self.direction in DIRECTIONS, f"direction '{self.direction}'; allowed are {', '.join(DIRECTIONS)}")
        require(x.rank == 3, f"input of rank {x.rank}; it must be 3")
        d, h, g, (t, n) = self.directions, self.hidden, self.gates, x.shape[:2]
        if self.batch_first:
            t, n = n, t
        state = (n, d, h) if self.batch_first else (d, n, h)
        wanted = [("weights W", (d, g * h, x.shape[2])), ("weights R", (d, g * h, h)), ("bias B", (d, 2 * g * h)), ("lengths", (n,))]
        wanted += [("initial state", state)] * self.states + [("peepholes P", (d, 3 * h))] * (self.states - 1)
        for (what, shape), given in zip(wanted, inputs[1:], strict=True):
            want = TensorType(DType.int32 if what == "lengths" else x.dtype, shape)
            require(given is None or given == want, f"{what} of type {given}; it must be {want}")
        y = (n, t, d, h) if self.batch_first else (t, d, n, h)
        return (x.with_shape(y), *[x.with_shape(state)] * self.states)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        assert inputs[0] is not None
        return Tolerance(length=inputs[0].shape[2] + self.hidden, magnitude=1.0)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        assert inputs[0] is not None
        return Cost(2 * outputs[0].elements * self.gates * (inputs[0].shape[2] + self.hidden), moved)


@dataclass(frozen=True)
class LSTM(_Recurrent):
    """Gates i, o, f, c: C = f C' + i c, H = o h(C). ``input_forget`` couples f = 1 - i."""

    gates = 4
    defaults = ("Sigmoid", "Tanh", "Tanh")
    states = 2

    input_forget: bool = False


@dataclass(frozen=True)
class GRU(_Recurrent):
    """Gates z, r, h: H = (1 - z) h + z H'. ``linear_before_reset`` multiplies r after the product with R instead of before it."""

    gates = 3
    defaults = ("Sigmoid", "Tanh")

    linear_before_reset: bool = False


@dataclass(frozen=True)
class RNN(_Recurrent):
    """H = f(X W + H' R + b)."""

    gates = 1
    defaults = ("Tanh",)


def _activations(r: NodeReader, cell: type[_Recurrent], directions: int) -> tuple[Activation, ...]:
    names = r.strs("activations", cell.defaults * directions)
    if len(names) != len(cell.defaults) * directions:
        r.fail(f"{len(names)} activations; there must be {len(cell.defaults) * directions}")
    alphas, betas = iter(r.floats("activation_alpha", ())), iter(r.floats("activation_beta", ()))
    known = {n.lower(): n for n in ACTIVATIONS}
    out = []
    for given in names:
        if given.lower() not in known:
            r.fail(f"activation '{given}'; allowed are {', '.join(ACTIVATIONS)}")
        name = known[given.lower()]
        alpha, beta = ACTIVATIONS[name]
        out.append((name, next(alphas, alpha) if alpha is not None else 0.0, next(betas, beta) if beta is not None else 0.0))
    return tuple(out)


@reads("LSTM", "GRU", "RNN")
def read(r: NodeReader) -> None:
    cell: type[_Recurrent] = {"LSTM": LSTM, "GRU": GRU, "RNN": RNN}[r.op_type]
    w = r.type(2)
    if w.rank != 3:
        r.fail(f"weights R of shape {list(w.shape)}; they must have rank 3")
    direction = r.str("direction", "forward")
    if direction not in DIRECTIONS:
        r.fail(f"direction '{direction}'; allowed are {', '.join(DIRECTIONS)}")
    hidden = r.int("hidden_size", w.shape[2])
    flag = {"LSTM": ("input_forget",), "GRU": ("linear_before_reset",), "RNN": ()}[r.op_type]
    op = cell(
        hidden, direction, _activations(r, cell, 2 if direction == "bidirectional" else 1), r.float("clip", 0.0), r.int("layout", 0) != 0,
        *(r.int(f, 0) != 0 for f in flag),
    )
    optional = [r.optional(i) for i in range(3, 8 if cell is LSTM else 6)]
    outputs = r.emit_many(op, [r.input(0), r.input(1), r.input(2), *optional])
    r.result(*outputs[: max(r.n_outputs, 1)])

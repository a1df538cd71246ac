"""BatchNormalization. Inference only as an op; canonicalize folds it away, so no kernel computes it.

Training mode (batch statistics) is read as the reductions and arithmetic it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import Cost, Op, reads, require
from flaot.ir.ops.arithmetic import Add, Div, Mul, Sub, scalar
from flaot.ir.ops.functions import Sqrt
from flaot.ir.ops.reduce import ReduceMean
from flaot.ir.ops.reshape import Reshape
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class BatchNormalization(Op):
    """y = (x - mean) / sqrt(variance + epsilon) * scale + bias per channel (axis 1).

    Inputs x [N, C, ...], scale [C], bias [C], mean [C], variance [C].
    """

    epsilon: float

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x = inputs[0]
        assert x is not None
        require(x.dtype.is_float, f"BatchNormalization of {x.dtype.name}; it takes floats")
        require(x.rank >= 2, f"an input of rank {x.rank}; it needs a batch and a channel axis")
        for what, t in zip(("scale", "bias", "mean", "variance"), inputs[1:], strict=True):
            shape = list(t.shape) if t is not None else None
            require(shape == [x.shape[1]], f"{what} of shape {shape}; it must be [{x.shape[1]}]")
        return (x,)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost(2 * outputs[0].elements, 2 * outputs[0].nbytes)


@reads("BatchNormalization")
def read(r: NodeReader) -> None:
    epsilon = r.float("epsilon", 1e-5)
    if not epsilon >= 0 or math.isinf(epsilon):
        r.fail(f"epsilon is {epsilon}; it must be a number of at least 0")
    if r.opset < 9 and r.int("spatial", 1) != 1:
        r.unsupported("spatial=0 (statistics per element)")
    training = r.int("training_mode", 0) == 1 if r.opset >= 14 else r.n_outputs > 1
    x, scale, bias, mean, variance = (r.input(i) for i in range(5))
    if training:
        _training(r, x, scale, bias, mean, variance, epsilon)
        return
    _check_variance(r, variance, epsilon)
    types = {v.type.dtype for v in (x, scale, bias, mean, variance)}
    if len(types) > 1:
        r.unsupported(f"inputs of mixed types {', '.join(t.name for t in sorted(types))}")
    r.result(r.emit(BatchNormalization(epsilon), [x, scale, bias, mean, variance]))


def _check_variance(r: NodeReader, variance: Value, epsilon: float) -> None:
    if variance.data is None or not variance.type.dtype.is_float or variance.data.dtype.kind != "f":
        return
    wrong = np.flatnonzero(~(variance.data.astype(np.float64).reshape(-1) + epsilon > 0))
    if len(wrong):
        found = variance.data.reshape(-1)[wrong[0]]
        r.fail(f"the variance of channel {wrong[0]} is {found} and epsilon {epsilon}; their sum must be above 0")


def _training(r: NodeReader, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float) -> None:
    """Outputs y, running mean, running variance; the statistics are those of the batch, the variance over all elements."""
    if r.opset < 14:
        r.unsupported("training outputs before opset 14")
    BatchNormalization(epsilon).infer([v.type for v in (x, scale, bias, mean, variance)])
    kind, channels = x.type.dtype, x.type.shape[1]
    axes = tuple(a for a in range(x.type.rank) if a != 1)
    full = (1, channels, *[1] * (x.type.rank - 2))

    def wide(v: Value) -> Value:
        return r.emit(Reshape(full), [v])

    def running(old: Value, new: Value) -> Value:
        momentum = r.float("momentum", 0.9)
        kept = r.emit(Mul(), [old, scalar(r, momentum, old.type.dtype)])
        fresh = r.emit(Reshape((channels,)), [r.emit(Mul(), [new, scalar(r, 1.0 - momentum, kind)])])
        return r.emit(Add(), [kept, fresh])

    average = r.emit(ReduceMean(axes), [x])
    centred = r.emit(Sub(), [x, average])
    spread = r.emit(ReduceMean(axes), [r.emit(Mul(), [centred, centred])])
    root = r.emit(Sqrt(), [r.emit(Add(), [spread, scalar(r, epsilon, kind)])])
    y = r.emit(Add(), [r.emit(Mul(), [r.emit(Div(), [centred, root]), wide(scale)]), wide(bias)])
    r.result(y, running(mean, average), running(variance, spread))

"""Operators that vanish: Identity, and Dropout of a trained model."""

from __future__ import annotations

import numpy as np

from flaot.ir.op import reads
from flaot.ir.reading import NodeReader


@reads("Identity")
def read_identity(r: NodeReader) -> None:
    r.result(r.input(0))


@reads("Dropout")
def read_dropout(r: NodeReader) -> None:
    training = r.optional_constant(2, "whether it trains") if r.opset >= 12 else None
    if training is not None and bool(training):
        ratio = r.optional_constant(1, "the ratio")
        if ratio is None or float(ratio) != 0.0:
            r.unsupported("Dropout in training mode", hint="export the model for inference")
    x = r.input(0)
    r.reserve(x.type.elements if r.n_outputs > 1 else 0)
    mask = r.literal(np.ones(x.type.shape, np.bool_)) if r.n_outputs > 1 else None
    r.result(x, mask)

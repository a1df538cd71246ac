"""LSTM, GRU and RNN against onnxruntime, which takes every option but batch-first layout."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from flaot.errors import RunInputError
from flaot.ir.ops.recurrent import ACTIVATIONS, GRU, LSTM, RNN, _Recurrent
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.reference import CHIPS, onnx_node

load_all()
CELLS = (LSTM, GRU, RNN)
BATCH_AXES = {0: (1, 0, 2), 5: (1, 0, 2), 6: (1, 0, 2)}


def operands(
    rng: np.random.Generator, cell: type[_Recurrent], sizes: tuple[int, int, int, int], d: int, optional: str = ""
) -> list[np.ndarray | None]:
    """Random inputs; ``optional`` names those to give: b(ias), l(engths), h, c, p(eepholes)."""
    t, n, i, h = sizes
    g = cell.gates

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    given: dict[str, np.ndarray] = {
        "b": normal(d, 2 * g * h, scale=0.5), "l": rng.integers(1, t + 1, n).astype(np.int32), "h": normal(d, n, h, scale=0.5),
        "c": normal(d, n, h), "p": normal(d, 3 * h, scale=0.5),
    }
    rest = [given[k] if k in optional else None for k in ("blhcp" if cell is LSTM else "blh")]
    return [normal(t, n, i), normal(d, g * h, i, scale=i**-0.5), normal(d, g * h, h, scale=h**-0.5), *rest]


def reference(op: _Recurrent, inputs: list[np.ndarray | None]) -> list[np.ndarray]:
    names = [a[0] for a in op.activations]
    known = [ACTIVATIONS[n] for n in names]
    attributes: dict[str, Any] = {
        "hidden_size": op.hidden, "direction": op.direction, "activations": names,
        "activation_alpha": [a[1] for a, k in zip(op.activations, known, strict=True) if k[0] is not None],
        "activation_beta": [a[2] for a, k in zip(op.activations, known, strict=True) if k[1] is not None],
    }
    attributes |= {"clip": op.clip} if op.clip else {}
    attributes |= {"input_forget": int(op.input_forget)} if isinstance(op, LSTM) else {}
    attributes |= {"linear_before_reset": int(op.linear_before_reset)} if isinstance(op, GRU) else {}
    attributes = {k: v for k, v in attributes.items() if v != []}
    return onnx_node(op.name, inputs, outputs=1 + op.states, **attributes)


def default(cell: type[_Recurrent], hidden: int, direction: str = "forward", **options: Any) -> Any:
    names = cell.defaults * (2 if direction == "bidirectional" else 1)
    return cell(hidden, direction, tuple((n, 0.0, 0.0) for n in names), **options)


def agree(op: _Recurrent, inputs: list[np.ndarray | None], chip: str) -> None:
    want = reference(op, inputs)
    weights = tuple(i for i in (1, 2, 3, 7) if i < len(inputs) and inputs[i] is not None)
    for constant in ((), weights):
        got = evaluate(op, inputs, CHIPS[chip], constant=constant, parts=2)
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=f"{op} {[None if x is None else x.shape for x in inputs]}")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_optional_inputs(chip: str, cell: type[_Recurrent], direction: str) -> None:
    rng = np.random.default_rng(0)
    op = default(cell, 12, direction)
    for optional in ("", "b", "bh", "bhc", "blhc", "l", "p", "blhcp", "h"):
        agree(op, operands(rng, cell, (7, 3, 5, 12), op.directions, optional), chip)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("seed", range(4))
def test_sizes(chip: str, cell: type[_Recurrent], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        sizes = (int(rng.integers(1, 12)), int(rng.choice([1, 1, 2, 3, 4, 5, 9])), int(rng.integers(1, 70)), int(rng.integers(1, 70)))
        options = {"linear_before_reset": bool(rng.integers(2))} if cell is GRU else {}
        op = default(cell, sizes[3], str(rng.choice(["forward", "reverse", "bidirectional"])), **options)
        agree(op, operands(rng, cell, sizes, op.directions, "".join(c for c in "blhc" if rng.random() < 0.5)), chip)


@pytest.mark.parametrize("chip", CHIPS)
def test_cell_options(chip: str) -> None:
    rng = np.random.default_rng(1)
    for op in (
        default(LSTM, 9, clip=0.4), default(LSTM, 9, input_forget=True), default(GRU, 9, clip=0.3), default(RNN, 9, clip=0.3),
        default(GRU, 9, linear_before_reset=True, direction="bidirectional"),
        default(LSTM, 9, "bidirectional", clip=0.4, input_forget=True),
    ):
        agree(op, operands(rng, type(op), (5, 2, 4, 9), op.directions, "bhc"), chip)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    rng = np.random.default_rng(2)
    alpha, beta = ACTIVATIONS[name]
    one = (name, 0.0 if alpha is None else 0.7, 0.0 if beta is None else 0.4)
    for cell in CELLS:
        op = cell(6, "forward", (one, *[("Tanh", 0.0, 0.0)] * (len(cell.defaults) - 1)))
        agree(op, operands(rng, cell, (4, 2, 5, 6), 1, "b"), "generic")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("cell", CELLS)
def test_batch_first_is_a_transposition(chip: str, cell: type[_Recurrent]) -> None:
    rng = np.random.default_rng(3)
    op = default(cell, 10, "bidirectional")
    inputs = operands(rng, cell, (6, 3, 5, 10), 2, "bhc")
    want = reference(op, inputs)
    swapped = [a.transpose(BATCH_AXES[i]) if a is not None and i in BATCH_AXES else a for i, a in enumerate(inputs)]
    for constant in ((), (1, 2, 3)):
        got = evaluate(dataclasses.replace(op, batch_first=True), swapped, CHIPS[chip], constant=constant)
        np.testing.assert_allclose(got[0], want[0].transpose(2, 0, 1, 3), rtol=1e-4, atol=1e-5)
        for a, b in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(a, b.transpose(1, 0, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("cell", CELLS)
def test_lengths_outside_the_steps_are_refused(chip: str, cell: type[_Recurrent]) -> None:
    inputs = operands(np.random.default_rng(4), cell, (4, 2, 3, 5), 1, "l")
    for bad in (-1, 5):
        inputs[4] = np.array([2, bad], np.int32)
        with pytest.raises(RunInputError, match="index"):
            evaluate(default(cell, 5), inputs, CHIPS[chip], constant=(1, 2))

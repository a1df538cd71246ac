"""Two arrays under a bound: ``|got - want| <= atol * scale + rtol * |want|``, with scale the largest finite magnitude of want (or the
bound's magnitude, when that is larger)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flaot.verify.bounds import Bound
from flaot.verify.result import Comparison


def compare(
    name: str,
    got: np.ndarray,
    want: np.ndarray,
    bound: Bound,
    op: str = "",
    nodes: tuple[str, ...] = (),
    spread: np.ndarray | None = None,
) -> Comparison:
    """Integers and booleans must be equal; NaN and infinities must be at the same places.

    ``spread`` is how far the reference itself moves, element by element, when its operations are off by a few units in the last place;
    eight times that, and its root mean square, are allowed on top.
    """
    type = f"{got.dtype.name}[{','.join(map(str, got.shape))}]"
    if got.shape != want.shape or got.dtype != want.dtype:
        note = f"flaot gives {type}, onnxruntime {want.dtype.name}{list(want.shape)}"
        return Comparison(name, type, op, nodes, False, np.inf, np.inf, -np.inf, note=note)
    if got.size == 0 or np.array_equal(got, want, equal_nan=got.dtype.kind == "f"):
        return Comparison(name, type, op, nodes, True, 0.0, 0.0, None)
    if got.dtype.kind != "f":
        return _compare_exact(name, type, got, want, op, nodes)
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(w)
    same = finite == np.isfinite(g)
    same &= finite | (g == w) | (np.isnan(g) & np.isnan(w))
    if not same.all():
        return _compare_special(name, type, g, w, ~same, op, nodes)
    g, w = np.where(finite, g, 0.0), np.where(finite, w, 0.0)
    error, scale = np.abs(g - w), float(np.abs(w).max())
    allowed = bound.atol * max(scale, bound.magnitude) + bound.rtol * np.abs(w)
    if spread is not None:
        moved = np.nan_to_num(spread.astype(np.float64), posinf=0.0)
        allowed = allowed + 8 * moved + np.sqrt(np.square(moved).mean())
    at = np.unravel_index(int(np.argmax(error - allowed)), error.shape)
    noise = float(np.square(error).sum())
    snr = float(10 * np.log10(np.square(w).sum() / noise)) if noise and scale else None if not noise else -np.inf
    relative = error / np.maximum(np.maximum(np.abs(w), scale / 100), np.finfo(np.float64).tiny)
    return Comparison(
        name, type, op, nodes, bool((error <= allowed).all()), float(error.max()), float(relative.max()), snr,
        tuple(int(i) for i in at), float(g[at]), float(w[at]), float(allowed[at]), widened=spread is not None,
    )  # fmt: skip


RANGES = {
    "float16": "6e-8 to 65504", "float16 without denormals": "6e-5 to 65504",
    "bfloat16": "9e-41 to 3e38", "bfloat16 without denormals": "1e-38 to 3e38",
}  # fmt: skip
"""Sizes of the numbers other than 0 that half types have."""


def out_of_range(found: Comparison, got: np.ndarray, want: np.ndarray, narrow: Sequence[np.ndarray], stored: str) -> Comparison:
    """``found``, saying so where NaN and infinities that only ``got`` has are those of numbers too large or small for the type ``stored``:
    one of ``narrow``, what the reference gives when it stores values in that type, has some in the same places."""
    lost = np.isfinite(want) & ~np.isfinite(got)
    count = int((lost & ~np.all([np.isfinite(x) for x in narrow], axis=0)).sum())
    if found.ok or not count:
        return found
    why = f"onnxruntime has no number at {count} of them either once it stores values in {stored}"
    return replace(found, note=f"{found.note}; {why}, whose range ({RANGES[stored]}) they leave", beyond=stored)


def _compare_exact(name: str, type: str, got: np.ndarray, want: np.ndarray, op: str, nodes: tuple[str, ...]) -> Comparison:
    wrong = got != want
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    g, w = got.astype(np.float64), want.astype(np.float64)
    error = np.abs(g - w)
    power = float(np.square(w).sum())
    snr = float(10 * np.log10(power / np.square(error).sum())) if power else -np.inf
    note = f"{int(wrong.sum())} of {got.size} elements; the first at {list(at)}: got {got[at]}, want {want[at]}"
    relative = float((error / np.maximum(np.abs(w), 1)).max())
    return Comparison(name, type, op, nodes, False, float(error.max()), relative, snr, at, float(g[at]), float(w[at]), 0.0, note)


def _compare_special(name: str, type: str, g: np.ndarray, w: np.ndarray, wrong: np.ndarray, op: str, nodes: tuple[str, ...]) -> Comparison:
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    note = f"{int(wrong.sum())} elements are NaN or infinite on one side only; the first at {list(at)}: got {g[at]}, want {w[at]}"
    return Comparison(name, type, op, nodes, False, np.inf, np.inf, -np.inf, at, float(g[at]), float(w[at]), 0.0, note)

"""Weights of convolutions in the order the vector kernels read them. ``vl`` is floats per vector: 8 (AVX2) or 16 (AVX-512)."""

from __future__ import annotations

import numpy as np


def panel_vectors(vl: int, left: int) -> int:
    """Vectors of the next panel when ``left`` remain; the twin of panel_vectors in image.h."""
    if vl == 16:
        return 4 if left >= 7 or left == 4 else 3 if left >= 5 else left
    return 2 if left == 4 else 3 if left >= 3 else left


def panels(vl: int, vectors: int) -> list[tuple[int, int]]:
    """(first vector, vectors) of each panel."""
    out, v = [], 0
    while v < vectors:
        out.append((v, panel_vectors(vl, vectors - v)))
        v += out[-1][1]
    return out


def round_up(n: int, to: int) -> int:
    return -(-n // to) * to


def gemm_weights(w: np.ndarray, group: int, vl: int) -> np.ndarray:
    """[M, C / group, kernel...] to, for each group and panel, [tap][channel][lane]; absent output channels are zero."""
    per_group, ic = w.shape[0] // group, w.shape[1]
    depth = w.reshape(group, per_group, ic, -1).transpose(0, 3, 2, 1).reshape(group, -1, per_group)
    return panel_pack(depth, vl)


def panel_pack(matrices: np.ndarray, vl: int) -> np.ndarray:
    """[batch, K, N] to, for each matrix and panel, [K][lane], flat."""
    batch, _, n = matrices.shape
    padded = np.pad(matrices, ((0, 0), (0, 0), (0, round_up(n, vl) - n)))
    cut = [padded[:, :, v * vl : (v + width) * vl].reshape(batch, -1) for v, width in panels(vl, padded.shape[2] // vl)]
    return np.concatenate(cut, axis=1).reshape(-1).astype(np.float32, copy=False)


def vector(data: np.ndarray | None, channels: int, group: int, vl: int) -> np.ndarray:
    """Bias or slopes, each group padded with zeros to whole vectors; zeros when there are none."""
    values = np.zeros(channels, np.float32) if data is None else data.reshape(-1)
    per_group = channels // group
    return np.pad(values.reshape(group, per_group), ((0, 0), (0, round_up(per_group, vl) - per_group))).reshape(-1)


def depthwise_weights(w: np.ndarray, vl: int) -> np.ndarray:
    """[C, 1, kernel...] to [tap][channel], channels padded with zeros to whole vectors, flat."""
    taps = w.reshape(w.shape[0], -1).T
    return np.pad(taps, ((0, 0), (0, round_up(w.shape[0], vl) - w.shape[0]))).reshape(-1)

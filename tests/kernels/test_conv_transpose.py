"""ConvTranspose against onnxruntime on random shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.one_node import agree


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("seed", range(40))
def test_random_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, group = 1 + seed % 3, int(rng.choice([1, 1, 2, 3]))
    kernel = [int(k) for k in rng.integers(1, 6, n)]
    strides, dilations = [int(s) for s in rng.integers(1, 4, n)], [int(d) for d in rng.integers(1, 3, n)]
    if seed % 4 == 0:
        strides, dilations = kernel, [1] * n
    if seed % 5 == 0:
        strides = [1] * n
    x = normal(rng, 2, group * int(rng.integers(1, 20)), *(int(d) for d in rng.integers(3, 8, n)))
    w = normal(rng, x.shape[1], int(rng.integers(1, 20)), *kernel)
    whole = [s * (d - 1) + (k - 1) * e + 1 for s, d, k, e in zip(strides, x.shape[2:], kernel, dilations, strict=True)]
    options: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": group}
    match seed % 3:
        case 0:
            options["pads"] = [int(rng.integers(0, min(kernel[i % n], (whole[i % n] + 1) // 2))) for i in range(2 * n)]
        case 1:
            options["output_shape"] = [max(d, v - int(rng.integers(0, 3))) for d, v in zip(x.shape[2:], whole, strict=True)]
    if seed % 6 > 3:
        options["output_padding"] = [int(rng.integers(0, s)) for s in strides]
    inputs = [x, w, normal(rng, w.shape[1] * group)]
    agree("ConvTranspose", inputs[: 2 + seed % 2], opset=11, constant=(1, 2) if seed % 7 else (), **options)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_auto_pad(auto_pad: str) -> None:
    rng = np.random.default_rng(0)
    agree("ConvTranspose", [normal(rng, 1, 3, 6, 7), normal(rng, 3, 5, 4, 3)], strides=[2, 2], auto_pad=auto_pad, constant=(1,))


@pytest.mark.parametrize("shape", [((1, 51, 30), (51, 51, 2), 2), ((1, 16, 1, 33), (16, 1, 1, 5), 2), ((2, 8, 5, 6), (8, 1, 4, 4), 4)])
def test_fast_phases(shape: tuple) -> None:
    rng = np.random.default_rng(0)
    x, w, stride = shape
    n = len(x) - 2
    strides = [1] * (n - 1) + [stride] if w[2] == 1 and n > 1 else [stride] * n
    agree("ConvTranspose", [normal(rng, *x), normal(rng, *w)], strides=strides, constant=(1,))


def test_variants_use_the_convolution_kernels() -> None:
    from flaot.ir.graph import Graph
    from flaot.ir.ops.conv_transpose import ConvTranspose
    from flaot.ir.types import DType, TensorType
    from flaot.kernels.conv_transpose.phases import PhasesWay
    from flaot.mapping.choice import choose
    from flaot.targets.cpu import Cpu

    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (1, 64, 30)))
    node = graph.add_node(ConvTranspose((5,), (0,), (1,), (150,)), [x, graph.add_constant(np.ones((64, 64, 5), np.float32))])
    assert isinstance(choose(node, Cpu(variants=("generic", "avx2"))), PhasesWay)

"""onnxruntime's attention operators against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flaot.errors import FlaotError, UnsupportedError
from flaot.frontend import read
from flaot.ir.ops.attention import Attention
from flaot.schedule.evaluate import evaluate
from tests.kernels.one_node import agree, build, onnxruntime

RNG = np.random.default_rng(9)
B, S, T, N, H = 2, 5, 7, 4, 8
W = N * H


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


Q, K, V = some(B, S, W), some(B, T, W), some(B, T, W)
ENDS, SEEN = np.array([4, 7], np.int32), (RNG.random((B, T)) > 0.4).astype(np.int32)
PAST = [some(B, N, 3, H) for _ in range(2)]
COMMON = {"domain": "com.microsoft", "chips": ("generic",), "storages": (False,), "rtol": 1e-4, "atol": 1e-5, "num_heads": N}


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ([Q, K, V], {}),
        ([Q, K, some(B, T, 2 * W)], {"scale": 0.3}),
        ([Q, K, V, some(3 * W)], {}),
        ([Q, K, V, some(3 * W), SEEN], {"mask_filter_value": -5.0}),
        ([Q, K, V, None, ENDS, some(1, N, S, T)], {}),
        ([Q, K, V, None, None, some(B, 1, S, T)], {}),
        ([Q, Q, Q], {"unidirectional": 1}),
        ([Q, some(B, N, T, H), some(B, N, T, H)], {}),
        ([Q, Q, Q, None, None, None, *PAST], {"outputs": 3, "types": (np.float32,) * 3}),
    ],
)
def test_multi_head_attention(inputs: list[np.ndarray | None], options: dict[str, Any]) -> None:
    agree("MultiHeadAttention", inputs, **{"types": (np.float32,), **COMMON, **options})


def test_packed_as_its_parts() -> None:
    """onnxruntime takes packed values on GPUs alone."""
    qkv = some(B, S, N, 3, H)
    parts = [np.ascontiguousarray(qkv[:, :, :, i]).reshape(B, S, W) for i in range(3)]
    want = onnxruntime("MultiHeadAttention", parts, domain="com.microsoft", num_heads=N, types=(np.float32,))
    agree("MultiHeadAttention", [qkv], want=want, types=(np.float32,), **COMMON)
    agree("MultiHeadAttention", [parts[0], np.ascontiguousarray(qkv[:, :, :, 1:])], want=want, types=(np.float32,), **COMMON)


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ([Q, some(W, 3 * W), some(3 * W)], {}),
        ([Q, some(W, 3 * W), some(3 * W)], {"unidirectional": 1}),
        ([Q, some(W, 4 * W), some(4 * W)], {"qkv_hidden_sizes": [W, W, 2 * W]}),
        ([Q, some(W, 3 * W), some(3 * W), ENDS - 3], {}),
        ([Q, some(W, 3 * W), some(3 * W), np.array([4, 5, 1, 0], np.int32)], {}),
        ([Q, some(W, 3 * W), some(3 * W), SEEN[:, :S]], {"scale": 0.5}),
        ([Q, some(W, 3 * W), some(3 * W), None, np.stack(PAST)], {"outputs": 2, "types": (np.float32,) * 2, "unidirectional": 1}),
    ],
)
def test_attention_with_projection(inputs: list[np.ndarray | None], options: dict[str, Any]) -> None:
    agree("Attention", inputs, **{"types": (np.float32,), **COMMON, **options})


def graph(op_type: str, inputs: list[np.ndarray | None], **options: Any) -> Any:
    model, _ = build(op_type, inputs, domain="com.microsoft", types=(np.float32,), **options)
    return read(model, evaluate=evaluate)


def test_it_is_one_attention_with_the_heads_of_the_attribute() -> None:
    (node,) = [n for n in graph("MultiHeadAttention", [Q, K, V], num_heads=N).nodes() if isinstance(n.op, Attention)]
    assert node.op == Attention(4, 4, float(np.float32(8**-0.5)))


@pytest.mark.parametrize(
    ("op_type", "inputs", "options", "words"),
    [
        ("MultiHeadAttention", [Q, K, V, None, np.zeros(3 * B + 2, np.int32)], {}, "a mask of int32[8];"),
        ("MultiHeadAttention", [some(B, S, N, 3, H), None, None, some(3 * W)], {}, "a bias beside packed"),
        ("Attention", [Q, some(W, 3 * W), some(3 * W)], {"do_rotary": 1}, "do_rotary=1"),
    ],
)
def test_the_rest_is_refused_by_name(op_type: str, inputs: list[np.ndarray | None], options: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedError) as e:
        graph(op_type, inputs, num_heads=N, **options)
    assert words in str(e.value)


def test_heads_that_do_not_divide_the_width() -> None:
    with pytest.raises(FlaotError, match="query of width 32 for 5 heads; the heads must divide it"):
        graph("MultiHeadAttention", [Q, K, V], num_heads=5)

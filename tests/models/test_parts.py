"""Steps of real models on a chip give the same bits in parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flaot.ir.types import DType
from flaot.kernels.base import KERNELS
from flaot.plan.program import Buffer, Opcode, Space, Step, View
from tests.kernels.parts import Memory, check
from tests.models.chips import compiled, subjects
from tests.models.manifest import folder

pytestmark = pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")

QUICK = ("kws_m_fp32", "mtcnn_pnet", "atspm_head", "yunet_n_320", "fastestdet", "dnsmos", "squeezenet_fp16", "silero_vad_16k_seq")
HALVES = (DType.float16, DType.bfloat16)
SUBJECTS = [
    pytest.param(s, marks=[] if s.name in QUICK else pytest.mark.slow, id=s.name)
    for s in (subjects() if folder() is not None else [])
]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_parts_have_the_bits_of_the_whole(subject: Any) -> None:
    steps = [s for s in compiled(subject, "npu_v3").program.steps if s.device and s.opcode is Opcode.call]
    found = {kind(s): s for s in sorted(steps, key=lambda s: -sum(v.elements for v in s.outputs))}
    assert found
    for i, step in enumerate(found.values()):
        check(*on_host(step, np.random.default_rng(i)), fewer=True)


def kind(step: Step) -> tuple[Any, ...]:
    """What the cuts of a step depend on, sizes aside; so the smallest step of a kind is the one that is tried."""
    cuts = [(c.name, c.size > 2) for c in KERNELS[step.kernel].cuts(step)]
    return step.kernel, step.variant, len(step.inputs), str([len(v.dims) for v in step.inputs]), str(cuts)


def on_host(step: Step, rng: np.random.Generator) -> tuple[Step, Memory]:
    """The step on float32 in place of half types, as units compute, and memory with random numbers where there are no constants."""
    views = (*step.inputs, *step.outputs)
    memory: Memory = {}
    moved = {id(v.buffer): Buffer(Space.arena, 0) for v in views}
    ratio = {id(v.buffer): 2 if v.dtype in HALVES else 1 for v in views}
    lows = {key: min(v.extent()[0] for v in views if id(v.buffer) == key) for key in moved}
    highs = {key: max(v.extent()[1] for v in views if id(v.buffer) == key) for key in moved}
    result = []
    for view in views:
        key, dtype = id(view.buffer), DType.float32 if view.dtype in HALVES else view.dtype
        buffer = moved[key]
        if id(buffer) not in memory:
            memory[id(buffer)] = _content(view, lows[key], highs[key], dtype, rng)
        result.append(View(buffer, dtype, view.dims, view.strides, (view.offset - lows[key]) * ratio[key]))
    count = len(step.inputs)
    host = replace(step, inputs=tuple(result[:count]), outputs=tuple(result[count:]))
    return replace(host, scratch=KERNELS[step.kernel].room(host)), memory


def _content(view: View, low: int, high: int, dtype: DType, rng: np.random.Generator) -> np.ndarray:
    count = (high - low) // view.dtype.size
    if view.buffer.data is not None:
        stored = np.frombuffer(view.buffer.data.tobytes()[low:high], view.dtype.numpy)
        return stored.astype(dtype.numpy).view(np.uint8)
    if dtype.is_float:
        return rng.standard_normal(count).astype(dtype.numpy).view(np.uint8)
    return rng.integers(0, 2, count).astype(dtype.numpy).view(np.uint8)

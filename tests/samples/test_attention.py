"""Attention as both exporters of PyTorch spell it is recognised, with the model's heads, and still computed right."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from flaot.ir.ops.attention import Attention
from tests.models.check import agree, compiled
from tests.rules.harness import rewritten
from tests.samples.test_export import export

pytestmark = [pytest.mark.slow, pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")]

NAMES = (
    "written", "written_one", "written_mask", "merged", "merged_one", "decoder", "sdpa", "sdpa_causal", "sdpa_mask", "sdpa_bool", "mha",
    "mha_weights", "mha_length_first", "mha_length_first_one", "layer",
)  # fmt: skip
"""Of tests/samples/attention_nets.py: all have 4 heads of depth 8 over 6 steps, and 2 samples but those named one."""


@pytest.fixture(scope="module", params=["dynamo", "script"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp(request.param)
    subprocess.run([sys.executable, "-m", "tests.samples.attention_nets", path, request.param], capture_output=True, check=True)
    return path


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng, feeds = np.random.default_rng(0), {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        feeds[value.name] = rng.standard_normal(shape, np.float32)
        if value.name == "mask":
            feeds[value.name] = (feeds[value.name] > -0.5).astype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
    return feeds


@pytest.mark.parametrize("name", NAMES)
def test_recognised(name: str, folder: Path) -> None:
    path = folder / f"{name}.onnx"
    if not path.exists():
        pytest.skip("this exporter cannot export it")
    graph = rewritten(onnx.load(path))
    (node,) = [n for n in graph.nodes() if isinstance(n.op, Attention)]
    op = node.op
    assert isinstance(op, Attention)
    assert (op.q_heads, op.kv_heads, op.causal) == (4, 2 if name == "decoder" else 4, name in ("decoder", "sdpa_causal"))
    assert op.scale == pytest.approx(8**-0.5, rel=1e-6)
    assert [t.shape for t in node.input_types[:1] if t] == [(1 if name.endswith("one") else 2, 4, 6, 8)]
    assert len(node.inputs) == (4 if "mask" in name or "bool" in name else 3)
    agree(path, compiled(path, "host", {}), feeds_of(onnx.load(path, load_external_data=False)))


@pytest.mark.parametrize("exporter", ["dynamo", "script"])
@pytest.mark.parametrize(("name", "layers", "heads"), [("encoder_4x256", 4, 4), ("encoder_6x384", 6, 12)])
def test_encoder(name: str, layers: int, heads: int, exporter: str, tmp_path: Path) -> None:
    export(name, tmp_path / "model.onnx", "--exporter", exporter)
    found = [n.op for n in rewritten(onnx.load(tmp_path / "model.onnx")).nodes() if isinstance(n.op, Attention)]
    assert [op.heads for op in found] == [heads] * layers

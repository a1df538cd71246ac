"""The PyTorch samples, through both exporters, compile, run and agree with onnxruntime."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.models.check import agree, compiled

EXPORT = Path(__file__).resolve().parents[2] / "samples" / "export.py"
NAMES = ("resnet18", "resnet50", "mobilenet_v2", "ds_cnn", "lstm_tagger", "encoder_4x256", "encoder_6x384")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")]


def export(name: str, path: Path, *options: str) -> dict[str, np.ndarray]:
    """Exports the sample; returns an input for it (symbolic dimensions taken as 1)."""
    done = subprocess.run([sys.executable, EXPORT, name, "-o", path, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value = onnx.load(path, load_external_data=False).graph.input[0]
    shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
    return {value.name: np.random.default_rng(0).standard_normal(shape, np.float32)}


@pytest.mark.parametrize("exporter", ["dynamo", "script"])
@pytest.mark.parametrize("name", NAMES)
def test_sample_agrees_with_onnxruntime(name: str, exporter: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    feeds = export(name, path, "--exporter", exporter)
    agree(path, compiled(path, "host", {}), feeds)


@pytest.mark.parametrize("name", ["lstm_tagger", "encoder_4x256"])
def test_symbolic_batch_is_bound_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    feeds = export(name, path, "--exporter", "script", "--dynamic-batch")
    agree(path, compiled(path, "host", {"batch": 1}), feeds)


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    feeds = export("ds_cnn", path, "--external-data")
    assert [p for p in tmp_path.iterdir() if p != path]
    agree(path, compiled(path, "host", {}), feeds)


def test_list_names_every_sample() -> None:
    done = subprocess.run([sys.executable, EXPORT, "--list"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(NAMES)

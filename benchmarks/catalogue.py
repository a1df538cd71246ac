"""The models that are measured: the exported samples, and the real models when FLAOT_MODELS is set."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tests.models.manifest import models

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "benchmarks" / "out"
SAMPLES = ("resnet18", "resnet50", "mobilenet_v2", "ds_cnn", "lstm_tagger", "encoder_4x256", "encoder_6x384")
TINY = 5_000_000
"""Models below this many operations are the class 'tiny'."""


@dataclass
class Entry:
    """A model with its inputs; ``sample`` tells ours from the real ones."""

    name: str
    path: Path
    shapes: dict[str, Any]
    feeds: dict[str, np.ndarray]
    sample: bool

    @cached_property
    def op_types(self) -> set[str]:
        import onnx

        return {n.op_type for n in onnx.load(self.path, load_external_data=False).graph.node}

    def classes(self, flops: int) -> set[str]:
        """``rnn``, ``conv`` or ``dense``; ``tiny`` besides."""
        recurrent = self.op_types & {"LSTM", "GRU"}
        kind = "rnn" if recurrent else "conv" if "Conv" in self.op_types else "dense"
        return {kind, "tiny"} if flops < TINY else {kind}


def entries(names: list[str]) -> list[Entry]:
    """The named models, or all; samples are exported on first use."""
    found = [_sample(n) for n in SAMPLES if not names or n in names]
    found += [
        Entry(m.name, m.path, m.shapes, m.feeds(), False)
        for m in models().values()
        if m.supported and (not names or m.name in names)
    ]
    missing = set(names) - {e.name for e in found}
    if missing:
        sys.exit(f"unknown models: {', '.join(sorted(missing))}")
    return found


def sample_path(name: str) -> Path:
    """The exported sample, made when it is not there."""
    path = OUT / f"{name}.onnx"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, ROOT / "samples" / "export.py", name, "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path


def _sample(name: str) -> Entry:
    import onnx

    path = sample_path(name)
    value = onnx.load(path).graph.input[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    feeds = {value.name: np.random.default_rng(0).standard_normal(shape, np.float32)}
    return Entry(name, path, {}, feeds, True)

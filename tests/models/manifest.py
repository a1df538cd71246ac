"""The real models named by FLAOT_MODELS, as models.json describes them."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

NUMPY = {"float": np.float32, "float16": np.float16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8}


def folder() -> Path | None:
    """Where the models are, or None when FLAOT_MODELS is unset."""
    path = os.environ.get("FLAOT_MODELS")
    return Path(path) if path else None


@dataclass(frozen=True)
class Model:
    """One row of the manifest."""

    name: str
    row: dict[str, Any]

    @property
    def path(self) -> Path:
        place = folder()
        assert place is not None
        return place / self.row["file"]

    @property
    def supported(self) -> bool:
        """float32 or float16, no control flow, no ai.onnx.ml operators: what the spine promises."""
        foreign = any("::" in op for op in self.row["ops"])
        return self.row["set"] == "open" and self.row["quant"] in ("float32", "float16") and not self.row["control_flow"] and not foreign

    @property
    def shapes(self) -> dict[str, Any]:
        """Bindings for ``shapes``: the manifest's symbols where they bind everything, else the shapes of the inputs."""
        dims = [d for i in self.row["inputs"] for d in i["shape"]]
        unnamed = any(d == "?" or (isinstance(d, int) and d < 1) for d in dims)
        if unnamed:
            return {name: tuple(feed["shape"]) for name, feed in self.row["feeds"].items()}
        return dict(self.row["bind"])

    def feeds(self) -> dict[str, np.ndarray]:
        """The inputs the manifest asks for, the same on every call."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return {name: _draw(rng, feed) for name, feed in self.row["feeds"].items()}


def _draw(rng: np.random.Generator, feed: dict[str, Any]) -> np.ndarray:
    shape, dtype = feed["shape"], NUMPY[feed["dtype"]]
    match feed["fill"]:
        case "normal":
            return (rng.standard_normal(shape) * feed.get("scale", 1)).astype(dtype)
        case "uniform":
            return rng.uniform(feed["lo"], feed["hi"], shape).astype(dtype)
        case "randint":
            return rng.integers(feed["lo"], feed["hi"], shape).astype(dtype)
        case "zeros":
            return np.zeros(shape, dtype)
        case "const":
            return np.full(shape, feed["value"], dtype)
        case fill:
            raise ValueError(f"unknown fill {fill}")


@cache
def models() -> dict[str, Model]:
    """Every model by name; empty when FLAOT_MODELS is unset."""
    place = folder()
    if place is None:
        return {}
    rows = json.loads((place / "models.json").read_text())["models"]
    return {row["name"]: Model(row["name"], row) for row in rows}

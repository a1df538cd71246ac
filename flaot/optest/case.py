"""One case of the suite: an operator with inputs that anybody can draw again."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KINDS = ("typical", "boundary", "precision", "conformance")


@dataclass(frozen=True)
class Tensor:
    """An input: seeded values from ``low`` to ``high``, multiples of ``step`` unless 0, or ``values`` repeated until it is full.
    ``constant`` makes it an initializer of the model."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float32"
    step: float = 0.0
    values: tuple[float, ...] = ()
    constant: bool = False

    def draw(self, seed: int) -> np.ndarray:
        """The array of the tensor's dtype and shape."""
        count = int(np.prod(self.shape))
        if self.values:
            flat = np.resize(np.asarray(self.values, np.float64), count)
        else:
            flat = np.random.default_rng(seed).uniform(self.low, self.high, count)
        if self.step:
            flat = np.round(flat / self.step) * self.step
        if np.dtype(self.dtype).kind != "f":
            flat = np.floor(flat)
        return flat.reshape(self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Expected:
    """An output a descriptor's vector states, with the errors it allows."""

    array: np.ndarray
    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Case:
    """``name`` is ``kind/what``, unique for the operator. ``inputs`` (None: left out) belong to one ONNX node of ``attributes``.

    ``layout`` is the storage order the case is about, "" for the chip's default; ``stored`` the element type float32 values are stored in
    when it is not the one the chip would choose. ``slow`` cases need about a second. ``expected`` stands in place of onnxruntime's answer.
    """

    name: str
    operator: str
    inputs: tuple[Tensor | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 18
    domain: str = ""
    layout: str = ""
    stored: str = ""
    slow: bool = False
    expected: tuple[Expected, ...] = ()

    @property
    def id(self) -> str:
        """``Conv/boundary/kernel_7x7``: how command lines and ratchets name it."""
        return f"{self.operator}/{self.name}"

    @property
    def kind(self) -> str:
        return self.name.split("/")[0]

    def arrays(self) -> list[np.ndarray | None]:
        """The inputs, the same on every machine."""
        seed = zlib.crc32(self.id.encode())
        return [None if t is None else t.draw(seed + i) for i, t in enumerate(self.inputs)]

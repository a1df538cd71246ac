"""Where a node runs."""

from __future__ import annotations

from dataclasses import dataclass

from flaot.ir.types import DType


@dataclass(frozen=True)
class Place:
    """Where a node runs: ``device`` is ``host`` or the name of a chip, ``unit`` one of the chip's compute units ("" on the host), and
    ``dtype`` the element type its float32 values are computed in and stored as."""

    device: str = "host"
    unit: str = ""
    dtype: DType = DType.float32

    def __str__(self) -> str:
        return f"{self.device}.{self.unit}" if self.unit else self.device


HOST = Place()


@dataclass(frozen=True)
class Facts:
    """Batch, sequence and heads of a node; 0 where it has none."""

    batch: int = 0
    sequence: int = 0
    heads: int = 0

    def joined(self, other: Facts) -> Facts:
        """Those of a node that does the work of two."""
        return Facts(max(self.batch, other.batch), max(self.sequence, other.sequence), max(self.heads, other.heads))

"""MiniMalloc's instances: CSV files ``NAME.CAPACITY.csv`` of buffers with lifetimes, in the folder named by FLAOT_MINIMALLOC."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

from flaot.schedule.memory import Block


@dataclass(frozen=True)
class Instance:
    """Buffers, and the capacity in bytes that they are known to fit."""

    name: str
    capacity: int
    blocks: tuple[Block, ...]


def instances() -> list[Instance]:
    """Every instance by name; none when FLAOT_MINIMALLOC is unset."""
    place = os.environ.get("FLAOT_MINIMALLOC")
    return [_read(path) for path in sorted(Path(place).glob("*.*.csv"))] if place else []


def challenges() -> list[Instance]:
    """The eleven hard ones, A to K."""
    return [i for i in instances() if len(i.name) == 1]


def _read(path: Path) -> Instance:
    name, capacity, _ = path.name.split(".")
    with path.open(newline="") as rows:
        blocks = tuple(Block(int(r["size"]), int(r["lower"]), int(r["upper"]) - 1) for r in csv.DictReader(rows))
    return Instance(name, int(capacity), blocks)

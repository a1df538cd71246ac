"""The Toy-NPU for flaot: once this package is installed, plans for device type toy_npu run on its adapter."""

from __future__ import annotations

from pathlib import Path

HCD = Path(__file__).with_name("toy_npu.hcd")
"""The chip's descriptor, for ``flaot compile --hcd``."""


def library() -> str:
    """Path of the adapter's library: the entry point of group ``flaot.adapters``."""
    return str(Path(__file__).with_name("libtoy_adapter.so"))

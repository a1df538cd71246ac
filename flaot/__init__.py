"""flaot: ahead-of-time ONNX-to-chip converter with a compact C99 runtime."""

from flaot.version import VERSION as __version__

__all__ = ["__version__"]

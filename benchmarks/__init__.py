"""Measurements against onnxruntime, each pair interleaved in one process: ``make bench`` or ``python -m benchmarks``."""

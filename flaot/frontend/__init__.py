"""The frontend: ONNX models become graphs. The only importer of onnx besides flaot.verify."""

from flaot.frontend.read import read

__all__ = ["read"]

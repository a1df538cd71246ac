"""What an op's ONNX reader sees: one node with its attributes and inputs made typed.

The frontend implements :class:`NodeReader` on top of onnx; op files use only this interface.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import Op
from flaot.ir.types import DType, TensorType


class NodeReader(Protocol):
    """One ONNX node being read. All problems are raised as errors that name the node."""

    op_type: str
    opset: int
    """Version of the node's domain imported by the model."""
    origin: tuple[builtins.str, ...]
    """Names the node goes by."""
    n_outputs: int
    """Outputs the node lists (trailing empty names dropped)."""

    def int(self, name: builtins.str, default: builtins.int | None = None) -> builtins.int:
        """Integer attribute; without a default it is required."""

    def float(self, name: builtins.str, default: builtins.float | None = None) -> builtins.float: ...
    def str(self, name: builtins.str, default: builtins.str | None = None) -> builtins.str: ...
    def ints(self, name: builtins.str, default: Sequence[builtins.int] | None = None) -> tuple[builtins.int, ...]: ...
    def floats(self, name: builtins.str, default: Sequence[builtins.float] | None = None) -> tuple[builtins.float, ...]: ...
    def strs(self, name: builtins.str, default: Sequence[builtins.str] | None = None) -> tuple[builtins.str, ...]: ...
    def array(self, name: builtins.str) -> np.ndarray | None:
        """Tensor attribute, or None when absent."""

    def dtype(self, name: builtins.str, default: DType | None = None) -> DType:
        """Integer attribute that holds an ONNX data type."""

    def has(self, name: builtins.str) -> bool:
        """Whether the attribute is present."""

    def graph(self, name: builtins.str) -> Any:
        """Subgraph attribute, for control flow readers."""

    def n_inputs(self) -> builtins.int:
        """Inputs the node lists (trailing empty names dropped)."""

    def input(self, index: builtins.int) -> Value:
        """A required input."""

    def optional(self, index: builtins.int) -> Value | None:
        """An input that may be absent or empty."""

    def type(self, index: builtins.int) -> TensorType:
        """Type of a required input."""

    def constant(self, index: builtins.int, what: builtins.str) -> np.ndarray:
        """A required input whose content must be known at compile time; the error says that ``what`` depends on run-time data."""

    def optional_constant(self, index: builtins.int, what: builtins.str) -> np.ndarray | None: ...

    def emit(self, op: Op, inputs: Sequence[Value | None]) -> Value:
        """Adds a node and returns its first output (folded to a constant when all inputs are constants)."""

    def emit_many(self, op: Op, inputs: Sequence[Value | None]) -> tuple[Value, ...]: ...

    def literal(self, data: np.ndarray) -> Value:
        """A new constant. Where its size comes from the model, call :meth:`reserve` before making the array."""

    def reserve(self, elements: builtins.int) -> None:
        """Refuses (exit code 9) arrays of more elements than may be computed at compile time."""

    def result(self, *values: Value | None) -> None:
        """Declares the node's outputs in order; call exactly once. None marks an output that is not produced:
        refused when the model uses it."""

    def decline(self) -> None:
        """Leaves the node to the function ONNX defines it by, in place of :meth:`result`."""

    def fail(self, sentence: builtins.str, hint: builtins.str = "") -> NoReturn:
        """The node is malformed (exit code 3)."""

    def unsupported(self, sentence: builtins.str, hint: builtins.str = "") -> NoReturn:
        """The node is valid but not supported (exit code 5)."""

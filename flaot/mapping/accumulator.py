"""The element type a chip keeps the sums of a node in, as its descriptor says.

float16 factors: ``operators.<name>.accumulator``; else, of products, the ``accumulator`` of the unit's ``arithmetic`` on two float16, else
``numerics.float16_accumulator``; else float32. Values stored as bfloat16 or float32 are summed in float32. Kernels sum in float32, or in
float16 rounded half to even after every addition.
"""

from __future__ import annotations

from flaot.hcd import Hcd
from flaot.ir.graph import Node, Place
from flaot.ir.ops.attention import Attention
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.ops.cumsum import CumSum
from flaot.ir.ops.einsum import Einsum
from flaot.ir.ops.lrn import LRN
from flaot.ir.ops.matmul import _Product
from flaot.ir.ops.norm import _Norm
from flaot.ir.ops.pool import AveragePool, LpPool
from flaot.ir.ops.recurrent import _Recurrent
from flaot.ir.ops.reduce import _Reduce
from flaot.ir.ops.softmax import LogSoftmax, Softmax
from flaot.ir.types import DType
from flaot.mapping.names import names_of

PRODUCTS = (Conv, ConvTranspose, _Product, Einsum, Attention, _Recurrent)
OTHERS = (AveragePool, LpPool, _Reduce, Softmax, LogSoftmax, _Norm, LRN, CumSum)
KINDS = ("float32", "float16")
"""Element types kernels keep sums in."""


def sums_in_half(hcd: Hcd, node: Node, place: Place) -> bool:
    """Whether the sums of a node at that place are kept in float16."""
    return isinstance(node.op, PRODUCTS + OTHERS) and stated(hcd, node, place)[0] == "float16"


def stated(hcd: Hcd, node: Node, place: Place) -> tuple[str, tuple[str | int, ...]]:
    """The accumulator of a node at that place, and the key of the descriptor that says so (none: the default)."""
    full = hcd.full
    if place.dtype is not DType.float16:
        return "float32", ()
    for name in names_of(node.op):
        entry = (full.operators or {}).get(name)
        if entry is not None and entry.accumulator is not None:
            return entry.accumulator, ("operators", name, "accumulator")
    if not isinstance(node.op, PRODUCTS):
        return "float32", ()
    for i, pair in enumerate(full.compute_units[place.unit].arithmetic or ()):
        if pair.inputs == ("float16", "float16"):
            return pair.accumulator, ("compute_units", place.unit, "arithmetic", i, "accumulator")
    if full.numerics is not None and full.numerics.float16_accumulator is not None:
        return full.numerics.float16_accumulator, ("numerics", "float16_accumulator")
    return "float32", ()


def refusal(hcd: Hcd, node: Node, place: Place) -> tuple[str, str] | None:
    """A sentence and its origin when no kernel keeps sums as the descriptor says."""
    kind, path = stated(hcd, node, place)
    if kind not in KINDS:
        return f"{node.op.name} summed in {kind}; the kernels sum in {' and '.join(KINDS)}", hcd.origin(*path)
    if kind == "float16" and not isinstance(node.op, PRODUCTS + OTHERS):
        return f"{node.op.name} summed in float16; its kernel sums in float32 alone", hcd.origin(*path)
    return None

"""Batch, sequence and heads of a node, as limits and launches count them.

The batch is axis 0 of what convolutions, pools, image normalisations, Resize, Attention and recurrent ops read; for products and layer
normalisations it is axis 0 where that equals axis 0 of a model input. The sequence is the longer of Attention's two lengths, the
steps of a recurrent op, axis 1 of [batch, sequence, features] of products and layer normalisations, and of the indices of an
embedding. Spatial lengths of images and signals are no sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

from flaot.ir.graph import Graph, Node
from flaot.ir.ops.attention import Attention
from flaot.ir.ops.batch_norm import BatchNormalization
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.ops.gather import Gather
from flaot.ir.ops.lrn import LRN
from flaot.ir.ops.matmul import _Product
from flaot.ir.ops.norm import GroupNormalization, InstanceNormalization, LayerNormalization
from flaot.ir.ops.pool import _Pool
from flaot.ir.ops.recurrent import _Recurrent
from flaot.ir.ops.resize import Resize
from flaot.ir.place import Facts
from flaot.ir.types import DType

IMAGES = (Conv, ConvTranspose, _Pool, BatchNormalization, InstanceNormalization, GroupNormalization, LRN, Resize)


@dataclass(frozen=True)
class Context:
    """What a node's facts need to know of its model: axis 0 of the inputs of rank 2 and more, and the element type the model was
    written in where reading widened it (float16, bfloat16)."""

    batches: frozenset[int] = frozenset()
    model_dtype: DType | None = None

    @classmethod
    def of(cls, graph: Graph) -> Context:
        return cls(frozenset(v.type.shape[0] for v in graph.inputs if v.type.rank >= 2), graph.model_dtype)


def facts(node: Node, context: Context) -> Facts:
    """Batch, sequence and heads of a node."""
    op, x = node.op, node.inputs[0] if node.inputs else None
    if x is None:
        return Facts()
    shape = x.type.shape
    if isinstance(op, Attention):
        keys = node.inputs[1]
        assert keys is not None
        return Facts(shape[0], max(shape[2], keys.type.shape[2]), shape[1])
    if isinstance(op, _Recurrent):
        steps, batch = (shape[1], shape[0]) if op.batch_first else (shape[0], shape[1])
        return Facts(batch, steps)
    if isinstance(op, IMAGES):
        return Facts(shape[0]) if len(shape) >= 3 and not x.is_constant else Facts()
    if isinstance(op, _Product | LayerNormalization) and not x.is_constant and len(shape) >= 2 and shape[0] in context.batches:
        return Facts(shape[0], shape[1] if len(shape) == 3 else 0)
    if isinstance(op, Gather) and x.is_constant:
        indices = node.inputs[1]
        if indices is not None and indices.type.rank == 2 and indices.type.shape[0] in context.batches:
            return Facts(indices.type.shape[0], indices.type.shape[1])
    return Facts()

"""ReduceSum(x) / n = ReduceSum(x) * (1 / n) = ReduceMean(x), where n is how many elements each sum has.

The sum itself may be out of range where the mean is not, as on a chip that stores float16.
"""

from __future__ import annotations

import math

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.ops.arithmetic import Div, Mul
from flaot.ir.ops.reduce import ReduceMean, ReduceSum
from flaot.ir.types import DType
from flaot.rewrite import Miss, Rule
from flaot.rules.match import made_by, number, operand, single_use


class SumOverCount(Rule):
    """The two forms above, for float32."""

    anchors = (Mul, Div)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        for slot in (0, 1) if isinstance(node.op, Mul) else (0,):
            total, factor = made_by(node.inputs[slot], ReduceSum), number(node.inputs[1 - slot])
            if total is None or factor is None or not isinstance(total.op, ReduceSum) or node.outputs[0].type != total.outputs[0].type:
                continue
            x, y = operand(total, 0), total.outputs[0]
            count = x.type.elements // max(y.type.elements, 1)
            wanted = float(count) if isinstance(node.op, Div) else 1 / max(count, 1)
            if x.type.dtype is not DType.float32 or not math.isclose(factor, wanted, rel_tol=1e-6):
                return Miss(f"the factor {factor:g} is not that of a mean of {count}")
            if not single_use(graph, y):
                return Miss("the sum is also used elsewhere")
            patch = self.patch(graph, total, node)
            patch.replace(node.outputs[0], patch.node(ReduceMean(total.op.axes, total.op.keepdims), [x]))
            return patch
        return None

import pytest

from flaot.errors import InternalError
from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.softmax import Softmax
from flaot.ir.types import DType, TensorType
from flaot.rewrite import Miss, Rule, Tracer, run_rules


class Merge(Rule):
    """Reshape(Reshape(x)) = Reshape(x)."""

    anchors = (Reshape,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        inner = node.inputs[0].producer
        if inner is None:
            return None
        if not isinstance(inner.op, Reshape):
            return Miss(f"the input comes from {inner.op.name}")
        patch = self.patch(graph, inner, node)
        patch.replace(node.outputs[0], patch.node(node.op, [inner.inputs[0]]))
        return patch


class Flip(Rule):
    anchors = (Softmax,)

    def match(self, graph: Graph, node: Node) -> Patch:
        patch = self.patch(graph, node)
        patch.replace(node.outputs[0], patch.node(Softmax(1 - node.op.axis), node.inputs))
        return patch


def chain(length: int) -> Graph:
    graph = Graph()
    value = graph.add_input("x", TensorType(DType.float32, (6, 4)))
    for i in range(length):
        value = graph.add_node(Reshape((4, 6) if i % 2 == 0 else (6, 4)), [value], origin=(f"r{i}",)).outputs[0]
    graph.set_output("y", value)
    return graph


def test_runs_to_a_fixpoint_and_keeps_provenance() -> None:
    graph, tracer = chain(101), Tracer()
    assert run_rules(graph, [Merge()], tracer) == 100
    (node,) = graph.nodes()
    assert node.op == Reshape((4, 6)) and len(node.origin) == 101
    assert tracer.counts["test_engine.Merge"] == 100


def test_near_misses_are_kept() -> None:
    graph, tracer = Graph(), Tracer()
    x = graph.add_input("x", TensorType(DType.float32, (2, 3)))
    s = graph.add_node(Softmax(1), [x])
    graph.set_output("y", graph.add_node(Reshape((6,)), s.outputs, origin=("flat",)).outputs[0])
    run_rules(graph, [Merge()], tracer)
    assert tracer.lines() == ["test_engine.Merge did not fire at node 'flat' (Reshape): the input comes from Softmax"]


def test_rules_that_undo_each_other_are_named() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (2, 3)))
    graph.set_output("y", graph.add_node(Softmax(1), [x]).outputs[0])
    with pytest.raises(InternalError, match="bug in flaot.*do not converge.*test_engine.Flip"):
        run_rules(graph, [Flip()])


def test_dead_nodes_go_first() -> None:
    graph = chain(1)
    graph.add_node(Softmax(0), [graph.inputs[0]])
    assert run_rules(graph, []) == 0 and len(graph) == 1

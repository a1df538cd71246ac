"""Random tensors are drawn when the model is read: by seed or by node name, and the same in every compilation."""

from __future__ import annotations

import numpy as np
from onnx import helper

from flaot.frontend import read
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.frontend.models import info, model

load_all()


def drawn(op_type: str, name: str = "r", **attributes: object) -> np.ndarray:
    node = helper.make_node(op_type, [], ["y"], name=name, shape=[40, 50], **attributes)
    graph = read(model([node], [], [info("y", (40, 50))]), evaluate=evaluate)
    (output,) = graph.outputs
    assert output.value.data is not None
    return output.value.data


def test_names_and_seeds_decide() -> None:
    assert (drawn("RandomNormal", "a") == drawn("RandomNormal", "a")).all()
    assert (drawn("RandomNormal", "a") != drawn("RandomNormal", "b")).mean() > 0.99
    assert (drawn("RandomUniform", "a", seed=3.0) == drawn("RandomUniform", "b", seed=3.0)).all()
    assert (drawn("RandomUniform", "a", seed=3.0) != drawn("RandomUniform", "a", seed=4.0)).mean() > 0.99


def test_distributions() -> None:
    uniform = drawn("RandomUniform", low=-2.0, high=6.0)
    assert uniform.min() > -2 and uniform.max() < 6 and abs(uniform.mean() - 2) < 0.2 and abs(uniform.std() - 8 / 12**0.5) < 0.1
    normal = drawn("RandomNormal", mean=3.0, scale=0.5)
    assert abs(normal.mean() - 3) < 0.05 and abs(normal.std() - 0.5) < 0.03 and np.abs(normal - 3).max() < 3


def test_like_and_bernoulli() -> None:
    nodes = [helper.make_node("RandomUniformLike", ["x"], ["u"]), helper.make_node("Bernoulli", ["x"], ["b"])]
    graph = read(model(nodes, [info("x", (30, 40))], [info("u", (30, 40)), info("b", (30, 40))]), evaluate=evaluate)
    assert graph.outputs[0].value.data is not None
    x = np.full((30, 40), 0.25, np.float32)
    known = {graph.inputs[0].id: x}
    for node in graph.nodes():
        inputs = [v.data if v is not None and v.data is not None else known[v.id] for v in node.inputs if v is not None]
        known[node.outputs[0].id] = evaluate(node.op, inputs)[0]
    hits = known[graph.outputs[1].value.id]
    assert set(np.unique(hits)) == {0.0, 1.0} and abs(hits.mean() - 0.25) < 0.05

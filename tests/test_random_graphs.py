"""Random graphs against onnxruntime without optimisations, on every variant this CPU runs."""

import numpy as np
import onnxruntime as ort
import pytest

from flaot.pipeline import compile_model
from flaot.runtime.session import Session
from tests.random_graphs import RandomModel

CHIPS = ("generic_cpu", "host")


def agree(seed, size, chips=CHIPS):
    model = RandomModel(seed).build(size)
    data = np.random.RandomState(seed)
    feeds = {i.name: data.randn(*[d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32) for i in model.graph.input}
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    want = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)
    for chip in chips:
        plan = compile_model(model, chip).plan
        got = Session(plan).run(None, feeds)
        for one, two in zip(got, Session(plan, threads=2).run(None, feeds), strict=True):
            assert one.tobytes() == two.tobytes(), f"seed {seed}, {chip}: two threads give other bits than one"
        for g, w, o in zip(got, want, model.graph.output, strict=True):
            scale = max(1.0, float(np.abs(w).max(initial=0)))
            np.testing.assert_allclose(g, w, 1e-4, 2e-5 * scale, err_msg=f"seed {seed}, {chip}, output {o.name}")


@pytest.mark.parametrize("seed", range(60))
def test_small_graphs(seed):
    agree(seed, size=4 + seed % 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_larger_graphs(seed):
    agree(seed, size=30)

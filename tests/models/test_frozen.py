"""Real models that list their weights among the inputs, as exporters did before IR version 4."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import flaot
from flaot.errors import RunInputError
from flaot.frontend import read
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.models.manifest import folder, models

pytestmark = pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")
load_all()
COUNTS = {"ultraface_rfb320": 244, "mnist_cntk": 8, "squeezenet_fp16": 52}


@pytest.mark.parametrize("name", COUNTS)
def test_every_weight_is_named(name: str) -> None:
    model = models()[name]
    assert len(read(model.path, shapes=model.shapes, evaluate=evaluate).frozen) == COUNTS[name]


def test_weights_may_be_fed_unchanged() -> None:
    path = models()["mnist_cntk"].path
    weights = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    session = flaot.Session(flaot.compile(path, "generic_cpu").plan)
    x = {p.name: np.full(p.shape, 0.5, p.dtype) for p in session.get_inputs()}
    np.testing.assert_array_equal(session.run(x | weights)[0], session.run(x)[0])
    name, value = next((n, w) for n, w in weights.items() if w.dtype == np.float32)
    with pytest.raises(RunInputError, match=f"input '{name}' is frozen into the plan"):
        session.run(x | {name: value + 1})

"""Element-wise operators of models in float16 on chips, which compute on widened operands: trees of them that begin or end with a cast."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from flaot.pipeline import Options, compile_model
from flaot.runtime.session import Session
from tests.mapping.nets import model, op

F16, F32, I8 = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.INT8
SHAPE = (1, 2, 2, 4)
X = np.array([-2.5, -1, -0.75, 0, 0.5, 1, 2, 3, 4, -4, 6, 7.5, -8, 9, 10, 0.25], np.float16).reshape(SHAPE)
RELU = np.maximum(X, 0)

MODELS = {
    "relu": ([op("Relu", "x", "y", "relu")], F16, F16, RELU),
    "two": ([op("Relu", "x", "a", "relu"), op("Neg", "a", "y", "neg")], F16, F16, -RELU),
    "both read": ([op("Relu", "x", "a", "relu"), op("Add", "a x", "y", "add")], F16, F16, RELU + X),
    "to float32": ([op("Cast", "x", "a", "cast", to=F32), op("Neg", "a", "y", "neg")], F16, F32, -X.astype(np.float32)),
    "casts between": (
        [op("Relu", "x", "a", "relu"), op("Cast", "a", "b", "w", to=F32), op("Neg", "b", "c", "neg"), op("Cast", "c", "y", "h", to=F16)],
        F16, F16, -RELU,
    ),
    "from int8": ([op("Cast", "x", "a", "cast", to=F16), op("Neg", "a", "y", "neg")], I8, F16, -X.astype(np.int8).astype(np.float16)),
    "int8 alone": ([op("Cast", "x", "y", "cast", to=F16)], I8, F16, X.astype(np.int8).astype(np.float16)),
    "to int8": ([op("Relu", "x", "a", "relu"), op("Cast", "a", "y", "cast", to=I8)], F16, I8, RELU.astype(np.int8)),
    "concat": ([op("Relu", "x", "a", "relu"), op("Concat", "a x", "y", "cat", axis=1)], F16, F16, np.concatenate([RELU, X], 1)),
}  # fmt: skip


@pytest.mark.parametrize("level", [0, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_half_models_run_on_chips(name: str, level: int) -> None:
    nodes, dtype, out, want = MODELS[name]
    data = model(nodes, SHAPE, dtype, out=out)
    done = compile_model(data, "npu_v3", Options(fusion_level=level))
    assert any(s.launch is not None for s in done.program.steps), "nothing ran on the chip"
    (y,) = Session(done.plan).run(None, {"x": X.astype(np.int8) if dtype == I8 else X})
    assert y.dtype == want.dtype and y.tolist() == want.tolist()


def test_a_tree_with_its_casts_is_one_step() -> None:
    nodes, dtype, out, _ = MODELS["casts between"]
    done = compile_model(model(nodes, SHAPE, dtype, out=out), "npu_v3", Options(fusion_level=2))
    assert [s.op for s in done.program.steps if s.kernel == "map"] == ["FusedMap"]

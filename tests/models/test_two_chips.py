"""Real models over two NPUs in one plan, the first of which lists no pooling."""

from __future__ import annotations

import pytest

import flaot
from flaot.hcd import Board, load_hcd
from flaot.mapping.policy import policy_of
from flaot.pipeline import Options, compile_model
from tests.mapping.models import chip
from tests.models.manifest import folder, models

pytestmark = pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")

LISTED = ("Add", "Cast", "Clip", "Conv", "Gemm", "MatMul", "Mul", "Relu", "Reshape", "Softmax", "Transpose")
TABLE = f"operators: {{{', '.join(f'{op}: {{units: [fp16]}}' for op in LISTED)}}}\nconstraints:"


@pytest.mark.parametrize("name", ["mlperf_resnet8_fp16", "st_mobilenet_v2_035"])
def test_what_one_chip_lacks_runs_on_the_other(name: str) -> None:
    m = models()[name]
    board = Board((chip("npu_v3", ("constraints:", TABLE)), load_hcd("npu_v2")))
    options = Options(shapes=m.shapes, policy=policy_of(board, fallback="error", prefer="npu_v3"))
    c = compile_model(m.path, board, options)
    on = {device: {d.op for d in c.record.decisions if d.device == device} for device in ("NPU-V3", "NPU-V2")}
    assert on["NPU-V2"] in ({"AveragePool"}, {"GlobalAveragePool"}, {"ReduceMean"}) and "Conv" in on["NPU-V3"]
    assert compile_model(m.path, board, options).plan == c.plan
    assert flaot.verify(c.plan, str(m.path)).ok

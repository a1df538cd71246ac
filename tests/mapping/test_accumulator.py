"""Which element type a chip keeps sums in: one line of the descriptor decides, and the plan names other kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import flaot
from flaot.errors import FlaotError
from flaot.pipeline import Options, compile_model

CHIP = "extends: npu_v2\nchip: {name: mine}\n"
NUMERICS = "numerics: {float16_accumulator: float16}\n"
TABLE = "operators:\n  MatMul: {%s}\n  Softmax: {%s}\n"
UNIT = "compute_units:\n  fp16:\n    arithmetic:\n      - {inputs: [float16, float16], accumulator: %s, macs_per_cycle: 64}\n"


def model() -> bytes:
    """x [1, 4096] times a matrix of ones [4096, 2], then Softmax."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Softmax", ["p"], ["y"], axis=1)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, [1, 4096])],
        [value("p", TensorProto.FLOAT, [1, 2]), value("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.ones((4096, 2), np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def compiled(folder: Path, text: str, **options: str) -> tuple[dict[str, str], float]:
    """The variant of each chip kernel, and the product of ones with ones."""
    path = folder / "mine.hcd"
    path.write_text(CHIP + text)
    done = compile_model(model(), path, Options(**options))
    variants = {s.kernel: s.variant for s in done.program.steps if s.kernel in ("matmul", "softmax_f32") and s.device}
    p, _ = flaot.Session(done.plan).run(None, {"x": np.ones((1, 4096), np.float32)})
    return variants, float(p[0, 0])


@pytest.mark.parametrize(
    ("text", "matmul", "softmax"),
    [
        ("", "generic", "generic"),
        ("numerics: {float16_accumulator: float32}\n", "generic", "generic"),
        (NUMERICS, "half", "generic"),
        (UNIT % "float16", "half", "generic"),
        (NUMERICS + UNIT % "float32", "generic", "generic"),
        (NUMERICS + TABLE % ("accumulator: float32", "accumulator: float16"), "generic", "half"),
        (TABLE % ("accumulator: float16", ""), "half", "generic"),
    ],
)
def test_the_descriptor_decides(tmp_path: Path, text: str, matmul: str, softmax: str) -> None:
    variants, product = compiled(tmp_path, text)
    assert variants == {"matmul": matmul, "softmax_f32": softmax}
    assert product == (2048 if matmul == "half" else 4096)


def test_sums_no_kernel_keeps_so_stay_on_the_host(tmp_path: Path) -> None:
    variants, product = compiled(tmp_path, "numerics: {float16_accumulator: bfloat16}\n")
    assert variants == {} and product == 4096


def test_a_refusal_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "mine.hcd").write_text(CHIP + "policy: {fallback: error}\nnumerics: {float16_accumulator: bfloat16}\n")
    with pytest.raises(FlaotError, match=r"MatMul summed in bfloat16; the kernels sum in float32 and float16") as e:
        compile_model(model(), tmp_path / "mine.hcd")
    assert e.value.exit_code == 5 and "mine.hcd:4" in str(e.value)

"""onnxruntime's results of one ONNX node, and the chips this machine can try."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import helper

from flaot.targets.cpu import Cpu


def _chips() -> dict[str, Cpu]:
    chips = {"generic": Cpu()}
    info = Path("/proc/cpuinfo")
    flags = info.read_text() if info.exists() else ""
    if " avx2" in flags and " fma" in flags:
        chips["avx2"] = Cpu(variants=("generic", "avx2"))
    if " avx512vl" in flags and " avx512bw" in flags and " avx512dq" in flags:
        chips["avx512"] = Cpu(variants=("generic", "avx2", "avx512"))
    return chips


CHIPS = _chips()
"""Every variant this CPU runs, by name of the fastest one."""


def onnx_node(
    op_type: str, inputs: Sequence[np.ndarray | None], outputs: int = 1, opset: int = 21, domain: str = "", **attributes: Any
) -> list[np.ndarray]:
    """Outputs of one node run by onnxruntime."""
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
    node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    given = {n: np.asarray(a) for n, a in zip(names, inputs, strict=True) if a is not None}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()],
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    result: list[np.ndarray] = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, given)
    return result

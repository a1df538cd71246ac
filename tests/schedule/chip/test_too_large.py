"""Steps that do not fit in on-chip memory in any way: the host runs them, or they are refused, and the reason is told."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from flaot.errors import UnsupportedError
from flaot.hcd import Hcd, load
from flaot.ir.text import save_graph
from flaot.mapping.policy import policy_of
from flaot.pipeline import STAGES, Compiled, Options, compile_dump, compile_model
from flaot.runtime.session import Session

NPU = """
chip: {name: Tiny, device_type: npu_test}
compute_units: {fp16: {count: 4, peak_gflops: 64, supported_layouts: [NCHW, NHWC]}}
memory:
  on_chip_cache: {size_kb: 16, bandwidth_gb_per_s: 64}
  off_chip_memory: {bandwidth_gb_per_s: 4}
tensor: {supported_dtypes: [float16], default_layout: NHWC}
"""
DEEP = 6000
"""Length of a sum: one row of one operand takes 12,000 bytes, one of each more than 16 kB."""


def model() -> bytes:
    """relu(x) @ w, whose sums are longer than on-chip memory, then a small product."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((DEEP, 16)) / 80, "v": rng.standard_normal((16, 8)) / 4}
    nodes = [
        oh.make_node("Relu", ["x"], ["a"], "relu"), oh.make_node("MatMul", ["a", "w"], ["b"], "long"),
        oh.make_node("MatMul", ["b", "v"], ["y"], "short"),
    ]
    ports = [oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", [4, DEEP]), ("y", [4, 8]))]
    held = [onnx.numpy_helper.from_array(w.astype(np.float32), n) for n, w in weights.items()]
    graph = oh.make_graph(nodes, "long", ports[:1], ports[1:], held)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.fixture(scope="module")
def npu() -> Hcd:
    return load(NPU.encode(), "tiny.hcd")


def compiled(npu: Hcd, fallback: str) -> Compiled:
    return compile_model(model(), npu, Options(policy=policy_of(npu, fallback=fallback)))


@pytest.mark.parametrize("fallback", ["warn", "allow"])
def test_the_host_runs_it_and_the_record_says_why(npu: Hcd, fallback: str) -> None:
    done = compiled(npu, fallback)
    taken = {d.node[0]: d for d in done.record.decisions}
    assert taken["long"].verdict == "fallback" and taken["long"].device == "host"
    assert "bytes on chip at once" in taken["long"].reason and "Tiny has 16384" in taken["long"].reason
    assert taken["long"].origin == "tiny.hcd:5"
    assert taken["long"].reason in json.dumps(done.record.to_json())
    x = np.random.default_rng(1).standard_normal((4, DEEP)).astype(np.float32)
    with Session(done.plan) as session:
        (y,) = session.run(None, {"x": x})
    weights = [onnx.numpy_helper.to_array(t) for t in onnx.load_from_string(model()).graph.initializer]
    np.testing.assert_allclose(y, np.maximum(x, 0) @ weights[0] @ weights[1], atol=0.02)


def test_it_is_refused_where_the_host_must_not(npu: Hcd) -> None:
    with pytest.raises(UnsupportedError, match=r"node 'long'.*bytes on chip at once.*Tiny has 16384 \(tiny.hcd:5\).*fallback") as refused:
        compiled(npu, "error")
    assert refused.value.exit_code == 5


@pytest.fixture(scope="module")
def dumps(npu: Hcd, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files of the graph after every stage, by stage; on a chip with more memory, so that both products have a place on it."""
    folder, wide = tmp_path_factory.mktemp("dumps"), load(NPU.replace("size_kb: 16", "size_kb: 1024").encode(), "tiny.hcd")
    files = {stage: str(folder / f"{stage}.txt") for stage in STAGES}
    compile_model(model(), wide, Options(observe=lambda stage, graph: save_graph(graph, files[stage])))
    return files


@pytest.mark.parametrize("stage", ["read", "recognise", "legalize"])
def test_a_dump_before_places_are_given_falls_back_too(npu: Hcd, dumps: dict[str, str], stage: str) -> None:
    done = compile_dump(dumps[stage], npu, Options(), stage)
    assert {d.node[0]: d.device for d in done.record.decisions}["long"] == "host"
    assert done.plan == compile_dump(dumps["read"], npu, Options()).plan


@pytest.mark.parametrize("stage", ["place", "layouts"])
def test_a_dump_with_places_is_refused_with_the_stage_to_go_back_to(npu: Hcd, dumps: dict[str, str], stage: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"node 'long'.*Tiny has 16384; compile from a stage before place.*after {stage} has its"):
        compile_dump(dumps[stage], npu, Options(), stage)

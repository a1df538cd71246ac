"""What chips do with models, as a person who reads their descriptors would tell it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from flaot.errors import FlaotError, ProblemList, UnsupportedError, UsageError
from flaot.hcd import Hcd, bundled
from flaot.ir.graph import Graph
from flaot.ir.ops.relayout import Relayout
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.ir.parse import parse_graph
from flaot.ir.text import blobs, print_graph
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_graph, compile_model
from flaot.plan.program import Opcode
from flaot.plan.read import read_plan
from flaot.plan.text import step_text
from flaot.runtime.session import Session
from tests.mapping.models import attention, chip, convolutions, mlp, model, node, weights


def compiled(m: onnx.ModelProto, hcd: Hcd, **policy: object) -> Compiled:
    return compile_model(m, hcd, Options(policy=policy_of(hcd, **policy)))  # type: ignore[arg-type]


def refused(m: onnx.ModelProto, hcd: Hcd, **policy: object) -> list[str]:
    """The lines of a refusal with exit code 5."""
    with pytest.raises(FlaotError) as e:
        compiled(m, hcd, **policy)
    assert e.value.exit_code == 5
    return [str(p) for p in e.value.problems] if isinstance(e.value, ProblemList) else [str(e.value)]


def verdicts(c: Compiled) -> dict[str, int]:
    return {k: n for k, n in c.record.summary()["verdicts"].items() if n}


def conversions(graph: Graph) -> Iterator[str]:
    for n in graph.nodes():
        if isinstance(n.op, Transfer | Recast | Relayout):
            yield type(n.op).__name__


def agrees(c: Compiled, m: onnx.ModelProto) -> None:
    """The plan computes what the portable kernels compute in float32, within half a percent."""
    session, host = Session(c.plan), Session(compile_model(m, "generic_cpu").plan)
    rng = np.random.default_rng(0)
    feeds = {p.name: rng.standard_normal(p.shape).astype(p.dtype) for p in session.get_inputs()}
    for got, want in zip(session.run(None, feeds), host.run(None, feeds), strict=True):
        assert np.abs(got - want).max() <= 5e-3 * np.abs(want).max()


@pytest.mark.parametrize("name", sorted(bundled()))
def test_the_mlp_compiles_for_every_bundled_chip(name: str) -> None:
    hcd = chip(name)
    if name == "x86_64_avx512":
        compiled(mlp(), hcd)
        return
    c = compiled(mlp(), hcd)
    assert verdicts(c) == {"native": len(c.record.decisions)}
    agrees(c, mlp())


@pytest.mark.parametrize("name", ["npu_v2", "npu_v3"])
def test_a_convolutional_net_stays_on_the_chip(name: str) -> None:
    m = convolutions()
    c = compiled(m, chip(name))
    assert verdicts(c) == {"native": 9}
    assert {d.unit for d in c.record.decisions} == {"fp16"} and {d.dtype for d in c.record.decisions} == {"float16"}
    assert c.record.summary()["inserted"]["Transfer"] == {"count": 2, "inner": 0, "bytes": 2 * (3 * 32 * 32 + 10)}
    agrees(c, m)


def test_every_conversion_of_a_plan_is_in_its_record() -> None:
    for m in (convolutions(), attention(4), mlp()):
        c = compiled(m, chip("npu_v3"))
        kinds = {"Transfer": "Transfer", "Recast": "Cast", "Relayout": "Relayout"}
        assert sorted(kinds[k] for k in conversions(c.graph)) == sorted(i.kind for i in c.record.inserted)
        moves = [s for s in c.program.steps if s.opcode is Opcode.transfer]
        assert len(moves) == sum(i.kind == "Transfer" for i in c.record.inserted)


def test_a_batch_beyond_the_limit() -> None:
    assert verdicts(compiled(convolutions(512), chip("npu_v3"))) == {"native": 9}
    lines = refused(convolutions(600), chip("npu_v3"))
    assert "node 'conv_c0' (Conv): a batch of 600; NPU-V3 allows max_batch_size 512 (npu_v3.hcd:10)" in lines[0]
    assert "a batch of 600" in refused(mlp(600), chip("npu_v3"))[0]
    assert verdicts(compiled(mlp(600), chip("npu_v3"), fallback="allow")) == {"fallback": 3}


def test_a_rank_beyond_the_limit() -> None:
    m = model([node("Relu", "x", "y")], {"x": (1, 1, 1, 1, 2, 2, 2)}, ["y"])
    (line,) = refused(m, chip("npu_v3"))
    assert "node 'relu_y' (Relu): a tensor of rank 7; NPU-V3 allows max_rank 6 (npu_v3.hcd:9)" in line
    assert verdicts(compiled(m, chip("npu_v3"), fallback="allow")) == {"fallback": 1}


def test_a_sequence_beyond_the_limit() -> None:
    m = model([node("MatMul", "x w", "y")], {"x": (1, 9000, 16)}, ["y"], {"w": weights(16, 16)})
    (line,) = refused(m, chip("npu_v3"))
    assert "a sequence of 9000; NPU-V3 allows max_sequence_length 8192 (npu_v3.hcd:10)" in line


def test_a_long_signal_is_no_sequence() -> None:
    m = model([node("Conv", "x w", "y")], {"x": (1, 4, 9000)}, ["y"], {"w": weights(4, 4, 3)})
    assert verdicts(compiled(m, chip("npu_v3"))) == {"native": 1}


def test_float64_is_never_narrowed() -> None:
    m = model([node("Add", "x x", "y")], {"x": (2, 3)}, ["y"], dtype=TensorProto.DOUBLE)
    (line,) = refused(m, chip("npu_v3"))
    assert "float64 values, which are never narrowed; NPU-V3 lists supported_dtypes" in line and "npu_v3.hcd:9" in line


def test_twelve_heads_are_refused_in_those_words_and_allowed_by_name() -> None:
    m = attention(12, layers=6)
    for fallback in ("error", "warn", "allow"):
        lines = refused(m, chip("npu_v3"), fallback=fallback)
        assert len(lines) == 6
        assert "(Attention): 12 heads; the unit attention of NPU-V3 lists 1, 2, 4, 8, 16 (npu_v3.hcd:5)" in lines[0]
        assert "--allow-expand Attention" in lines[0] and "--route Attention=host" in lines[0]
    c = compiled(m, chip("npu_v3"), allow_expand=["Attention"])
    assert "fallback" not in verdicts(c) and verdicts(c)["expanded"] > 0
    agrees(c, m)
    routed = compiled(m, chip("npu_v3"), routes=["Attention=host"])
    assert "attention" not in {d.unit for d in routed.record.decisions}
    assert {d.device for d in routed.record.decisions if d.op == "Attention"} == {"host"}


def test_eight_heads_are_native() -> None:
    c = compiled(attention(8), chip("npu_v3"))
    (decision,) = [d for d in c.record.decisions if d.op == "Attention"]
    assert (decision.verdict, decision.unit, decision.step) == ("native", "attention", "attention_f32")
    assert set(verdicts(c)) == {"native"}
    launches = [s.launch for s in c.program.steps if s.kernel == "attention_f32"]
    assert [(x.unit, x.batch, x.sequence, x.heads) for x in launches if x is not None] == [("attention", 1, 8, 8)]


def test_an_attention_longer_than_its_unit_takes() -> None:
    hcd = chip("npu_v2", ("max_sequence_length: 2048", "max_sequence_length: 4"))
    (line,) = refused(attention(4, length=8), hcd)
    assert "a sequence of 8; the unit attention of NPU-V2 allows max_sequence_length 4 (npu_v2.hcd:5)" in line


@pytest.mark.parametrize("stage", ["recognise", "legalize", "place", "fuse", "layouts"])
def test_a_dump_of_a_model_for_a_chip_compiles_on(stage: str) -> None:
    m, hcd = attention(12), chip("npu_v3")
    policy = policy_of(hcd, allow_expand=["Attention"])
    dumps: dict[str, Graph] = {}
    whole = compile_model(m, hcd, Options(policy=policy, observe=lambda name, graph: dumps.update({name: dump(graph)})))
    again = compile_graph(dumps[stage], hcd, Options(policy=policy), stage)
    assert [step_text(s) for s in read_plan(again.plan).steps] == [step_text(s) for s in read_plan(whole.plan).steps]


def dump(graph: Graph) -> Graph:
    """The graph as its text tells it."""
    return parse_graph(print_graph(graph), blobs(graph))


# -- one figure of a descriptor ------------------------------------------------------------------------------------------


def test_a_layout_removed() -> None:
    """Without NCHW, which the model's inputs have, the first value is rearranged."""
    with_it = compiled(convolutions(depth=1, size=8), chip("npu_v2"))
    without = compiled(convolutions(depth=1, size=8), chip("npu_v2", ("[NCHW, NHWC]", "[NHWC]")))
    assert with_it.record.summary()["inserted"]["Relayout"]["count"] == 0
    (only,) = [i for i in without.record.inserted if i.kind == "Relayout"]
    assert (only.value, only.source, only.target, only.edge) == ("x", "NCHW", "NHWC", True)
    assert "--input-layout x=NHWC" in only.remedy
    assert read_plan(without.plan).chips[0].layouts == ((0, 2, 3, 1),)
    agrees(without, convolutions(depth=1, size=8))


def test_a_dtype_removed() -> None:
    """A chip of float16 units that lists no float16 runs nothing in floating point."""
    without = ("[float16, int8, bfloat16]", "[int8, bfloat16]")
    c = compiled(mlp(), chip("npu_v3", ("  fp16: {count: 256,", "  vector: {count: 256,"), without))
    assert verdicts(c) == {"fallback": 3}
    hcd = chip("npu_v3", ("fp16: {count: 256,", "bf16: {count: 256,"), without)
    assert {d.dtype for d in compiled(mlp(), hcd).record.decisions} == {"bfloat16"}


def test_alignment_doubled() -> None:
    for alignment in (256, 512):
        hcd = chip("npu_v3", ("memory_alignment_bytes: 256", f"memory_alignment_bytes: {alignment}"))
        plan = read_plan(compiled(mlp(), hcd).plan)
        offsets = [v.offset for s in plan.steps if s.device for v in (*s.inputs, *s.outputs) if v.buffer.space.name == "device"]
        assert offsets and all(o % alignment == 0 for o in offsets)
        assert plan.chips[0].alignment == alignment


def test_heads_extended() -> None:
    hcd = chip("npu_v3", ("[1, 2, 4, 8, 16]", "[1, 2, 4, 8, 12, 16]"))
    c = compiled(attention(12), hcd)
    assert set(verdicts(c)) == {"native"} and 12 in read_plan(c.plan).chips[0].heads


def test_emulated_bfloat16_says_so() -> None:
    text = "memory_alignment_bytes: 256"
    hcd = chip("npu_v3", (text, f"{text}, bfloat16_emulation: true"))
    wide = compiled(mlp(), hcd)
    assert {d.dtype for d in wide.record.decisions} == {"float16"}
    m = model([node("Relu", "x", "y")], {"x": (64, 64)}, ["y"], dtype=TensorProto.BFLOAT16)
    c = compiled(m, hcd)
    (decision,) = [d for d in c.record.decisions if d.op == "Relu"]
    assert decision.dtype == "bfloat16"
    assert decision.note == "bfloat16 is emulated by way of float32 on unit fp16 (npu_v3.hcd:10)"


# -- policy --------------------------------------------------------------------------------------------------------------


def two_softmaxes() -> onnx.ModelProto:
    return model([node("Softmax", "x", "a"), node("Relu", "a", "b"), node("Softmax", "b", "y")], {"x": (4, 8)}, ["y"])


def test_routes_by_operator_and_by_name() -> None:
    hcd = chip("npu_v3")
    c = compiled(two_softmaxes(), hcd, routes=["Softmax=host"])
    assert {d.op: d.device for d in c.record.decisions} == {"Softmax": "host", "Relu": "host"}
    assert not c.program.chips, "a cheap node between two on the host stays there"
    c = compiled(two_softmaxes(), hcd, routes=["Softmax=host", "relu_b=npu_v3"])
    assert {d.op: d.device for d in c.record.decisions} == {"Softmax": "host", "Relu": "NPU-V3"}
    with pytest.raises(UsageError, match=r"the model has no node or operator 'relu_x'; did you mean 'relu_b'"):
        compiled(two_softmaxes(), hcd, routes=["relu_x=host"])
    with pytest.raises(UsageError, match=r"no device 'gpu'"):
        compiled(two_softmaxes(), hcd, routes=["Softmax=gpu"])


def test_routes_from_a_file_have_lines() -> None:
    hcd = chip("npu_v3")
    with pytest.raises(UsageError, match=r"routes.yaml:2: no device 'moon'"):
        policy_of(hcd, route_file=(b"Softmax: host\nRelu: moon\n", "routes.yaml"))


def test_a_route_to_what_cannot_run_it() -> None:
    m = model([node("CumSum", "x axis", "y")], {"x": (2, 3)}, ["y"], {"axis": np.int64(1)})
    (line,) = refused(m, chip("npu_v3"), routes=["CumSum=npu_v3"])
    assert "which cannot run it: no unit of NPU-V3 runs CumSum (npu_v3.hcd:2)" in line


def test_fallback_error_lists_every_node() -> None:
    m = model([node("CumSum", "x axis", "a"), node("CumSum", "a axis", "y")], {"x": (2, 3)}, ["y"], {"axis": np.int64(1)})
    lines = refused(m, chip("npu_v3"), fallback="error")
    assert len(lines) == 2 and all("--fallback warn" in line for line in lines)
    assert verdicts(compiled(m, chip("npu_v3"))) == {"fallback": 2}


def test_prefer_and_exclude() -> None:
    assert {d.device for d in compiled(mlp(), chip("npu_v3"), prefer="host").record.decisions} == {"host"}
    assert {d.device for d in compiled(mlp(), chip("npu_v3"), exclude=["npu_v3"]).record.decisions} == {"host"}
    lines = refused(model([node("CumSum", "x axis", "y")], {"x": (2, 3)}, ["y"], {"axis": np.int64(1)}), chip("npu_v3"), exclude=["host"])
    assert "no unit of NPU-V3 runs CumSum" in lines[0]


def test_precision_high_fails_rather_than_degrade() -> None:
    hcd = chip("npu_v3")
    with pytest.raises(FlaotError, match=r"computes float32 in float16; --precision high keeps float32") as e:
        compile_model(mlp(), hcd, Options(precision="high"))
    assert e.value.exit_code == 5
    half = model([node("Relu", "x", "y")], {"x": (64, 64)}, ["y"], dtype=TensorProto.FLOAT16)
    c = compile_model(half, hcd, Options(precision="high"))
    assert {d.unit for d in c.record.decisions} == {"fp16"}


def test_an_input_layout_the_chip_lists_and_one_it_does_not() -> None:
    m = convolutions(depth=1, size=8)
    hcd = chip("npu_v2", ("[NCHW, NHWC]", "[NHWC]"))
    c = compile_model(m, hcd, Options(input_layouts={"x": "NHWC"}))
    assert c.report["inputs"][0]["shape"] == [1, 8, 8, 3]
    assert not [i for i in c.record.inserted if i.kind == "Relayout"]
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    (want,) = Session(compile_model(m, "generic_cpu").plan).run({"x": x})
    (got,) = Session(c.plan).run({"x": x.transpose(0, 2, 3, 1)})
    assert np.abs(got - want).max() < 5e-3 * np.abs(want).max()
    with pytest.raises(UnsupportedError, match=r"input 'x': layout NHCW; NPU-V2 lists NHWC \(npu_v2.hcd:3\)"):
        compile_model(m, hcd, Options(input_layouts={"x": "NHCW"}))

"""One plan for several chips: who runs what, over which ways values move, and what that costs."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx
import pytest

import flaot
from flaot.errors import HcdError, UnsupportedError, UsageError
from flaot.hcd import Board, Hcd, board_of, load, load_hcd
from flaot.mapping.policy import device_of, policy_of
from flaot.pipeline import Compiled, Options, compile_model, query_model
from flaot.plan.fields import Section
from flaot.plan.program import Opcode
from flaot.plan.read import read_plan
from tests.mapping.models import convolutions, model, node, small, weights

ONE, TWO = small("ONE", "MatMul", "Add", "Relu"), small("TWO", "Softmax", "Sigmoid", "Relu")
BOTH = Board((ONE, TWO))


def alternating(size: int = 16) -> onnx.ModelProto:
    """MatMul, Softmax, MatMul, Sigmoid on [8, size], then the sum of the two MatMuls' results passed through."""
    nodes = [
        node("MatMul", "x w", "a"), node("Softmax", "a", "b", axis=-1), node("MatMul", "b w", "c"), node("Sigmoid", "c", "d"),
        node("Add", "d a", "y"),
    ]
    return model(nodes, {"x": (8, size)}, ["y"], {"w": weights(size, size)})


def compiled(m: onnx.ModelProto, *chips: Hcd, **policy: object) -> Compiled:
    board = board_of(chips)
    return compile_model(m, board, Options(policy=policy_of(board, **policy)))  # type: ignore[arg-type]


def devices(c: Compiled) -> dict[str, str]:
    """Where every node of the model runs."""
    return {name: d.device for d in c.record.decisions for name in d.node}


def agrees(c: Compiled, m: onnx.ModelProto, folder: Path) -> bool:
    """Whether the plan, run by the simulator, gives what onnxruntime does."""
    path = folder / "m.onnx"
    path.write_bytes(m.SerializeToString())
    result = flaot.verify(c.plan, str(path), layers=True)
    assert result.layers
    return bool(result.ok)


def test_every_node_runs_where_it_can_and_values_pass_over_the_host(tmp_path: Path) -> None:
    m = alternating()
    c = compiled(m, ONE, TWO, fallback="error")
    assert devices(c) == {"matmul_a": "ONE", "softmax_b": "TWO", "matmul_c": "ONE", "sigmoid_d": "TWO", "add_y": "ONE"}
    moved = [(i.source, i.target) for i in c.record.inserted if i.kind == "Transfer" and not i.edge]
    assert moved == [("ONE", "host"), ("host", "TWO"), ("TWO", "host"), ("host", "ONE")] * 2
    plan = flaot.Session(c.plan).plan
    assert [d.name for d in plan.devices] == ["host", "ONE", "TWO"] and [x.name for x in plan.chips] == ["ONE", "TWO"]
    assert {s.device for s in plan.steps if s.opcode is Opcode.call and s.op == "Softmax"} == {2}
    assert agrees(c, m, tmp_path)


def test_the_same_board_gives_the_same_bytes_and_its_digest_is_that_of_all() -> None:
    m = alternating()
    first, again = compiled(m, ONE, TWO), compiled(m, ONE, TWO)
    assert first.plan == again.plan
    cpu = load_hcd("generic_cpu")
    assert compiled(m, ONE, cpu, TWO).plan == compiled(m, ONE, TWO, cpu).plan == compiled(m, cpu, ONE, TWO).plan
    assert first.record.chip == "ONE + TWO" and compiled(m, ONE, cpu).record.chip == "generic_cpu + ONE"
    assert first.record.hcd_digest == hashlib.sha256(ONE.digest + TWO.digest).hexdigest()
    assert board_of(ONE).digest == ONE.digest and board_of([ONE, cpu]).digest == hashlib.sha256(cpu.digest + ONE.digest).digest()


def test_a_described_cpu_is_the_host(tmp_path: Path) -> None:
    m = alternating()
    c = compiled(m, ONE, load_hcd("x86_64_avx2"), prefer="one", route_file=(b"Softmax: host\nSigmoid: x86_64_avx2\n", "r.yaml"))
    plan = flaot.Session(c.plan).plan
    assert [(d.name, d.device_type) for d in plan.devices] == [("x86_64_avx2", "cpu"), ("ONE", "one")]
    assert {n for n, d in devices(c).items() if d == "host"} == {"softmax_b", "sigmoid_d"}
    assert any(s.variant == "avx2" for s in plan.steps if not s.device)
    assert agrees(c, m, tmp_path)


def test_a_host_that_lists_operators_runs_only_those() -> None:
    text = b"""chip: {name: small_cpu, vendor: v, device_type: cpu}
compute_units: {cpu: {isa: []}}
operators:
  MatMul: {units: [cpu]}
"""
    cpu = load(text, "small_cpu.hcd")
    assert devices(compiled(model([node("MatMul", "x w", "y")], {"x": (4, 4)}, ["y"], {"w": weights(4, 4)}), TWO, cpu)) == {
        "matmul_y": "host"
    }
    with pytest.raises(UnsupportedError, match="TWO does not list Tanh .*the host does not run it either: small_cpu does not list Tanh"):
        compiled(model([node("Tanh", "x", "y")], {"x": (4, 4)}, ["y"]), TWO, cpu)


def test_a_verdict_is_native_on_any_chip_before_expanded_on_one() -> None:
    """HardSwish is expanded on a chip that lists its parts; a second chip that lists it runs it."""
    m = model([node("HardSwish", "x", "y")], {"x": (4, 64)}, ["y"])
    parts, whole = small("PARTS", "Add", "Mul", "Div", "Clip", "HardSigmoid"), small("WHOLE", "HardSwish")
    alone = compiled(m, parts, fallback="error").record.decisions
    assert {(d.verdict, d.device) for d in alone} == {("expanded", "PARTS")}
    both = compiled(m, parts, whole, fallback="error").record.decisions
    assert {(d.verdict, d.device) for d in both} == {("native", "WHOLE")}


def test_a_chip_that_refuses_a_limit_takes_no_part() -> None:
    """Rank 3 breaks ONE's limit: TWO alone runs what it lists, and what neither runs is refused, the limit first."""
    tight = small("ONE", "Tanh", "Relu", rank=2)
    relu, tanh = (model([node(op, "x", "y")], {"x": (8, 4, 4)}, ["y"]) for op in ("Relu", "Tanh"))
    assert devices(compiled(relu, tight, TWO, fallback="error")) == {"relu_y": "TWO"}
    with pytest.raises(UnsupportedError, match="a tensor of rank 3; ONE allows max_rank 2; TWO does not list Tanh") as e:
        compiled(tanh, TWO, tight)
    assert e.value.origin == "one.hcd:7, two.hcd:9"


def test_options_name_any_of_the_chips(tmp_path: Path) -> None:
    m = model([node("Relu", "x", "y"), node("Tanh", "y", "z")], {"x": (8, 4096)}, ["z"])
    one, two = small("ONE", "Relu", "Tanh"), small("TWO", "Relu", "Tanh")
    assert set(devices(compiled(m, one, two)).values()) == {"ONE"}
    assert set(devices(compiled(m, one, two, exclude=["ONE"])).values()) == {"TWO"}
    assert set(devices(compiled(m, one, two, prefer="two")).values()) == {"TWO"}
    assert set(devices(compiled(m, one, two, exclude=["ONE", "TWO"])).values()) == {"host"}
    routed = compiled(m, one, two, routes=["Relu=ONE", "tanh_z=TWO.vector"])
    assert devices(routed) == {"relu_y": "ONE", "tanh_z": "TWO"}
    assert agrees(routed, m, tmp_path)
    with pytest.raises(UsageError, match=r"--route Relu=TWO: TWO is excluded"):
        compiled(m, one, two, routes=["Relu=TWO"], exclude=["TWO"])
    with pytest.raises(UnsupportedError, match="routed to ONE by --route Softmax=ONE, which cannot run it: ONE does not list Softmax"):
        compiled(alternating(), ONE, TWO, routes=["Softmax=ONE"])


def test_words_that_several_chips_share_are_refused() -> None:
    board = board_of(["npu_v3", "npu_v2"])
    assert [device_of(w, board, "") for w in ("npu_v3", "NPU-V2", "npu-v2", "host")] == ["NPU-V3", "NPU-V2", "NPU-V2", "host"]
    with pytest.raises(UsageError, match="--prefer npu: 'npu' may be NPU-V3 or NPU-V2; name one of them"):
        policy_of(board, prefer="npu")
    with pytest.raises(UsageError, match="no device 'npu_v4'; did you mean 'npu_v"):
        policy_of(board, prefer="npu_v4")


def test_boards_that_no_plan_holds() -> None:
    with pytest.raises(UsageError, match="two descriptors are named ONE"):
        board_of([ONE, ONE])
    with pytest.raises(UsageError, match="x86_64_avx2 and generic_cpu: a plan has one host"):
        board_of(["x86_64_avx2", ONE, "generic_cpu"])
    with pytest.raises(UsageError, match="4 chips; a plan holds at most 3"):
        board_of([small(n, "Relu") for n in ("A", "B", "C", "D")])
    with pytest.raises(HcdError, match="the layout L stores NHCW on A and NCHW on another chip of the plan"):
        layouts = (f"layouts: {{L: {{axes: {axes}, converted_by: [host]}}}}" for axes in ("NHCW", "NCHW"))
        board_of([small(n, "Relu", more=text) for n, text in zip("AB", layouts, strict=True)])


def test_the_strictest_policy_holds() -> None:
    strict = small("STRICT", "Relu", more="policy: {fallback: error}")
    assert policy_of(Board((ONE, strict))).fallback == "error" and policy_of(Board((ONE, TWO))).fallback == "warn"


def test_a_model_over_both_npus_agrees(tmp_path: Path) -> None:
    """NPU-V2 takes the middle layer; layouts and fusions are each chip's own."""
    m, board = convolutions(depth=3), board_of(["npu_v3", "npu_v2"])
    routes = ["*=npu_v3", "conv_c1=npu_v2", "relu_r1=npu_v2"]
    c = compile_model(m, board, Options(policy=policy_of(board, routes=routes)))
    assert {n for n, d in devices(c).items() if d == "NPU-V2"} == {"conv_c1", "relu_r1"}
    assert [(f.name, f.steps) for f in c.record.fused] == [
        ("product_activation on NPU-V3", 1), ("product_activation on NPU-V3", 1), ("product_activation on NPU-V2", 1)
    ]
    assert agrees(c, m, tmp_path)


@pytest.mark.parametrize("used", ["npu_v3", "npu_v2"])
def test_a_chip_that_runs_nothing_is_not_in_the_plan(used: str) -> None:
    """The plan is that for the other chip alone, but for the digest of the descriptors; its adapter is not asked for."""
    m, board = convolutions(), board_of(["npu_v3", "npu_v2"])
    both = compile_model(m, board, Options(policy=policy_of(board, routes=[f"*={used}"])))
    alone = compile_model(m, used, Options(policy=policy_of(board_of(used), routes=[f"*={used}"])))
    plan, other = read_plan(both.plan), read_plan(alone.plan)
    assert [c.name for c in plan.chips] == [load_hcd(used).name] == [e.chip for e in both.estimates]
    assert max(s.device for s in plan.steps) == 1
    same = (Section.steps, Section.operands, Section.tensors, Section.commands, Section.waits, Section.constants)
    assert all(plan.section(part).tobytes() == other.section(part).tobytes() for part in same)


def test_query_names_the_device_every_node_would_go_to() -> None:
    rows = query_model(alternating(), [ONE, TWO], Options(policy=policy_of(BOTH, fallback="error")))
    assert [(r["node"], r["verdict"], r["device"], r["unit"], r["dtype"]) for r in rows] == [
        ("matmul_a", "native", "ONE", "vector", "float16"), ("softmax_b", "native", "TWO", "vector", "float16"),
        ("matmul_c", "native", "ONE", "vector", "float16"), ("sigmoid_d", "native", "TWO", "vector", "float16"),
        ("add_y", "native", "ONE", "vector", "float16"),
    ]

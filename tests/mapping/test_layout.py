"""Layouts on chips: against brute force over all labellings, and what descriptors change."""

from __future__ import annotations

import itertools
import random

import numpy as np
import onnx
import pytest

import flaot.ir.op as ops
import flaot.kernels.base as kernels
from flaot.errors import UnsupportedError
from flaot.hcd import Hcd, board_of
from flaot.ir.graph import HOST, Graph, Place
from flaot.ir.ops.activations import Relu
from flaot.ir.ops.arithmetic import Add
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.relayout import Relayout
from flaot.ir.ops.softmax import Softmax
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import DType, TensorType, dense_strides
from flaot.kernels.base import Storage
from flaot.mapping.assign import solve
from flaot.mapping.capability import Capability
from flaot.mapping.cost import CostModel
from flaot.mapping.decisions import Inserted
from flaot.mapping.describe import describe
from flaot.mapping.layout import Materialiser, assign_layouts
from flaot.mapping.layout_costs import Labelling
from flaot.mapping.placement import Option, place
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.runtime.session import Session
from flaot.schedule.build import choose_all
from flaot.targets.chip import chip_cpu
from flaot.targets.cpu import Cpu
from flaot.targets.devices import Devices
from tests.mapping.models import chip, model, node, weights

TURNS = [(0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3)]


@pytest.fixture(autouse=True, scope="module")
def everything() -> None:
    ops.load_all()
    kernels.load_all()


def random_graph(seed: int, hcd: Hcd) -> Graph:
    """A few nodes on images of one size, some of them on the chip; values have several readers, and some are outputs."""
    rng = random.Random(seed)
    graph = Graph()
    values = [graph.add_input("x", TensorType(DType.float32, (1, 6, 6, 6)))]
    for _ in range(rng.randint(2, 5)):
        v = rng.choice(values[-3:])
        match rng.choice(["relu", "add", "softmax", "turn", "turn", "conv"]):
            case "relu":
                made = graph.add_node(Relu(), [v])
            case "add":
                made = graph.add_node(Add(), [v, rng.choice(values)])
            case "softmax":
                made = graph.add_node(Softmax(1), [v])
            case "turn":
                made = graph.add_node(Transpose(rng.choice(TURNS)), [v])
            case _:
                made = graph.add_node(Conv((1, 1), (1, 1, 1, 1), (1, 1)), [v, graph.add_constant(weights(6, 6, 3, 3))])
        values.append(made.outputs[0])
    graph.set_output("y", values[-1])
    if rng.random() < 0.4:
        graph.set_output("z", rng.choice(values[1:]))
    graph.prune()
    npu = Place(hcd.name, "fp16", DType.float16)
    place(graph, {n.id: [Option(rng.choice([npu, npu, HOST]))] for n in graph.nodes()}, CostModel(board_of(hcd)))
    return graph


def labelling(graph: Graph, hcd: Hcd) -> Labelling:
    devices = Devices(Cpu("host", ("generic", "avx2")), {hcd.name: chip_cpu(hcd)})
    return Labelling(graph, choose_all(graph, devices), CostModel(board_of(hcd)))


def cost_of(seed: int, hcd: Hcd, labels: tuple[int, ...]) -> float:
    """What a labelling costs, from the graph it leads to: the Relayouts in it, what transposes move, and 5% of what rearranging the
    outputs would cost for nodes that leave the chip's default layout. Infinite for labels a host node's kernel cannot have."""
    graph = random_graph(seed, hcd)
    work = labelling(graph, hcd)
    nodes = graph.nodes()
    chosen = {n.id: work.labels(n)[i] for n, i in zip(nodes, labels, strict=True)}
    rate = {HOST.device: 4.0, hcd.name: hcd.full.memory.off_chip_memory.bandwidth_gb_per_s}  # type: ignore[union-attr]
    total = 0.0
    for n in nodes:
        size = 2 * n.outputs[0].stored_type.nbytes / rate[n.place.device]
        if n.place.device != HOST.device:
            total += 0.05 * size * (chosen[n.id] != hcd.full.tensor.default_layout)  # type: ignore[union-attr]
        elif not isinstance(n.op, Transfer | Recast):
            storage = work.ways[n.id].storage(n)
            if (storage, chosen[n.id]) in ((Storage.plain, "NHWC"), (Storage.last, "NCHW")):
                return float("inf")
    Materialiser(work, chosen).run(nodes)
    for n in graph.nodes():
        (x, y) = (n.inputs[0], n.outputs[0])
        assert x is not None
        size = 2 * y.stored_type.nbytes / rate[n.place.device]
        if isinstance(n.op, Relayout):
            total += size
        if isinstance(n.op, Transpose):
            turned = [dense_strides(x.type.shape, x.storage)[p] for p in n.op.perm]
            shown = tuple(turned) == dense_strides(y.type.shape, work.order(chosen[n.id], 4))
            total += 0.0 if shown else size
    return total


def test_layouts_equal_brute_force_over_all_labellings() -> None:
    tried = 0
    for seed in range(120):
        hcd = chip("npu_v3" if seed % 2 else "npu_v2")
        graph = random_graph(seed, hcd)
        nodes, work = graph.nodes(), labelling(graph, hcd)
        sizes = [len(work.labels(n)) for n in nodes]
        if np.prod(sizes) > 250:
            continue
        found = solve(work.problem(nodes))
        chosen = tuple(found.labels[n.id] for n in nodes)
        best = min(cost_of(seed, hcd, labels) for labels in itertools.product(*map(range, sizes)))
        assert found.exact and found.energy == pytest.approx(cost_of(seed, hcd, chosen)) == pytest.approx(best), seed
        tried += 1
    assert tried >= 40


def test_chip_operands_are_stored_as_listed() -> None:
    hcd = chip("npu_v3", ("[NCHW, NHWC, NHCW]", "[NHWC, NHCW]"))
    listed = ((0, 2, 3, 1), (0, 2, 1, 3))
    for seed in range(100):
        graph = random_graph(seed, hcd)
        work = labelling(graph, hcd)
        assign_layouts(graph, work.ways, work.model)
        for n in graph.nodes():
            if n.place.device == hcd.name and not isinstance(n.op, Relayout | Transpose):
                for v in (*n.inputs, *n.outputs):
                    assert v is not None and any(dense_strides(v.type.shape, v.storage) == dense_strides(v.type.shape, o) for o in listed)


# -- what a descriptor changes -------------------------------------------------------------------------------------------


def chain(depth: int = 30) -> onnx.ModelProto:
    """Convolutions from 3 channels over 16 to 3, an image in and an image out."""
    nodes, held, last = [], {}, "x"
    for i in range(depth):
        held[f"w{i}"] = weights(3 if i == depth - 1 else 16, 16 if i else 3, 3, 3)
        nodes.append(node("Conv", f"{last} w{i}", f"c{i}", pads=[1, 1, 1, 1]))
        last = f"c{i}"
    return model(nodes, {"x": (1, 3, 16, 16)}, [last], held)


def compiled(m: onnx.ModelProto, hcd: Hcd, **options: object) -> Compiled:
    return compile_model(m, hcd, Options(policy=policy_of(hcd), **options))  # type: ignore[arg-type]


def relayouts(c: Compiled) -> list[Inserted]:
    return [i for i in c.record.inserted if i.kind == "Relayout"]


def agrees(c: Compiled, m: onnx.ModelProto) -> None:
    """The plan computes what the portable kernels compute in float32, within half a percent."""
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    (want,), (got,) = Session(compile_model(m, "generic_cpu").plan).run({"x": x}), Session(c.plan).run({"x": x})
    assert np.abs(got - want).max() <= 5e-3 * np.abs(want).max()


def test_a_long_chain_turns_to_the_default_layout_at_its_two_ends() -> None:
    c = compiled(chain(), chip("npu_v3"))
    first, last = relayouts(c)
    assert (first.value, first.source, first.target, first.edge) == ("x", "NCHW", "NHCW", True)
    assert (last.value, last.source, last.target, last.edge) == ("c29", "NHCW", "NCHW", True)
    assert first.remedy == "feed the input as NHCW: --input-layout x=NHCW"
    assert {d.layout for d in c.record.decisions} == {"NHCW"}
    agrees(c, chain())


def test_a_short_chain_does_not_pay_for_two_conversions() -> None:
    m = model([node("Relu", "x", "y")], {"x": (1, 3, 16, 16)}, ["y"])
    hcd = chip("npu_v3")
    c = compile_model(m, hcd, Options(policy=policy_of(hcd, prefer="npu_v3")))
    assert relayouts(c) == [] and [d.layout for d in c.record.decisions] == ["NCHW"]


def test_a_layout_removed_changes_the_layouts() -> None:
    without = chip("npu_v3", ("[NCHW, NHWC, NHCW]", "[NCHW, NHWC]"), ("default_layout: NHCW", "default_layout: NHWC"))
    assert [i.target for i in relayouts(compiled(chain(), without))] == ["NHWC", "NCHW"]
    plain = chip("npu_v3", ("[NCHW, NHWC, NHCW]", "[NCHW]"), ("default_layout: NHCW", "default_layout: NCHW"))
    assert relayouts(compiled(chain(), plain)) == []


def test_an_input_fed_in_the_default_layout_needs_one_conversion() -> None:
    (only,) = relayouts(compiled(chain(), chip("npu_v3"), input_layouts={"x": "NHCW"}))
    assert (only.value, only.target) == ("c29", "NCHW")


def test_who_converts_decides_where() -> None:
    """Where the host alone converts, which is slower, the chain stays as the model has it unless the chip leaves no choice."""
    assert [i.where for i in relayouts(compiled(chain(), chip("npu_v3")))] == ["NPU-V3.fp16", "NPU-V3.fp16"]
    by_host = "tensor:", "layouts:\n  NHCW: {axes: NHCW, converted_by: [host]}\ntensor:"
    assert relayouts(compiled(chain(), chip("npu_v3", by_host))) == []
    c = compiled(chain(), chip("npu_v3", by_host, ("[NCHW, NHWC, NHCW]", "[NHCW]")))
    assert [(i.where, i.target) for i in relayouts(c)] == [("host", "NHCW"), ("host", "NCHW")]
    agrees(c, chain())


def test_a_slow_conversion_is_avoided() -> None:
    entry = "layouts:\n  NHCW: {axes: NHCW, converted_by: [fp16], convert_gb_per_s: %s}\ntensor:"
    assert relayouts(compiled(chain(), chip("npu_v3", ("tensor:", entry % 0.001)))) == []
    hcd = chip("npu_v3", ("tensor:", entry % 1))
    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (1, 8, 8, 8)))
    made = graph.add_node(Relu(), [x])
    made.place = Place(hcd.name, "fp16", DType.float16)
    (y,) = made.outputs
    y.stored = DType.float16
    cost = Labelling(graph, {}, CostModel(board_of(hcd))).convert
    assert cost(y, (0, 1, 2, 3), (0, 2, 1, 3)) == 2 * 512
    assert cost(y, (0, 1, 2, 3), (0, 2, 3, 1)) == 2 * 2 * 512 / 128


OPERATORS = """operators:
  Conv: {layouts_in: [NHWC], layouts_out: [NHWC]}
  Softmax: {layouts_in: [NCHW], layouts_out: [NCHW]}
tensor:"""


def mixed() -> onnx.ModelProto:
    """A convolution and two softmaxes that read its result."""
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Softmax", "c", "s", axis=1), node("Softmax", "c", "t", axis=2)]
    return model(nodes, {"x": (1, 3, 64, 64)}, ["s", "t"], {"w": weights(16, 3, 3, 3)})


def test_operators_that_list_different_layouts_share_one_conversion() -> None:
    c = compiled(mixed(), chip("npu_v3", ("tensor:", OPERATORS)))
    inner = [i for i in relayouts(c) if not i.edge]
    assert [(i.value, i.source, i.target, i.where) for i in inner] == [("c", "NHWC", "NCHW", "NPU-V3.fp16")]
    assert inner[0].remedy == "list NHWC among layouts_in of operators.Softmax (npu_v3.hcd:11)"
    assert inner[0].cost_ns == 2 * 2 * 16 * 64 * 64 / 128


def test_a_conversion_nobody_on_the_chip_makes_is_refused() -> None:
    layouts = "layouts:\n  NHWC: {axes: NHWC, converted_by: [host]}\n"
    with pytest.raises(UnsupportedError) as e:
        compiled(mixed(), chip("npu_v3", ("tensor:", layouts + OPERATORS)))
    wants = "'c' is stored NHWC, node 'softmax_s' (Softmax) wants NCHW"
    assert f"{wants}, and on NPU-V3 only host converts NHWC (npu_v3.hcd:10)" in str(e.value)


BLOCKED = "layouts:\n  NCHWc8: {axes: NCHWc, blocks: {C: 8}, converted_by: [fp16]}\ntensor:"


def test_blocked_layouts_are_not_offered_and_say_so() -> None:
    both = chip("npu_v3", ("tensor:", BLOCKED), ("[NCHW, NHWC, NHCW]", "[NCHW, NCHWc8, NHCW]"))
    facts = {f.name: f.value for f in describe("Conv", both).facts}
    assert facts["fp16 layouts"] == "NHCW, NCHW; NCHWc8 not offered: blocked or padded"
    with pytest.raises(UnsupportedError, match=r"layout NCHWc8, which is blocked or padded; NPU-V3 lists NHCW, NCHW"):
        compiled(chain(2), both, input_layouts={"x": "NCHWc8"})


def test_a_unit_of_blocked_layouts_only_runs_no_images() -> None:
    hcd = chip("npu_v3", ("tensor:", BLOCKED), ("[NCHW, NHWC, NHCW]", "[NCHWc8]"), ("default_layout: NHCW", "default_layout: NCHWc8"))
    c = compiled(chain(2), hcd)
    assert {(d.verdict, d.device) for d in c.record.decisions} == {("fallback", "host")}
    assert "the unit fp16 of NPU-V3 stores images as none; NCHWc8 not offered: blocked or padded" in c.record.decisions[0].reason
    assert c.record.decisions[0].origin == "npu_v3.hcd:3"
    assert Capability(hcd).units.keys() == {"fp16", "int8", "attention"}
    m = model([node("Relu", "x", "y")], {"x": (64, 64)}, ["y"])
    assert {d.device for d in compile_model(m, hcd, Options(policy=policy_of(hcd, prefer="npu_v3"))).record.decisions} == {"NPU-V3"}


def test_more_conversions_than_the_policy_allows_are_refused() -> None:
    def limited(most: int) -> Hcd:
        return chip("npu_v3", ("tensor:", f"policy: {{max_relayouts: {most}}}\ntensor:"))

    assert len(relayouts(compiled(chain(), limited(2)))) == 2
    with pytest.raises(UnsupportedError) as e:
        compiled(chain(), limited(1))
    assert "2 values have to be rearranged; the policy of NPU-V3 allows max_relayouts 1 (npu_v3.hcd:9)" in str(e.value)
    assert "'x' from NCHW to NHCW: feed the input as NHCW: --input-layout x=NHCW" in str(e.value)

from __future__ import annotations

import itertools
import random
import time

import pytest

from flaot.hcd import board_of
from flaot.ir.graph import HOST, Graph, Place
from flaot.ir.ops.activations import Relu
from flaot.ir.ops.arithmetic import Add
from flaot.ir.ops.softmax import Softmax
from flaot.ir.ops.transfer import Recast, Transfer
from flaot.ir.types import DType, TensorType
from flaot.mapping.assign import energy, solve
from flaot.mapping.cost import CostModel
from flaot.mapping.placement import Form, Option, conversion, form_of, labelling, place, route
from tests.mapping.models import chip

NPU = Place("NPU-V3", "fp16", DType.float16)
BF16 = Place("NPU-V3", "fp16", DType.bfloat16)
MODEL = CostModel(board_of(chip("npu_v3")))


def random_graph(rng: random.Random, count: int) -> Graph:
    """Element-wise nodes over values of very different sizes; every value may have several readers."""
    graph = Graph()
    size = rng.choice([4, 4096, 1 << 20])
    values = [graph.add_input("x", TensorType(DType.float32, (size,)))]
    for _ in range(count):
        inputs = [rng.choice(values[-3:])] + ([rng.choice(values)] if rng.random() < 0.4 else [])
        values.append(graph.add_node(Add() if len(inputs) == 2 else Relu(), inputs).outputs[0])
    graph.set_output("y", values[-1])
    graph.prune()
    return graph


def random_options(rng: random.Random) -> list[Option]:
    kinds = [[Option(NPU), Option(HOST)], [Option(HOST)], [Option(NPU)], [Option(NPU), Option(BF16), Option(HOST)]]
    return [Option(o.place, penalty=rng.choice([0.0, 0.0, 3000.0])) for o in rng.choice(kinds)]


def cost_of(graph: Graph, options: dict[int, list[Option]], chosen: dict[int, int]) -> float:
    """What a placement costs, written without the solver's tables: every node, and every form a value is needed in once."""
    total = 0.0
    for node in graph.nodes():
        option = options[node.id][chosen[node.id]]
        total += MODEL.node(node, option.place, option.emulated) + option.penalty
        for value in node.outputs:
            made = form_of(value, option.place)
            needed = {form_of(value, options[n.id][chosen[n.id]].place) for n, _ in graph.consumers(value)} - {made}
            total += sum(conversion(value, made, f, MODEL) for f in needed)
    return total


def test_placement_equals_brute_force_on_a_thousand_random_graphs() -> None:
    for seed in range(1000):
        rng = random.Random(seed)
        graph = random_graph(rng, rng.randint(2, 6))
        options = {n.id: random_options(rng) for n in graph.nodes()}
        problem, _ = labelling(graph, options, MODEL)
        found = solve(problem)
        nodes = list(options)
        best = min(
            cost_of(graph, options, dict(zip(nodes, labels, strict=True)))
            for labels in itertools.product(*(range(len(options[n])) for n in nodes))
        )
        assert found.exact and found.energy == pytest.approx(energy(problem, found.labels))
        assert cost_of(graph, options, {n: found.labels[n] for n in nodes}) == pytest.approx(best), seed


def test_conversions_are_those_the_places_ask_for() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        graph = random_graph(rng, 6)
        options = {n.id: random_options(rng) for n in graph.nodes()}
        placed = place(graph, options, MODEL)
        made = [n for n in graph.nodes() if isinstance(n.op, Transfer | Recast)]
        assert len(made) == len(placed.inserted)
        for node in graph.nodes():
            for value in node.inputs:
                assert value is not None
                if isinstance(node.op, Transfer | Recast) or value.producer is None:
                    continue
                memory = value.producer.op.device if isinstance(value.producer.op, Transfer) else value.producer.place.device
                assert memory == node.place.device and value.stored_type.dtype is node.place.dtype


def test_the_way_between_two_forms() -> None:
    host, chip16, other = Form("host", DType.float32), Form("A", DType.float16), Form("B", DType.bfloat16)
    half = Form("host", DType.float16)
    assert route(host, host) == []
    assert route(host, chip16) == [half, chip16]
    assert route(chip16, host) == [half, host]
    assert route(chip16, half) == [half] and route(half, chip16) == [chip16]
    assert route(chip16, other) == [half, Form("host", DType.bfloat16), other]
    assert route(chip16, Form("A", DType.bfloat16)) == [Form("A", DType.bfloat16)]


def test_a_cheap_island_stays_on_the_host_and_a_dear_one_does_not() -> None:
    def island(size: int, middle: int) -> list[str]:
        graph = Graph()
        x = graph.add_input("x", TensorType(DType.float32, (size, 8)))
        first = graph.add_node(Relu(), [x])
        last = first
        nodes = [first]
        for _ in range(middle):
            last = graph.add_node(Softmax(1), [last.outputs[0]])
            nodes.append(last)
        end = graph.add_node(Relu(), [last.outputs[0]])
        graph.set_output("y", end.outputs[0])
        options = {n.id: [Option(NPU), Option(HOST)] for n in nodes[1:]} | {first.id: [Option(HOST)], end.id: [Option(HOST)]}
        place(graph, options, MODEL)
        return [n.place.device for n in nodes[1:]]

    assert set(island(4, 2)) == {"host"}
    assert set(island(100_000, 6)) == {"NPU-V3"}


def test_a_long_chain_is_placed_in_linear_time() -> None:
    """16,000 nodes; a slow or busy machine gets thirty seconds."""
    graph = Graph()
    value = graph.add_input("x", TensorType(DType.float32, (64,)))
    for _ in range(16_000):
        value = graph.add_node(Relu(), [value]).outputs[0]
    graph.set_output("y", value)
    options = {n.id: [Option(NPU), Option(HOST)] if n.id % 7 else [Option(HOST)] for n in graph.nodes()}
    begin = time.perf_counter()
    placed = place(graph, options, MODEL)
    assert time.perf_counter() - begin < 30
    assert placed.solution.exact


def test_costs_follow_the_descriptor() -> None:
    """float16 halves the bytes; npu_v3 moves 128 bytes a nanosecond and computes 25,600 operations."""
    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (1 << 20,)))
    node = graph.add_node(Relu(), [x])
    assert MODEL.node(node, NPU) == pytest.approx(2 * 2 * (1 << 20) / 128)
    assert CostModel(board_of(chip("npu_v2"))).node(node, Place("NPU-V2", "fp16", DType.float16)) == pytest.approx(2 * 2 * (1 << 20) / 64)
    assert MODEL.chips["NPU-V3"].peak("fp16") == MODEL.chips["NPU-V3"].peak("attention") == 25_600

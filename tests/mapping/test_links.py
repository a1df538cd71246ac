"""What descriptors say of the host, of transfers and of the bus moves nodes between host and chip.

Three Softmaxes of n elements lie between two nodes of the host. On an assumed host they cost 66 n ns, on the chip less than n; bringing the
values over and back costs two microseconds of setup, 4 n / rate ns and 3 n for the casts.
"""

from __future__ import annotations

import pytest

from flaot.hcd import Board, Hcd, load
from flaot.ir.graph import HOST, Graph, Place
from flaot.ir.ops.activations import Relu
from flaot.ir.ops.softmax import Softmax
from flaot.ir.types import DType, TensorType
from flaot.mapping.cost import CostModel
from flaot.mapping.placement import Option, place
from flaot.plan.program import Transfers
from flaot.targets.chip.machine import machine_of
from flaot.targets.devices import speed_of
from tests.mapping.models import small

LINK = "link_setup_cycles: 0, link_gb_per_s: 2"
FEW, MANY = 20, 400
"""Elements for which the assumed figures keep the nodes on the host, and bring them to the chip."""


def where(n: int, *chips: Hcd, cpu: Hcd | None = None) -> str:
    """The device of the Softmaxes, which may run on the first chip; a node beside them runs on every other one."""
    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (1, n)))
    first = graph.add_node(Relu(), [x])
    middle = [first]
    for _ in range(3):
        middle.append(graph.add_node(Softmax(1), [middle[-1].outputs[0]]))
    last = graph.add_node(Relu(), [middle[-1].outputs[0]])
    graph.set_output("y", last.outputs[0])
    here, *others = [Place(c.name, "vector", DType.float16) for c in chips]
    options = {n.id: [Option(here), Option(HOST)] for n in middle} | {first.id: [Option(HOST)], last.id: [Option(HOST)]}
    for i, other in enumerate(others):
        node = graph.add_node(Relu(), [x])
        graph.set_output(f"z{i}", node.outputs[0])
        options[node.id] = [Option(other)]
    place(graph, options, CostModel(Board(chips, cpu)).used_by(options))
    (device,) = {node.place.device for node in middle[1:]}
    return device


def one(host: str = "") -> Hcd:
    return small("ONE", "Relu", "Softmax", host=host)


def test_assumed_figures() -> None:
    assert where(FEW, one()) == "host" and where(MANY, one()) == "ONE"


@pytest.mark.parametrize(
    ("n", "stated", "device"),
    [
        (FEW, "peak_gflops: 0.1", "ONE"),
        (FEW, "bandwidth_gb_per_s: 0.05", "ONE"),
        (MANY, "peak_gflops: 1000, bandwidth_gb_per_s: 400", "host"),
        (FEW, "link_setup_cycles: 0", "ONE"),
        (MANY, "link_setup_cycles: 100000", "host"),
        (MANY, "link_gb_per_s: 0.01", "host"),
        (FEW, "transfers: asynchronous", "ONE"),
        (MANY, "transfers: asynchronous, link_gb_per_s: 0.01", "host"),
        (FEW, "transfers: zero_copy", "ONE"),
        (FEW, "transfers: synchronous", "host"),
    ],
)
def test_every_key_of_the_host_moves_nodes(n: int, stated: str, device: str) -> None:
    assert where(n, one(stated)) == device


def test_a_described_cpu_states_the_speed_of_the_host() -> None:
    text = """chip: {name: fast, vendor: v, device_type: cpu}
compute_units: {cpu: {peak_gflops: 1000}}
memory: {off_chip_memory: {bandwidth_gb_per_s: 400}}
"""
    head = text.splitlines()[0].encode()
    fast, silent = load(text.encode(), "fast.hcd"), load(head + b"\ncompute_units: {cpu: {}}\n", "silent.hcd")
    assert where(MANY, one(), cpu=fast) == "host" and where(MANY, one(), cpu=silent) == "ONE"
    assert where(MANY, one("peak_gflops: 1, bandwidth_gb_per_s: 4"), cpu=fast) == "host"


@pytest.mark.parametrize(
    ("mine", "other", "device"), [("pci", "pci", "host"), ("pci", "", "ONE"), ("", "pci", "ONE"), ("", "", "ONE"), ("a", "b", "ONE")]
)
def test_chips_on_one_bus_pay_twice_for_every_byte(mine: str, other: str, device: str) -> None:
    """At 0.1 GB/s the bytes take 16 us of the 26 that the chip saves, at half of it 32."""
    rate = "link_gb_per_s: 0.1"
    chips = [small(name, "Relu", host=f"{rate}, bus: {bus}" if bus else rate) for name, bus in (("ONE", mine), ("TWO", other))]
    assert where(MANY, *chips) == device
    assert where(MANY, chips[0]) == "ONE"


def test_a_chip_that_runs_nothing_of_the_model_leaves_the_bus_to_the_other() -> None:
    board = Board(tuple(small(n, "Relu", host=f"{LINK}, bus: pci") for n in ("ONE", "TWO")))
    tensor = TensorType(DType.float16, (1000,))
    assert CostModel(board).transfer(tensor, "ONE") == 2000 / 2 * 2
    assert CostModel(board, frozenset(("ONE", "host"))).transfer(tensor, "ONE") == 2000 / 2


@pytest.mark.parametrize(("host", "device"), [("bus: pci", "ONE"), ("bus: pci, link_gb_per_s: 0.05", "host")])
def test_a_chip_whose_bus_the_other_does_not_use_in_the_end_has_all_of_it(host: str, device: str) -> None:
    """Both chips can run the Softmaxes. Priced for two, 0.1 GB/s leaves them on the host; but then one chip alone has all of the bus."""
    rate = "link_gb_per_s: 0.1, "
    chips = [small(name, "Relu", "Softmax", host=host if "link" in host else rate + host) for name in ("ONE", "TWO")]
    assert either(MANY, *chips) == {device}


def either(n: int, *chips: Hcd) -> set[str]:
    """The devices of three Softmaxes that may run on every chip, between two nodes of the host."""
    graph = Graph()
    first = graph.add_node(Relu(), [graph.add_input("x", TensorType(DType.float32, (1, n)))])
    middle = [first]
    for _ in range(3):
        middle.append(graph.add_node(Softmax(1), [middle[-1].outputs[0]]))
    last = graph.add_node(Relu(), [middle[-1].outputs[0]])
    graph.set_output("y", last.outputs[0])
    free = [*(Option(Place(c.name, "vector", DType.float16)) for c in chips), Option(HOST)]
    options = {node.id: free for node in middle[1:]} | {first.id: [Option(HOST)], last.id: [Option(HOST)]}
    place(graph, options, CostModel(Board(chips)).used_by(options))
    return {node.place.device for node in middle[1:]}


def test_the_plan_s_machines_know_bus_and_transfers() -> None:
    def numbers(*buses: str) -> tuple[int, ...]:
        return Board(tuple(small(f"C{i}", "Relu", host=f"bus: {b}" if b else "") for i, b in enumerate(buses))).buses

    assert numbers("pci", "", "pci") == (0, 1, 0) and numbers("", "") == (0, 1) and numbers("a", "b", "a") == (0, 1, 0)
    machine = machine_of(one("transfers: zero_copy"), bus=2)
    assert (machine.bus, machine.transfer) == (2, Transfers.zero_copy)


def test_zero_copy_transfers_cost_nothing_and_leave_the_bus_to_others() -> None:
    free, paid = small("ONE", "Relu", host="transfers: zero_copy, bus: pci"), small("TWO", "Relu", host=f"{LINK}, bus: pci")
    model, tensor = CostModel(Board((free, paid))), TensorType(DType.float16, (1000,))
    assert model.transfer(tensor, "ONE") == 0 and model.transfer(tensor, "TWO") == 2000 / 2
    assert model.fewer() == []


def test_the_first_chip_that_states_its_host_describes_it() -> None:
    board = Board((small("ONE", "Relu"), small("TWO", "Relu", host="peak_gflops: 7, kernels: [generic]")))
    assert board.chips[0].full.host is not None and speed_of(board).flops == 7

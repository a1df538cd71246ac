"""Graph to program: choice of kernels, step order, shared memory, offsets, and the independent check of the result."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.errors import FlaotError, ProblemList
from flaot.ir.graph import Graph
from flaot.kernels.base import Implementation
from flaot.mapping.choice import choose
from flaot.plan.program import Chip, Program
from flaot.schedule.assign import assign_memory
from flaot.schedule.bind import bind, is_view
from flaot.schedule.chip.compose import PLAIN, ChipOptions, Composed, compose
from flaot.schedule.order import order_nodes
from flaot.schedule.transfer import TransferWay as TransferWay
from flaot.schedule.validate import validate
from flaot.targets.devices import Devices


def choose_all(graph: Graph, devices: Devices) -> dict[int, Implementation]:
    """The implementation of every node by node id. Raises every unsupported node at once."""
    ways: dict[int, Implementation] = {}
    problems: list[FlaotError] = []
    for node in graph.nodes():
        try:
            ways[node.id] = choose(node, devices.running(node))
        except FlaotError as e:
            problems.append(e)
    if problems:
        problems = _alike_once(problems)
        raise problems[0] if len(problems) == 1 else ProblemList(problems)
    return ways


def _alike_once(problems: list[FlaotError]) -> list[FlaotError]:
    """One problem per sentence, at the first node it holds for; the others are counted."""
    alike: dict[str, list[FlaotError]] = {}
    for p in problems:
        alike.setdefault(p.what, []).append(p)
    for first, *others in alike.values():
        if others:
            first.what += f" (as in {len(others)} more node{'s' * (len(others) > 1)})"
    return [group[0] for group in alike.values()]


def schedule(graph: Graph, devices: Devices, chips: Sequence[Chip] = (), options: ChipOptions = PLAIN) -> tuple[Program, Composed]:
    """A validated program for the host and the chips beside it, whose limits ``chips`` states and of which the program
    leaves out those that no step runs on; and what was decided for the chips."""
    ways, devices = choose_all(graph, devices), devices.used_by(graph)
    order = order_nodes(graph, lambda n: is_view(ways[n.id]))
    program = bind(graph, order, ways, devices)
    program.chips = [c for c in chips if c.name in devices.chips] if any(s.device for s in program.steps) else []
    composed = Composed()
    if program.chips:
        composed = compose(program, options)
    else:
        assign_memory(program, options.memory_effort)
    validate(program)
    return program, composed

"""The compiler on one screen: the stages in order, and nothing else knows that order.

    read -> canonicalize -> recognise -> legalize -> place -> fuse -> chain -> layouts -> schedule -> write

legalize gives every node a verdict for the chip, place a device, a unit and an element type. Fusion comes after that, so that nothing
fuses across devices, and before layouts: what a kernel absorbs decides which storage it wants, and the fused node has one label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import flaot.kernels.base as kernels
import flaot.rules.canonicalize
import flaot.rules.chain
import flaot.rules.fuse
import flaot.rules.recognise
from flaot.errors import DoesNotFitError, OffChipError, UsageError
from flaot.frontend import read
from flaot.hcd import Hcd
from flaot.hcd.board import Given, board_of
from flaot.ir import op as ops
from flaot.ir import spec
from flaot.ir.graph import Graph
from flaot.ir.parse import load_graph
from flaot.ir.widen import widen
from flaot.mapping.capability import Reason
from flaot.mapping.decisions import Inserted
from flaot.mapping.describe import verdict_rows
from flaot.mapping.limits import PlanLimits
from flaot.mapping.mapper import Mapper
from flaot.mapping.policy import Policy, policy_of
from flaot.mapping.ports import feed_as
from flaot.mapping.record import Record
from flaot.plan.program import Program
from flaot.plan.write import plan_digest, write_plan
from flaot.rewrite import Tracer, rules_in, run_rules
from flaot.rewrite.engine import Gate, one_place
from flaot.rules.expand import movements
from flaot.schedule.build import choose_all, schedule
from flaot.schedule.chip.compose import PLAIN, ChipOptions, Composed
from flaot.schedule.chip.estimate import Estimate
from flaot.schedule.chip.notes import powered
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import device_record
from flaot.targets.devices import speed_of

STAGES = ("read", "canonicalize", "recognise", "legalize", "place", "fuse", "chain", "layouts")
"""Stages whose graph can be dumped."""

AGGRESSIVE = 3
"""The fusion level from which on chains may be run in stripes."""

NOTHING: Mapping[str, Mapping[str, Reason]] = {}

PRECISIONS = ("default", "high")


@dataclass(frozen=True)
class Options:
    """How to compile. ``shapes`` binds inputs (``{"x": (1, 3, 224, 224)}``) and symbols (``{"batch": 1}``); ``precision`` is "default",
    or "high" for nothing less exact than the model: no kernel that approximates (Winograd), no narrower element type. ``policy`` says
    what the host may run (None: as the descriptor says), ``fusion_level`` 0 to 3 which fusions of the descriptor are used,
    ``input_layouts`` in which order inputs are fed (``{"x": "NHWC"}``). ``keep_decisions`` keeps the record in plans for a CPU chip too,
    those for others always hold it. ``chips`` limits on-chip memory, queues and overlap. ``memory_effort`` is how many nodes the search
    for offsets may visit in each memory (None: a few for each buffer). ``observe`` is called after every stage with its name and graph."""

    shapes: Mapping[str, tuple[int, ...] | int] = field(default_factory=dict)
    precision: str = "default"
    policy: Policy | None = None
    fusion_level: int = 2
    input_layouts: Mapping[str, str] = field(default_factory=dict)
    keep_decisions: bool = False
    chips: ChipOptions = PLAIN
    memory_effort: int | None = None
    observe: Callable[[str, Graph], None] = lambda stage, graph: None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UsageError(f"precision {self.precision!r}; allowed are {', '.join(PRECISIONS)}")
        if self.memory_effort is not None and self.memory_effort not in range(2**63):
            raise UsageError(f"memory effort {self.memory_effort}; allowed are 0 to 2^63 - 1")
        if self.fusion_level not in range(4):
            raise UsageError(f"fusion level {self.fusion_level!r}; allowed are 0 to 3")


@dataclass
class Compiled:
    """The bytes of a ``.flp`` file with what is known about them: the program they hold, the graph as it was scheduled, the record of
    every decision, and ``report``, what ``flaot compile --json`` prints (sizes in bytes), and ``estimates``, one per chip."""

    plan: bytes
    program: Program
    graph: Graph
    record: Record
    report: dict[str, Any]
    estimates: list[Estimate]


def compile_model(model: Any, chip: Given | Sequence[Hcd | str | Path] = "host", options: Options | None = None) -> Compiled:
    """Compiles a model (path, bytes or ModelProto) for a chip, or for up to three and, if it is described, the CPU beside them. Raises
    FlaotError subclasses only."""
    options = options if options is not None else Options()
    return compile_made(lambda: _read(model, options), chip, options, "read")


def compile_dump(dump: str, chip: Given | Sequence[Hcd | str | Path], options: Options | None = None, after: str = "read") -> Compiled:
    """Runs the stages that follow ``after`` on a file that ``--dump`` made of that stage."""
    return compile_made(lambda: load_graph(dump), chip, options if options is not None else Options(), after)


def compile_made(
    make: Callable[[], Graph], chip: Given | Sequence[Hcd | str | Path], options: Options | None = None, after: str = "read"
) -> Compiled:
    """Runs the stages that follow ``after`` on the graph that ``make`` makes, and again on another one without the nodes that do not fit in
    the memory on a chip: the host runs them, or they are refused, as the policy says. Once places are given, they are refused."""
    too_large: dict[str, dict[str, Reason]] = {}
    while True:
        try:
            return compile_graph(make(), chip, options, after, too_large)
        except OffChipError as e:
            policy = options.policy if options is not None and options.policy is not None else policy_of(board_of(chip))
            if policy.fallback == "error" or STAGES.index(after) >= STAGES.index("place") or not _told(too_large, e.needs, e.origin):
                raise
        except DoesNotFitError as e:
            if STAGES.index(after) >= STAGES.index("place"):
                e.hint = f"compile from a stage before place, which can send it to the host: the dump after {after} has its place"
                raise
            if not _told(too_large, e.needs, e.origin):
                raise


def _told(too_large: dict[str, dict[str, Reason]], needs: Mapping[str, tuple[str, str]], origin: str) -> bool:
    """Whether nodes that do not fit were not known yet; they are from now on."""
    found = {node: held for node, held in needs.items() if node not in too_large.get(held[0], {})}
    for node, (name, sentence) in found.items():
        too_large.setdefault(name, {})[node] = sentence, origin
    return bool(found)


def _read(model: Any, options: Options) -> Graph:
    graph = read_model(model, options)
    _passed("read", graph, options)
    return graph


def read_model(model: Any, options: Options) -> Graph:
    """The read stage."""
    kernels.load_all()
    return widen(read(model, shapes=options.shapes, evaluate=evaluate))


def compile_graph(
    graph: Graph,
    chip: Given | Sequence[Hcd | str | Path],
    options: Options | None = None,
    after: str = "read",
    too_large: Mapping[str, Mapping[str, Reason]] = NOTHING,
) -> Compiled:
    """Runs the stages that follow ``after`` on a graph, one just read or a dump of that stage. The graph is changed. ``too_large`` says, by
    chip and model node, why a node does not fit on it; raises DoesNotFitError, which tells that, for others that do not."""
    options = options if options is not None else Options()
    board = board_of(chip)
    ops.load_all()
    kernels.load_all()
    limits = PlanLimits(board)
    limits.check_pool(options.chips.pool)
    limits.check_queues(options.chips.depth, options.chips.asynchronous)
    feed_as(graph, options.input_layouts, board)
    mapper = Mapper(board, options.precision, options.policy, options.fusion_level, too_large=too_large)
    for stage in STAGES[STAGES.index(after) + 1 :]:
        match stage:
            case "canonicalize":
                canonicalize(graph, mapper.record.tracer)
            case "recognise":
                recognise(graph, mapper.record.tracer)
            case "legalize":
                mapper.legalize(graph)
                graph.prune()
            case "place":
                mapper.place(graph)
            case "fuse":
                mapper.group(graph)
                fuse(graph, mapper.record.tracer, mapper.gate)
            case "chain":
                chain(graph, mapper.record.tracer, mapper.gate)
            case "layouts":
                mapper.layouts(graph, choose_all(graph, mapper.devices()))
        _passed(stage, graph, options)
    devices = mapper.devices()
    depth_first = options.fusion_level >= AGGRESSIVE
    asked = replace(options.chips, depth_first=depth_first, memory_effort=options.memory_effort, host=speed_of(board))
    program, composed = schedule(graph, devices, mapper.chips(), asked)
    if program.chips and limits.steps is not None and len(program.steps) > limits.steps:
        program, composed = schedule(graph, devices, mapper.chips(), replace(asked, few=True))
    limits.check_memory(program)
    mapper.record.paths, mapper.record.power = composed.paths, powered(composed.estimates)
    mapper.complete(graph, program)
    if not mapper.is_cpu or options.keep_decisions:
        program.decisions = mapper.record.compact()
    plan = write_plan(program, model_digest=graph.digest, hcd_digest=board.digest, device=device_record(devices.host))
    limits.check(program, plan)
    return Compiled(plan, program, graph, mapper.record, _report(plan, program, mapper.record, composed), composed.estimates)


def query_model(model: Any, chip: Given | Sequence[Hcd | str | Path], options: Options | None = None) -> list[dict[str, Any]]:
    """What a chip, or several in one plan, would do with every node of a model: rows of node, operator, verdict, device, unit, dtype,
    reason, origin."""
    options = options if options is not None else Options()
    board = board_of(chip)
    graph = read_model(model, options)
    canonicalize(graph)
    recognise(graph)
    policy = options.policy if options.policy is not None else policy_of(board)
    return verdict_rows(graph, board, policy, options.precision)


def _passed(stage: str, graph: Graph, options: Options) -> None:
    if spec.is_enabled():
        spec.check(graph, stage)
    options.observe(stage, graph)


def canonicalize(graph: Graph, tracer: Tracer | None = None) -> None:
    """One spelling per idea: constants folded, twins merged, dead nodes gone."""
    run_rules(graph, rules_in(flaot.rules.canonicalize, evaluate=evaluate), tracer)
    graph.prune()


def recognise(graph: Graph, tracer: Tracer | None = None) -> None:
    """Composite ops found again in their decomposed form."""
    run_rules(graph, [*rules_in(flaot.rules.recognise), *movements()], tracer)
    graph.prune()


def fuse(graph: Graph, tracer: Tracer | None = None, gate: Gate = one_place) -> None:
    """Bias, activation and residual into the node that makes the value; on a chip, what its fusions hold."""
    run_rules(graph, rules_in(flaot.rules.fuse), tracer, gate)
    graph.prune()


def chain(graph: Graph, tracer: Tracer | None = None, gate: Gate = one_place) -> None:
    """What is left of element-wise ops, one node per chain."""
    run_rules(graph, rules_in(flaot.rules.chain), tracer, gate)
    graph.prune()


def _report(plan: bytes, program: Program, record: Record, composed: Composed) -> dict[str, Any]:
    constants = {id(v.buffer): v.buffer.nbytes for s in program.steps for v in s.inputs if v.buffer.data is not None}
    return {
        "digest": plan_digest(plan).hex(),
        "plan_bytes": len(plan),
        "inputs": [{"name": p.name, "dtype": p.view.dtype.name, "shape": list(p.view.dims)} for p in program.inputs],
        "outputs": [{"name": p.name, "dtype": p.view.dtype.name, "shape": list(p.view.dims)} for p in program.outputs],
        "steps": len(program.steps),
        "constants_bytes": sum(constants.values()),
        "relayouts": [_conversion(i) for i in record.inserted if i.kind == "Relayout"],
        "mapping": record.summary(),
        "memory": {
            "arena_bytes": program.arena,
            "lower_bound_bytes": program.lower_bound,
            "ratio": program.arena / program.lower_bound if program.lower_bound else 1.0,
        },
        **_estimated(composed),
    }


def _estimated(composed: Composed) -> dict[str, Any]:
    """The estimate of the first chip, and under ``chips`` of every one."""
    if not composed.estimates:
        return {}
    first, *_ = every = [e.to_json() for e in composed.estimates]
    return {"estimate": {**first, "chips": every}}


def _conversion(inserted: Inserted) -> dict[str, Any]:
    return {"value": inserted.value, "nbytes": inserted.nbytes, "wanted_by": inserted.wanted_by}

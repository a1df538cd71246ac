"""The compiler on one screen: the stages in order, and nothing else knows that order.

    read -> canonicalize -> recognise -> fuse -> chain -> layouts -> schedule -> write

Fusion comes before layouts: what a kernel absorbs decides which storage it wants, and the fused node has one label instead of three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flaot.kernels.base as kernels
import flaot.rules.canonicalize
import flaot.rules.chain
import flaot.rules.fuse
import flaot.rules.recognise
from flaot.errors import UsageError
from flaot.frontend import read
from flaot.hcd import Hcd, load_hcd
from flaot.ir import op as ops
from flaot.ir import spec
from flaot.ir.graph import Graph
from flaot.ir.ops.attention import Attention
from flaot.mapping.layout import Conversion, assign_layouts
from flaot.plan.program import Program
from flaot.plan.write import plan_digest, write_plan
from flaot.rewrite import rules_in, run_rules
from flaot.rules.expand import expand_all, movements
from flaot.schedule.build import choose_all, schedule
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import Cpu, cpu_of, device_record

STAGES = ("read", "canonicalize", "recognise", "fuse", "chain", "layouts")
"""Stages whose graph can be dumped."""

PRECISIONS = ("default", "high")


@dataclass(frozen=True)
class Options:
    """How to compile. ``shapes`` binds inputs (``{"x": (1, 3, 224, 224)}``) and symbols (``{"batch": 1}``); ``precision`` is "default",
    or "high" for no kernel that approximates (Winograd); ``observe`` is called after every stage with its name and graph."""

    shapes: Mapping[str, tuple[int, ...] | int] = field(default_factory=dict)
    precision: str = "default"
    observe: Callable[[str, Graph], None] = lambda stage, graph: None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UsageError(f"precision {self.precision!r}; allowed are {', '.join(PRECISIONS)}")


@dataclass
class Compiled:
    """The bytes of a ``.flp`` file with what is known about them: the program they hold, the graph as it was scheduled, the rearrangements
    that layouts cost, and ``report``, what ``flaot compile --json`` prints (sizes in bytes)."""

    plan: bytes
    program: Program
    graph: Graph
    conversions: list[Conversion]
    report: dict[str, Any]


def compile_model(model: Any, chip: Hcd | str | Path = "host", options: Options | None = None) -> Compiled:
    """Compiles a model (path, bytes or ModelProto) for a chip. Raises FlaotError subclasses only."""
    options = options if options is not None else Options()
    kernels.load_all()
    graph = read(model, shapes=options.shapes, evaluate=evaluate)
    _passed("read", graph, options)
    return compile_graph(graph, chip, options)


def compile_graph(graph: Graph, chip: Hcd | str | Path, options: Options | None = None, after: str = "read") -> Compiled:
    """Runs the stages that follow ``after`` on a graph, one just read or a dump of that stage. The graph is changed."""
    options = options if options is not None else Options()
    hcd = chip if isinstance(chip, Hcd) else load_hcd(chip)
    cpu = cpu_of(hcd, precision_high=options.precision == "high")
    ops.load_all()
    kernels.load_all()

    conversions: list[Conversion] = []
    for stage in STAGES[STAGES.index(after) + 1 :]:
        match stage:
            case "canonicalize":
                canonicalize(graph)
            case "recognise":
                recognise(graph)
            case "fuse":
                fuse(graph)
            case "chain":
                chain(graph)
            case "layouts":
                conversions = layouts(graph, cpu)
        _passed(stage, graph, options)
    program = schedule(graph, cpu)
    plan = write_plan(program, model_digest=graph.digest, hcd_digest=hcd.digest, device=device_record(hcd, cpu))
    return Compiled(plan, program, graph, conversions, _report(plan, program, conversions))


def _passed(stage: str, graph: Graph, options: Options) -> None:
    if spec.is_enabled():
        spec.check(graph, stage)
    options.observe(stage, graph)


def canonicalize(graph: Graph) -> None:
    """One spelling per idea: constants folded, twins merged, dead nodes gone."""
    run_rules(graph, rules_in(flaot.rules.canonicalize, evaluate=evaluate))
    graph.prune()


def recognise(graph: Graph) -> None:
    """Composite ops found again in their decomposed form; Attention is said in products again, which is what a CPU runs fastest."""
    run_rules(graph, [*rules_in(flaot.rules.recognise), *movements()])
    expand_all(graph, lambda node: isinstance(node.op, Attention))
    graph.prune()


def fuse(graph: Graph) -> None:
    """Bias, activation and residual into the node that makes the value."""
    run_rules(graph, rules_in(flaot.rules.fuse))
    graph.prune()


def chain(graph: Graph) -> None:
    """What is left of element-wise ops, one node per chain."""
    run_rules(graph, rules_in(flaot.rules.chain))
    graph.prune()


def layouts(graph: Graph, cpu: Cpu) -> list[Conversion]:
    """Storage of every value; Relayout nodes where two disagree."""
    return assign_layouts(graph, choose_all(graph, cpu))


def _report(plan: bytes, program: Program, conversions: list[Conversion]) -> dict[str, Any]:
    constants = {id(v.buffer): v.buffer.nbytes for s in program.steps for v in s.inputs if v.buffer.data is not None}
    return {
        "digest": plan_digest(plan).hex(),
        "plan_bytes": len(plan),
        "inputs": [{"name": p.name, "dtype": p.view.dtype.name, "shape": list(p.view.dims)} for p in program.inputs],
        "outputs": [{"name": p.name, "dtype": p.view.dtype.name, "shape": list(p.view.dims)} for p in program.outputs],
        "steps": len(program.steps),
        "constants_bytes": sum(constants.values()),
        "relayouts": [c.__dict__ for c in conversions],
        "memory": {
            "arena_bytes": program.arena,
            "lower_bound_bytes": program.lower_bound,
            "ratio": program.arena / program.lower_bound if program.lower_bound else 1.0,
        },
    }

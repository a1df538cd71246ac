"""``flaot compile``: an ONNX model into a plan."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from flaot.cli import console, progress
from flaot.cli.mapping import LEVELS, board, chip_options, chips_option, layouts, limits, mapping_options, policy
from flaot.cli.options import FILE, json_option, shapes
from flaot.errors import FlaotError, UsageError, located, printable
from flaot.files import check_output, write_file

EPILOG = """\b
Examples:
  flaot compile model.onnx                              writes model.flp for this machine
  flaot compile model.onnx --hcd generic_cpu -o m.flp
  flaot compile model.onnx --shape x=1,3,224,224 --shape batch=1
  flaot compile model.onnx --dump after=fuse:fused.txt
  flaot compile fused.txt --from fuse -o m.flp           goes on from a dump
  flaot compile model.onnx --hcd npu_v3 --fallback error --explain decisions.json
  flaot compile model.onnx --hcd npu_v3 --route Softmax=host --route '/encoder/3/*=host' -v
  flaot compile model.onnx --hcd npu_v3 --allow-expand Attention
  flaot compile model.onnx --hcd npu_v3 --hcd x86_64_avx2               the second is the host, as it is a CPU
  flaot compile model.onnx --hcd npu_v3 --hcd npu_v2 --route Conv=npu_v2
  flaot compile model.onnx --hcd npu_v3 --memory-pool-size 4096 --queue-depth 8 --json | jq .estimate
  flaot compile model.onnx --hcd edge_dsp --json | jq '.estimate | {energy_uj, average_mw, peak_mw, cap_mw}'
  flaot compile model.onnx --memory-effort 1000000       searches long for the smallest arena
  flaot compile model.onnx --json | jq .memory.arena_bytes"""


@click.command("compile", epilog=EPILOG)
@click.argument("model", type=FILE)
@chips_option
@click.option("-o", "--output", type=FILE, metavar="PLAN", help="Plan to write; without it MODEL's name with .flp in this folder.")
@click.option("--shape", multiple=True, metavar="NAME=SIZES", help="Bind an input's shape or a symbol; repeatable.")
@mapping_options
@click.option("--fusion-level", type=click.Choice(LEVELS), default="balanced", show_default=True, help="Fusions of the chip to use.")
@click.option("--input-layout", multiple=True, metavar="NAME=LAYOUT", help="Feed an input in this order, such as x=NHWC; repeatable.")
@chip_options
@click.option("--memory-effort", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Nodes the memory planner may search.")
@click.option("--explain", type=FILE, metavar="FILE.json", help="Write the record of every decision.")
@click.option("--keep-decisions", is_flag=True, help="Keep that record in the plan of a CPU chip too, for 'flaot inspect --why'.")
@click.option("-v", "--verbose", is_flag=True, help="Print one line per mapped node.")
@click.option("--from", "after", metavar="STAGE", help="MODEL is not ONNX but a dump written after this stage; go on from there.")
@click.option("--dump", multiple=True, metavar="after=STAGE[:FILE]", help="Write the graph after a stage as text; repeatable.")
@json_option
def command(
    model: str,
    hcd: tuple[str, ...],
    output: str | None,
    shape: tuple[str, ...],
    fusion_level: str,
    input_layout: tuple[str, ...],
    memory_effort: int | None,
    explain: str | None,
    keep_decisions: bool,
    verbose: bool,
    after: str | None,
    dump: tuple[str, ...],
    as_json: bool,
    **mapping: Any,
) -> None:
    """Compile MODEL (an ONNX file) into a plan that 'flaot run' replays."""
    begin = time.perf_counter()
    target = output if output is not None else Path(model).stem + ".flp"
    if output is None and target == Path(model).name:
        raise UsageError(f"{printable(model, 200)} is a plan by its name; compile takes an ONNX model (or name the plan to write with -o)")
    chip = board(hcd, "host")
    read = [model, *chip.files, *([mapping["routes"]] if mapping["routes"] is not None else [])]
    taken = _outputs(target, explain, read)
    bindings = shapes(shape)
    dumps = _dumps(dump, read, taken, as_json)

    from flaot.pipeline import STAGES, Options, compile_model

    names = (*STAGES, "schedule and write")
    with progress.bar(len(names), as_json) as begin_part:

        def observe(stage: str, graph: Any) -> None:
            dumps(stage, graph)
            begin_part(names[names.index(stage) + 1])

        begin_part(names[0])
        options = Options(
            bindings, mapping["precision"], policy(chip, mapping), LEVELS.index(fusion_level), layouts(input_layout), keep_decisions,
            limits(mapping), memory_effort, observe,
        )
        try:
            compiled = compile_model(model, chip, options) if after is None else _go_on(model, chip, options, after)
        except FlaotError as e:
            raise located(e, printable(model, 300)) from e.__cause__
    write_file(target, compiled.plan)
    if explain is not None:
        write_file(explain, json.dumps(compiled.record.to_json(), indent=1).encode())
    document = {"plan": target, "chip": chip.name, "seconds": round(time.perf_counter() - begin, 3), **compiled.report}
    if as_json:
        console.document(document)
        return
    _show(model, document)
    for line in (line for e in compiled.estimates for line in e.lines()):
        console.out(f"  {line}")
    for line in compiled.record.summary_lines() if chip.chips or verbose else ():
        console.out(f"  {line}")
    for decision in compiled.record.decisions if verbose else ():
        console.out(f"  {mapped_line(decision)}")


def _outputs(plan: str, explain: str | None, read: Sequence[str]) -> set[str]:
    """The files that plan and record are written to. Raises UsageError for one that is read, or both."""
    taken = {check_output(plan, read)}
    if explain is not None:
        real = check_output(explain, read)
        if real in taken:
            raise UsageError(f"--explain {printable(explain)}: the plan goes to that file")
        taken.add(real)
    return taken


def mapped_line(d: Any) -> str:
    """``/conv1 Conv -> conv_f32, float16 NHWC, on NPU-V3.fp16``."""
    name = printable(d.node[0] if d.node else "")
    form = " ".join(x for x in (d.dtype, d.layout) if x)
    return f"{name} {d.op} -> {d.step}, {form}, {d.verdict} on {d.device}{f'.{d.unit}' if d.unit else ''}"


def _go_on(dump: str, chip: Any, options: Any, after: str) -> Any:
    """Compiles a dumped graph from the stage after ``after`` on."""
    from flaot.pipeline import compile_dump

    _check_stage("--from", after)
    if options.shapes:
        raise UsageError("--shape with --from: a dump has its shapes")
    return compile_dump(dump, chip, options, after)


def _check_stage(flag: str, stage: str) -> None:
    from flaot.pipeline import STAGES

    if stage not in STAGES:
        raise UsageError(f"{flag}: there is no stage '{printable(stage)}'; the stages are {', '.join(STAGES)}")


class _dumps:
    """Writes the text of every graph that was asked for, at the stage it was asked for."""

    def __init__(self, asked: tuple[str, ...], read: Sequence[str], others: Collection[str], as_json: bool) -> None:
        self.files: dict[str, str] = {}
        taken = set(others)
        for text in asked:
            stage, _, file = text.removeprefix("after=").partition(":")
            if not text.startswith("after=") or not stage:
                raise UsageError(f"--dump {printable(text)}: expected after=STAGE or after=STAGE:FILE")
            if as_json and not file:
                raise UsageError(f"--dump {printable(text)} with --json: standard output holds one document; name a file, after=STAGE:FILE")
            if file:
                real = check_output(file, read)
                if real in taken:
                    raise UsageError(f"--dump {printable(text)}: another output goes to that file")
                taken.add(real)
            self.files[stage] = file
        self._check_stages()

    def _check_stages(self) -> None:
        for stage in self.files:
            _check_stage("--dump", stage)

    def __call__(self, stage: str, graph: Any) -> None:
        if stage not in self.files:
            return
        from flaot.ir.text import blob_file, print_graph

        text = print_graph(graph)
        if self.files[stage]:
            write_file(self.files[stage], text.encode())
            write_file(self.files[stage] + ".npz", blob_file(graph))
        else:
            console.out(text.rstrip("\n"))


def _show(model: str, d: dict[str, Any]) -> None:
    memory = d["memory"]
    console.out(f"{printable(model, 200)} -> {printable(d['plan'], 200)} for {d['chip']} in {d['seconds']:.2f} s")
    arena, bound = memory["arena_bytes"], memory["lower_bound_bytes"]
    rows = [
        ("plan", f"{console.size(d['plan_bytes'])}, of which constants {console.size(d['constants_bytes'])}"),
        ("steps", f"{d['steps']}"),
        ("arena", f"{arena} bytes; lower bound {bound} (what is alive at one step), ratio {memory['ratio']:.3f}"),
        ("digest", d["digest"][:32]),
    ]
    for name, text in rows:
        console.out(f"  {name:9} {text}")

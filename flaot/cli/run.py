"""``flaot run``: replay a plan. What it does is in :mod:`flaot.cli.running`."""

from __future__ import annotations

import click

from flaot.cli.options import FILE, adapters_option, input_options, json_option, thread_option
from flaot.cli.running import run_plan

EPILOG = """\b
Examples:
  flaot run model.flp                                   seeded random inputs
  flaot run model.flp --inputs feeds.npz --outputs out.npz
  flaot run model.flp --input x=x.npy --input h=h.npy
  flaot run model.flp --repeat 100 --threads 2
  flaot run model.flp --profile
  flaot run npu.flp --trace npu.json                    and open it in ui.perfetto.dev"""


@click.command("run", epilog=EPILOG)
@click.argument("plan", type=FILE)
@input_options
@click.option("--outputs", type=FILE, metavar="OUT.npz", help="Save every output by name.")
@thread_option
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1, 10**9), help="Run this often and show the times.")
@click.option("--profile", is_flag=True, help="Show the time of every step; of a plan with chips, of every node, and write the trace.")
@click.option("--trace", type=FILE, metavar="FILE.json", help="Trace of the chips for Perfetto; --profile alone names it PLAN.trace.json.")
@adapters_option
@json_option
def command(
    plan: str,
    inputs: str | None,
    single: tuple[str, ...],
    seed: int,
    outputs: str | None,
    threads: int,
    repeat: int,
    profile: bool,
    as_json: bool,
    adapter: tuple[str, ...],
    trace: str | None,
) -> None:
    """Run PLAN and show its outputs. Inputs that are not given are drawn from --seed."""
    run_plan(plan, inputs, single, seed, outputs, threads, repeat, profile, as_json, adapter, trace)

"""``flaot verify``: a plan against onnxruntime."""

from __future__ import annotations

from typing import Any

import click

from flaot.cli import console, progress
from flaot.cli.options import FILE, adapters_option, input_options, json_option, pairs, thread_option
from flaot.errors import CheckFailed, printable

EPILOG = """\b
Examples:
  flaot verify model.flp model.onnx                     seeded random inputs
  flaot verify model.flp model.onnx --inputs feeds.npz
  flaot verify model.flp model.onnx --layers            every surviving intermediate"""


@click.command("verify", epilog=EPILOG)
@click.argument("plan", type=FILE)
@click.argument("model", type=FILE)
@input_options
@click.option("--layers", is_flag=True, help="Compare every intermediate that survives in the plan, and name the first that differs.")
@thread_option
@adapters_option
@json_option
def command(
    plan: str, model: str, inputs: str | None, single: tuple[str, ...], seed: int, layers: bool, threads: int, adapter: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run PLAN and its MODEL (by onnxruntime) on the same inputs and compare. Exit code 1 when they differ."""
    files = pairs("--input", single, "NAME=X.npy")

    from flaot.verify import verify_files

    with progress.spinner("running the plan and onnxruntime on the same inputs", as_json):
        result = verify_files(plan, model, inputs, files, seed=seed, layers=layers, threads=threads, adapter=adapter)
    document = result.to_json()
    failure = None if result.ok else CheckFailed(result.sentence, where=printable(plan, 200), hint=result.hint)
    if as_json:
        console.document(document if failure is None else {**document, **failure.to_json()})
    else:
        _show(document)
    if failure is None:
        return 0
    console.err(f"flaot: error: {failure}")
    return failure.exit_code


def _show(d: dict[str, Any]) -> None:
    for key, title in (("layers", "Intermediates, in order of execution"), ("outputs", "Outputs")):
        if d[key]:
            console.out(f"{title}")
            rows = [
                [r["verdict"], r["name"], r["type"], f"{r['max_abs']:.3g}", f"{r['max_rel']:.3g}", _snr(r["snr_db"]), r["op"]]
                for r in d[key]
            ]
            console.table(rows, ["", "value", "type", "max abs", "max rel", "SNR dB", "op"])
    if any(r["verdict"] == "ok*" for r in (*d["layers"], *d["outputs"])):
        console.out("* ill-conditioned: onnxruntime's own result moves as far when every operation is off by a rounding")
    if d["ok"]:
        console.out(d["summary"])


def _snr(value: float | None) -> str:
    return "exact" if value is None else f"{value:.1f}"

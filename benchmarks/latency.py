"""Latency of flaot over onnxruntime with all its optimisations: ``python -m benchmarks.latency [names] [--json FILE]``.

One thread unless --threads says otherwise; blocks of calls taken in turn in this process; CPU time per call with one thread, else
wall time. The ratio is of the medians; that of the minima, what the work takes when nothing disturbs it, stands beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import flaot
from benchmarks.catalogue import Entry, entries
from benchmarks.timing import interleaved
from flaot.errors import FlaotError
from flaot.pipeline import Options, compile_model

TARGETS = {"resnet18": 0.70, "resnet50": 0.95, "mobilenet_v2": 1.05, "encoder_4x256": 1.05, "lstm_tagger": 0.9}
CLASS_TARGETS = {"rnn": 0.9, "tiny": 0.8}
ANY_TARGET = 1.4
CONV_MEAN_TARGET = 1.0


def onnxruntime_session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def measure(entry: Entry, hcd: str, threads: int, seconds: float) -> dict[str, Any]:
    """One row: milliseconds of both, the ratio, the classes and what is asked of it."""
    compiled = compile_model(entry.path, hcd, Options(shapes=entry.shapes))
    flops = sum(n.op.cost(n.input_types, n.output_types).flops for n in compiled.graph.nodes())
    ours = flaot.Session(compiled.plan, threads=threads)
    theirs = onnxruntime_session(entry.path, threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    mine, other = interleaved([lambda: ours.run(None, entry.feeds), lambda: theirs.run(None, entry.feeds)], seconds, clock)
    classes = entry.classes(flops)
    targets = [TARGETS.get(entry.name, ANY_TARGET), *(CLASS_TARGETS.get(c, ANY_TARGET) for c in classes)]
    return {
        "name": entry.name, "sample": entry.sample, "classes": sorted(classes), "mflop": flops / 1e6,
        "flaot_ms": mine.median, "onnxruntime_ms": other.median, "ratio": mine.median / other.median,
        "flaot_least_ms": mine.minimum, "onnxruntime_least_ms": other.minimum,
        "least_ratio": mine.minimum / other.minimum, "target": min(targets),
    }  # fmt: skip


def line(row: dict[str, Any]) -> str:
    verdict = "" if row["ratio"] <= row["target"] else "  above"
    return (
        f"{row['name']:22} {','.join(row['classes']):10} {row['mflop']:9.1f} {row['flaot_ms']:9.3f} {row['onnxruntime_ms']:9.3f}"
        f" {row['ratio']:6.2f} {row['least_ratio']:6.2f} {row['target']:6.2f}{verdict}"
    )


def mean(rows: list[dict[str, Any]]) -> float:
    return statistics.geometric_mean(r["ratio"] for r in rows) if rows else float("nan")


def run(names: list[str], hcd: str = "host", threads: int = 1, seconds: float = 1.5) -> dict[str, Any]:
    """Measures and prints the models one by one, then the means."""
    print(f"{'model':22} {'class':10} {'MFLOP':>9} {'flaot ms':>9} {'ort ms':>9} {'ratio':>6} {'least':>6} {'target':>6}")
    rows = []
    for entry in entries(names):
        try:
            rows.append(measure(entry, hcd, threads, seconds))
            print(line(rows[-1]), flush=True)
        except FlaotError as e:
            print(f"{entry.name:22} {e}", flush=True)
    means = {
        "all": mean(rows),
        "conv of the real models": mean([r for r in rows if "conv" in r["classes"] and not r["sample"]]),
        **{c: mean([r for r in rows if c in r["classes"]]) for c in ("conv", "rnn", "dense", "tiny")},
    }
    print("geometric means: " + ", ".join(f"{k} {v:.2f}" for k, v in means.items()))
    print(f"targets: mean of conv of the real models {CONV_MEAN_TARGET:.2f}, no model above {ANY_TARGET:.2f}")
    return {"threads": threads, "hcd": hcd, "models": rows, "means": means}


def scaling(name: str = "resnet50", hcd: str = "host", seconds: float = 6.0) -> dict[str, float]:
    """How much faster two threads are than one, by wall time."""
    (entry,) = entries([name])
    plan = compile_model(entry.path, hcd, Options(shapes=entry.shapes)).plan
    one, two = flaot.Session(plan, threads=1), flaot.Session(plan, threads=2)
    single, double = interleaved([lambda: one.run(None, entry.feeds), lambda: two.run(None, entry.feeds)], seconds, time.perf_counter)
    speedup = single.median / double.median
    print(f"{name}: {single.median:.1f} ms with one thread, {double.median:.1f} with two: {speedup:.2f} times faster (target 1.6)")
    return {"one_ms": single.median, "two_ms": double.median, "speedup": speedup}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="models; all when left out")
    parser.add_argument("--hcd", default="host")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.5, help="per model")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    result = run(args.names, args.hcd, args.threads, args.seconds)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

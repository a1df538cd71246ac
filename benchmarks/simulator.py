"""Time of a simulated chip over that of the host's float32 plan: ``python -m benchmarks.simulator [names] [--hcd npu_v3] [--threads N]``.

Both sides have the same number of threads and take blocks of calls in turn in this process; CPU time per call with one thread, else
wall time. The ratio is of the medians, that of the minima stands beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import flaot
from benchmarks.catalogue import Entry, entries
from benchmarks.timing import interleaved
from flaot.pipeline import Options, compile_model

NAMES = ["resnet50", "mobilenet_v2", "encoder_4x256", "dnsmos"]
TARGETS = {"resnet50": 3.0}


def measure(entry: Entry, hcd: str, threads: int, seconds: float) -> dict[str, Any]:
    """One row: milliseconds of host and simulator, their ratio and what is asked of it (None: nothing)."""
    plans = [compile_model(entry.path, chip, Options(shapes=entry.shapes)).plan for chip in ("host", hcd)]
    host, simulator = (flaot.Session(plan, threads=threads) for plan in plans)
    clock = time.process_time if threads == 1 else time.perf_counter
    real, simulated = interleaved([lambda: host.run(None, entry.feeds), lambda: simulator.run(None, entry.feeds)], seconds, clock)
    return {
        "name": entry.name, "host_ms": real.median, "simulator_ms": simulated.median, "ratio": simulated.median / real.median,
        "least_ratio": simulated.minimum / real.minimum, "target": TARGETS.get(entry.name),
    }  # fmt: skip


def run(names: list[str], hcd: str = "npu_v3", threads: int = 1, seconds: float = 4.0) -> dict[str, Any]:
    """Measures and prints the models one by one."""
    print(f"{'model':22} {'host ms':>9} {'sim ms':>9} {'ratio':>6} {'least':>6} {'target':>6}")
    rows = []
    for entry in entries(names or NAMES):
        row = measure(entry, hcd, threads, seconds)
        target = "" if row["target"] is None else f"{row['target']:.2f}{'' if row['ratio'] <= row['target'] else '  above'}"
        print(
            f"{row['name']:22} {row['host_ms']:9.2f} {row['simulator_ms']:9.2f} {row['ratio']:6.2f} {row['least_ratio']:6.2f} {target:>6}",
            flush=True,
        )
        rows.append(row)
    return {"threads": threads, "hcd": hcd, "models": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=f"models; {', '.join(NAMES)} when left out")
    parser.add_argument("--hcd", default="npu_v3")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="per model")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    result = run(args.names, args.hcd, args.threads, args.seconds)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

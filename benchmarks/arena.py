"""Arena bytes over the live-size lower bound, for every model: ``python -m benchmarks.arena``."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.catalogue import entries
from flaot.errors import FlaotError
from flaot.pipeline import Options, compile_model

MEAN_TARGET, WORST_TARGET = 1.05, 1.15


def run(names: list[str] | None = None, hcd: str = "host") -> dict[str, Any]:
    """Prints and returns the ratios."""
    rows = []
    for entry in entries(names or []):
        try:
            memory = compile_model(entry.path, hcd, Options(shapes=entry.shapes)).report["memory"]
        except FlaotError as e:
            print(f"{entry.name:22} {e}")
            continue
        ratio = memory["arena_bytes"] / memory["lower_bound_bytes"] if memory["lower_bound_bytes"] else 1.0
        rows.append({"name": entry.name, "arena": memory["arena_bytes"], "bound": memory["lower_bound_bytes"], "ratio": ratio})
        print(f"{entry.name:22} {rows[-1]['arena']:12,} {rows[-1]['bound']:12,} {ratio:6.3f}", flush=True)
    ratios = [r["ratio"] for r in rows]
    mean, worst = statistics.geometric_mean(ratios), max(ratios)
    print(f"geometric mean {mean:.3f} (target {MEAN_TARGET}), worst {worst:.3f} (target {WORST_TARGET})")
    return {"models": rows, "mean": mean, "worst": worst}


if __name__ == "__main__":
    run()

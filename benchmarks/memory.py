"""The memory planner: MiniMalloc's challenge instances (of the folder FLAOT_MINIMALLOC names) and the memories of the real models, host and
npu_v3: ``python -m benchmarks.memory``.

For an instance, ``orders`` and ``plan`` are the bytes over the live-size lower bound that the greedy orders and the planner as
``compile`` runs it need; then come the nodes and seconds in which a long search fits it into its capacity.
"""

from __future__ import annotations

import time
from typing import Any

from flaot.errors import FlaotError
from flaot.hcd import load_hcd
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.schedule.memory import greedy, lower_bound, plan
from flaot.schedule.search import Search
from tests.models.manifest import Model, models
from tests.schedule.minimalloc import Instance, challenges

EFFORT = 1_000_000
SECONDS, FITTING, WORST, WORST_ON_CHIP = 60, 8, 1.15, 1.1
"""Targets: seconds for each instance, how many fit, bytes over bound of any model's memory."""

CHIPS = ("host", "npu_v3")


def run(names: list[str] | None = None) -> dict[str, Any]:
    """Prints and returns both tables; ``names`` are models."""
    return {"instances": _instances(), "models": _models(names or [])}


def _instances() -> list[dict[str, Any]]:
    rows = []
    print(f"{'instance':8} {'buffers':>7} {'bound':>10} {'capacity':>10} {'orders':>7} {'plan':>7} {'nodes':>9} {'seconds':>8}  fits")
    for instance in challenges():
        rows.append(_instance(instance))
        r = rows[-1]
        print(
            f"{r['name']:8} {r['buffers']:7} {r['bound']:10,} {r['capacity']:10,} {r['orders']:7.3f} {r['plan']:7.3f} {r['nodes']:9,} "
            f"{r['seconds']:8.2f}  {'yes' if r['fits'] else 'no'}",
            flush=True,
        )
    fitting = sum(r["fits"] and r["seconds"] <= SECONDS for r in rows)
    print(f"{fitting} of {len(rows)} fit within {SECONDS} s each (target {FITTING})" if rows else "FLAOT_MINIMALLOC is not set")
    return rows


def _instance(instance: Instance) -> dict[str, Any]:
    blocks = instance.blocks
    bound = lower_bound(blocks)
    search = Search([b.size for b in blocks], [b.start for b in blocks], [b.end for b in blocks])
    begin = time.process_time()
    found = search.within(instance.capacity, EFFORT)
    seconds = time.process_time() - begin
    return {
        "name": instance.name, "buffers": len(blocks), "bound": bound, "capacity": instance.capacity,
        "orders": greedy(blocks)[1] / bound, "plan": plan(blocks)[1] / bound,
        "nodes": found.nodes, "seconds": seconds, "fits": found.offsets is not None,
    }


def _models(names: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    print(f"\n{'model':22} {'chip':8} {'memory':10} {'bound':>12} {'orders':>7} {'plan':>7}")
    for model in (m for m in models().values() if m.row["set"] == "open" and (not names or m.name in names)):
        for chip in CHIPS:
            try:
                orders, planned = (_memories(_compiled(model, chip, effort)) for effort in (0, None))
            except FlaotError as e:
                print(f"{model.name:22} not compiled for {chip}: {type(e).__name__}")
                continue
            for (memory, bound, size), (_, _, less) in zip(orders, planned, strict=True):
                ratios = {"orders": size / bound, "plan": less / bound}
                rows.append({"model": model.name, "chip": chip, "memory": memory, "bound": bound, **ratios})
                print(f"{model.name:22} {chip:8} {memory:10} {bound:12,} {rows[-1]['orders']:7.3f} {rows[-1]['plan']:7.3f}", flush=True)
    worst = {key: max((r[key] for r in rows), default=1.0) for key in ("orders", "plan")}
    print(f"worst: orders {worst['orders']:.3f}, plan {worst['plan']:.3f} (target {WORST}, on a chip {WORST_ON_CHIP})")
    return rows


def _compiled(model: Model, chip: str, effort: int | None) -> Compiled:
    hcd = load_hcd(chip)
    return compile_model(model.path, hcd, Options(model.shapes, policy=policy_of(hcd, fallback="allow"), memory_effort=effort))


def _memories(compiled: Compiled) -> list[tuple[str, int, int]]:
    """Name, lower bound and size in bytes of every memory that holds something."""
    program = compiled.program
    named = [("host", program.lower_bound, program.arena), *((c.name, c.lower_bound, c.arena) for c in program.chips)]
    return [m for m in named if m[1]]


if __name__ == "__main__":
    run()

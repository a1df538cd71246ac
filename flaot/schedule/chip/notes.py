"""Path choices as rows of the record of decisions."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.mapping.decisions import Pathed, Powered, Way
from flaot.plan.program import Program, Step
from flaot.schedule.chip.estimate import Estimate
from flaot.schedule.chip.residency import Choice, Residency
from flaot.schedule.chip.stripes import Stripes
from flaot.schedule.chip.tiles import Tiling

KEPT = 4
"""Candidates that are kept beside the one taken."""


def notes(steps: Sequence[Step], program: Program, residencies: dict[int, Residency]) -> list[Pathed]:
    """One row per step that computes; ``steps`` are those before tiling."""
    rows = []
    for device, residency in residencies.items():
        chip = program.chips[device - 1]
        for i, choice in sorted(residency.choices.items()):
            step, taken = steps[i], choice.tiling
            unit = step.launch.unit if step.launch is not None else ""
            ways = tuple(_way(t, choice) for t in [taken, *_others(choice)])
            rows.append(Pathed(step.origin, step.op, chip.name, unit, taken.path, taken.label, choice.free, _reason(choice), ways))
        for stripes in residency.stripes.values():
            rows += [_striped(steps[i], chip.name, stripes) for i in stripes.steps]
    return rows


def powered(estimates: Sequence[Estimate]) -> list[Powered]:
    """One row per chip that states what it draws."""
    return [
        Powered(e.chip, p.energy_uj, p.average_mw, p.peak_mw, p.cap_mw or 0.0, e.time_us, e.uncapped_us or e.time_us)
        for e in estimates
        if (p := e.power) is not None
    ]


def _striped(step: Step, chip: str, stripes: Stripes) -> Pathed:
    unit = step.launch.unit if step.launch is not None else ""
    way = Way("striped", stripes.label, stripes.memory, stripes.traffic, round(stripes.time / 1000, 1), True)
    reason = "depth first, as what the steps hand on does not fit on chip; figures are of the whole chain"
    return Pathed(step.origin, step.op, chip, unit, "striped", stripes.label, stripes.memory, reason, (way,))


def _others(choice: Choice) -> list[Tiling]:
    """The best of every other path, then the next best ones."""
    ranked = sorted(choice.others, key=lambda t: (t.time, t.memory))
    first = {t.path: t for t in reversed(ranked)}
    best = [t for t in first.values() if t.path != choice.tiling.path]
    return sorted([*best, *(t for t in ranked if t not in best)][:KEPT], key=lambda t: t.time)


def _way(tiling: Tiling, choice: Choice) -> Way:
    if tiling is choice.tiling:
        why = ""
    elif tiling.memory > choice.free:
        why = f"needs {tiling.memory} bytes on chip, {choice.free} are free"
    elif tiling.time > choice.tiling.time:
        why = f"{(tiling.time - choice.tiling.time) / 1000:.0f} ns more"
    else:
        why = "no faster" + ", and leaves less room for what comes next" * (tiling.memory > choice.tiling.memory)
    return Way(tiling.path, tiling.label, tiling.memory, tiling.traffic, round(tiling.time / 1000, 1), tiling is choice.tiling, why)


def _reason(choice: Choice) -> str:
    whole, taken = next(t for t in [choice.tiling, *choice.others] if not t.axes), choice.tiling
    if taken is whole:
        return "everything it works on fits on chip"
    if whole.memory <= choice.free:
        why = f"{(whole.time - taken.time) / 1000:.0f} ns less than as a whole, as moving and computing overlap"
    else:
        why = f"as a whole it needs {whole.memory} bytes on chip, {choice.free} are free"
    if taken.in_turn:
        why += "; two pieces of everything do not fit, so moving and computing take turns"
    return f"all it reads fits on chip and stays; {why}" if taken.path == "resident" else why

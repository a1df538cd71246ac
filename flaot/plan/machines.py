"""Reading the records that say how fast chips are and when steps may run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flaot.plan import fields
from flaot.plan.fields import Section
from flaot.plan.program import Command, Machine, Power, Transfers, Unit

if TYPE_CHECKING:
    from flaot.plan.read import Plan


def read_machine(plan: Plan, device: int) -> Machine:
    """The machine of a chip, device 1 and up. Raises PlanError."""
    rows = plan.section(Section.machines)
    if not 0 < device <= len(rows):
        raise plan.fail(f"device {device} has no record among {len(rows)} machines")
    r = rows[device - 1]
    if r["transfer"] not in set(Transfers):
        raise plan.fail(f"transfers of kind {r['transfer']}")
    units = tuple(
        Unit(plan.string(u["name"]), int(u["count"]), int(u["launch_cycles"]), int(u["rate"]), int(u["depth"]))
        for u in plan.section(Section.units)
        if u["device"] == device
    )
    stated = {name: int(r[name]) for name in fields.MACHINE.offsets if name not in ("reserved", "transfer")}
    return Machine(units=units, transfer=Transfers(int(r["transfer"])), power=_read_power(plan, device), **stated)


def _read_power(plan: Plan, device: int) -> Power | None:
    rows = [r for r in plan.section(Section.powers) if r["device"] == device]
    if not rows:
        return None
    r = rows[0]
    power = Power(int(r["idle"]), int(r["cap"]), int(r["on_chip"]), int(r["off_chip"]), tuple(r["macs"].tolist()))
    if power.cap and power.cap <= power.idle:
        raise plan.fail(f"device {device} draws {power.idle} uW at rest under a cap of {power.cap} uW")
    return power


def read_command(plan: Plan, index: int) -> Command | None:
    """When a step runs; None in a plan without chips. Raises PlanError."""
    rows = plan.section(Section.commands)
    if index >= len(rows):
        return None
    r = rows[index]
    first, count = int(r["first_wait"]), int(r["wait_count"])
    waits = plan.section(Section.waits)[first : first + count]
    if len(waits) != count:
        raise plan.fail(f"step {index} waits for steps out of bounds")
    return Command(int(r["queue"]), tuple(int(w) for w in waits), int(r["work"]), int(r["hold"]))

"""What a plan says of its chips' speed, units, queues and waits, checked without the native library."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.errors import PlanError, printable
from flaot.plan.chips import step_where
from flaot.plan.fields import HOST_QUEUE, MAX_QUEUES, MAX_RANK, MAX_RATE, MAX_UNITS, MAX_WORK, Section
from flaot.plan.program import Opcode, Transfers
from flaot.plan.read import Plan

MACHINES = {
    "clock_khz": (1, 2**32 - 1), "channels": (1, MAX_QUEUES - 1), "transfer": (0, max(Transfers)), "dimensions": (1, MAX_RANK),
    "on_chip": (0, 2**63 - 1), "on_chip_rate": (1, MAX_RATE), "off_chip_rate": (1, MAX_RATE), "link_rate": (1, MAX_RATE),
}
"""Smallest and largest value of a machine's fields."""

UNITS = {"count": (1, 2**32 - 1), "rate": (1, MAX_RATE)}
"""Those of a unit's."""


def check_commands(plan: Plan) -> None:
    """Raises PlanError for the first machine, unit or command that is not what docs/plan-format.md says."""
    chips = len(plan.section(Section.chips))
    if not chips:
        return
    counts = ((Section.machines, chips, "chips"), (Section.commands, plan.step_count, "steps"))
    for section, want, what in counts:
        if len(plan.section(section)) != want:
            raise plan.fail(f"{len(plan.section(section))} {section.name} for {want} {what}")
    for i in range(chips):
        _refuse(plan, machine_problem(plan, i))
    for i in range(len(plan.section(Section.units))):
        _refuse(plan, unit_problem(plan, i))
    first = 0
    for i in range(plan.step_count):
        problem = queue_problem(plan, i) or amount_problem(plan, i) or wait_problem(plan, i, first)
        if problem:
            raise PlanError(problem, where=f"{plan.where}: {step_where(plan, i)}")
        first += int(plan.section(Section.commands)[i]["wait_count"])
    if first != len(plan.section(Section.waits)):
        raise plan.fail(f"{len(plan.section(Section.waits))} waits, of which steps have {first}")


def _refuse(plan: Plan, problem: str | None) -> None:
    if problem:
        raise plan.fail(problem)


def machine_problem(plan: Plan, index: int) -> str | None:
    """The sentence about the first field of a machine that is out of range, or None. Raises PlanError."""
    m = plan.section(Section.machines)[index]
    for name, (low, high) in MACHINES.items():
        if not low <= int(m[name]) <= high:
            return f"machine {index}: {name} is {int(m[name])}; allowed are {low} to {high}"
    if m["on_chip_peak"] > m["on_chip"]:
        return f"machine {index}: {int(m['on_chip_peak'])} bytes of on-chip memory are used, of {int(m['on_chip'])}"
    return None


def unit_problem(plan: Plan, index: int) -> str | None:
    """The sentence about what is wrong with a compute unit, or None. Raises PlanError."""
    rows, chips = plan.section(Section.units), len(plan.section(Section.chips))
    u = rows[index]
    if not 0 < u["device"] <= chips:
        return f"unit {index} is of device {int(u['device'])}; chips are 1 to {chips}"
    if index and u["device"] < rows[index - 1]["device"]:
        return f"unit {index} of device {int(u['device'])} comes after one of device {int(rows[index - 1]['device'])}"
    before = [r for r in rows[:index] if r["device"] == u["device"]]
    if len(before) >= MAX_UNITS:
        return f"unit {index} is number {len(before) + 1} of its chip; allowed are {MAX_UNITS}"
    for name, (low, high) in UNITS.items():
        if not low <= int(u[name]) <= high:
            return f"unit {index}: {name} is {int(u[name])}; allowed are {low} to {high}"
    called = plan.string(u["name"])
    if any(plan.string(r["name"]) == called for r in before):
        return f"unit {index}: its chip has another one named '{printable(called)}'"
    return None


def _units(plan: Plan, device: int) -> Iterator[str]:
    return (plan.string(u["name"]) for u in plan.section(Section.units) if u["device"] == device)


def queue_problem(plan: Plan, index: int) -> str | None:
    """The sentence about a step on a queue that is not its own, or None; what only moves data is not known here. Raises PlanError."""
    step, queue = plan.section(Section.steps)[index], int(plan.section(Section.commands)[index]["queue"])
    device = int(step["device"])
    if device == 0:
        return None if queue == HOST_QUEUE else f"on queue {queue}; the host's is {HOST_QUEUE:#x}"
    if device > len(plan.section(Section.machines)):
        return f"on device {device}, which has no machine"
    channels, units = int(plan.section(Section.machines)[device - 1]["channels"]), list(_units(plan, device))
    if step["opcode"] == Opcode.transfer:
        link = channels + len(units)
        return None if queue == link else f"on queue {queue}; transfers with the host are on queue {link}"
    if queue < channels:
        return None
    if step["opcode"] == Opcode.dma:
        return f"on queue {queue}; DMA channels are queues 0 to {channels - 1}"
    launch = plan.launches.get(index)
    if launch is None:
        return "without a launch"
    if queue - channels >= len(units):
        return f"on queue {queue}; units are queues {channels} to {channels + len(units) - 1}"
    if units[queue - channels] != launch.unit:
        return f"on queue {queue} of unit '{printable(units[queue - channels])}', launched on unit '{printable(launch.unit)}'"
    return None


def amount_problem(plan: Plan, index: int) -> str | None:
    """The sentence about a command's hold or work, or None."""
    step, command = plan.section(Section.steps)[index], plan.section(Section.commands)[index]
    if step["device"] == 0 and command["hold"]:
        return f"holds the host for {int(command['hold'])} cycles"
    most = MAX_WORK if step["opcode"] == Opcode.call else 0
    return None if command["work"] <= most else f"work of {int(command['work'])}; allowed are {most}"


def wait_problem(plan: Plan, index: int, first: int) -> str | None:
    """The sentence about what a step waits for, or None; the waits of the steps before it end at ``first``."""
    command, waits = plan.section(Section.commands)[index], plan.section(Section.waits)
    begin, count = int(command["first_wait"]), int(command["wait_count"])
    if begin != first or count > len(waits) - first:
        return f"{count} waits from {begin} on; those before it end at {first}, all at {len(waits)}"
    late = [int(w) for w in waits[first : first + count] if w >= index]
    return f"waits for step {late[0]}, which does not come before it" if late else None

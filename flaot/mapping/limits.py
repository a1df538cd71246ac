"""How long and how large a plan may be, and how much memory it may take: limits of the descriptors it is compiled for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from flaot.errors import OffChipError, UnsupportedError, UsageError
from flaot.hcd import Board, Hcd
from flaot.plan.program import Buffer, Opcode, Program, Space

MB = 1 << 20


@dataclass(frozen=True)
class PlanLimits:
    """Of every descriptor of a board, the strictest counts: ``limits.max_steps`` and ``limits.max_plan_bytes``."""

    board: Board

    @cached_property
    def steps(self) -> int | None:
        """Most steps of a plan; None where nobody states it."""
        held = self._strictest("max_steps")
        return held[0] if held is not None else None

    def check_queues(self, depth: int | None, asynchronous: bool) -> None:
        """Raises UsageError for a depth of queues, or for queues one after another, where there is no chip that has any."""
        for option, given in ((f"--queue-depth {depth}", depth is not None), ("--no-async", not asynchronous)):
            if given and not self.board.chips:
                self._nowhere(option, "queues")

    def _nowhere(self, option: str, what: str) -> NoReturn:
        name = self.board.first.name
        raise UsageError(
            f"{option} is for {what} of chips; a plan for {name} runs on the CPU alone", hint="leave it out, or name a chip with --hcd"
        )

    def check_pool(self, pool: int | None) -> None:
        """Raises UsageError for a pool of on-chip memory (bytes) that is larger than that of every chip, or where there is no chip."""
        if pool is not None and not self.board.chips:
            self._nowhere(f"--memory-pool-size {pool / 1024:g}", "on-chip memory")
        memories = [(h.full.memory, h) for h in self.board.chips]
        sizes = [(m.on_chip_cache.size_kb, h) for m, h in memories if m is not None and m.on_chip_cache is not None]
        size, hcd = max(sizes, key=lambda s: s[0], default=(0, self.board.first))
        if pool is not None and sizes and pool > size * 1024:
            raise UsageError(
                f"--memory-pool-size {pool / 1024:g}; {hcd.name} has {size} kB on chip",
                origin=hcd.origin("memory", "on_chip_cache", "size_kb"), hint="allow at most that, or leave the option out for all of it",
            )

    def check_memory(self, program: Program) -> None:
        """Raises OffChipError for a device whose values and constants take more than its ``off_chip_memory.size_mb``; the host's are held
        to its own descriptor."""
        for device, hcd in self._devices(program):
            memory = hcd.full.memory
            stated = memory.off_chip_memory.size_mb if memory is not None and memory.off_chip_memory is not None else None
            if stated is None:
                continue
            held, (arena, alignment) = _off_chip(program, device), _arena(program, device)
            constants = sum(-(-b.nbytes // alignment) * alignment for b in held if b.space is Space.constant)
            if arena + constants > stated * MB:
                ranked = sorted(held, key=lambda b: -b.nbytes)
                most, total = ranked[0], f"{_mb(arena + constants)} MB of the off-chip memory of {hcd.name}"
                raise OffChipError(
                    f"the plan takes {total}, {_mb(constants)} of them constants and "
                    f"{_mb(most.nbytes)} the largest tensor of this node; size_mb is {stated}",
                    {
                        node: (hcd.name, f"with its tensors of {_mb(b.nbytes)} MB the plan takes {total}; size_mb is {stated}")
                        for b in _above(ranked, arena + constants - stated * MB) for node in held[b]
                    } if device else {},
                    where=next((f"node '{o}'" for o in held[most]), ""),
                    origin=hcd.origin("memory", "off_chip_memory", "size_mb"),
                    hint="bind smaller shapes, or " + (
                        "send nodes to another device with --route NODE=DEVICE" if device else "compile a smaller model"),
                )

    def _devices(self, program: Program) -> Iterator[tuple[int, Hcd]]:
        if self.board.cpu is not None:
            yield 0, self.board.cpu
        for device, chip in enumerate(program.chips, 1):
            yield device, self.board.chip(chip.name)

    def check(self, program: Program, plan: bytes) -> None:
        """Raises UnsupportedError for a plan above a limit."""
        steps, size = self._strictest("max_steps"), self._strictest("max_plan_bytes")
        if steps is not None and len(program.steps) > steps[0]:
            moving = sum(s.opcode is not Opcode.call for s in program.steps)
            raise UnsupportedError(
                f"the plan has {len(program.steps)} steps, {moving} of them to move data; {steps[1].name} allows max_steps {steps[0]}",
                origin=steps[1].origin("limits", "max_steps"),
                hint="bind smaller shapes, try --fusion-level aggressive, or send nodes to another device with --route NODE=DEVICE"
                if program.chips else "bind smaller shapes, or compile a smaller model",
            )
        if size is not None and len(plan) > size[0]:
            constants = {id(v.buffer): v.buffer.nbytes for s in program.steps for v in s.inputs if v.buffer.data is not None}
            raise UnsupportedError(
                f"the plan has {len(plan)} bytes, {sum(constants.values())} of them constants; "
                f"{size[1].name} allows max_plan_bytes {size[0]}",
                origin=size[1].origin("limits", "max_plan_bytes"),
                hint="compile a smaller model, or one with constants of fewer bits",
            )

    def _strictest(self, key: str) -> tuple[int, Hcd] | None:
        stated = [(getattr(h.full.limits, key), h) for h in self.board.all if h.full.limits is not None]
        return min(((n, h) for n, h in stated if n is not None), key=lambda x: x[0], default=None)


def _off_chip(program: Program, device: int) -> dict[Buffer, tuple[str, ...]]:
    """Everything a device holds off chip, with the nodes of the steps that use it."""
    spaces = (Space.constant, Space.device if device else Space.arena)
    found: dict[Buffer, tuple[str, ...]] = {}
    for step in program.steps:
        for b in (v.buffer for v in (*step.inputs, *step.outputs)):
            if b.space in spaces and b.index == device:
                found[b] = tuple(dict.fromkeys((*found.get(b, ()), *step.origin)))
    return found


def _above(ranked: Sequence[Buffer], excess: int) -> Iterator[Buffer]:
    """The largest ones that make up the excess together."""
    for b in ranked:
        if excess <= 0:
            return
        yield b
        excess -= b.nbytes


def _arena(program: Program, device: int) -> tuple[int, int]:
    """Bytes of a device's off-chip memory for values, and its alignment."""
    chip = program.chips[device - 1] if device else program
    return chip.arena, chip.alignment


def _mb(nbytes: int) -> str:
    """Never less than there is, so that what is above a limit reads so."""
    return f"{-(-nbytes * 10 // MB) / 10:g}"

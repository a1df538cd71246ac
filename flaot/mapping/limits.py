"""How long and how large a plan may be: the group ``limits`` of the descriptors it is compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flaot.errors import UnsupportedError
from flaot.hcd import Board, Hcd
from flaot.plan.program import Opcode, Program


@dataclass(frozen=True)
class PlanLimits:
    """Of every descriptor of a board, the strictest counts: ``limits.max_steps`` and ``limits.max_plan_bytes``."""

    board: Board

    @cached_property
    def steps(self) -> int | None:
        """Most steps of a plan; None where nobody states it."""
        held = self._strictest("max_steps")
        return held[0] if held is not None else None

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

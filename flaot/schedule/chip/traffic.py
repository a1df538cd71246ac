"""Who reads and writes the memory of a chip: the buffers of a program, before anything is put on chip."""

from __future__ import annotations

from dataclasses import dataclass, field

from flaot.kernels.base import KERNELS
from flaot.plan.program import Buffer, Opcode, Program, Space, Step


@dataclass(eq=False)
class Use:
    """An activation in a chip's memory: the steps that write and read it, and those of them that are transfers."""

    buffer: Buffer
    writers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)
    arrives: bool = False
    leaves: bool = False

    @property
    def first(self) -> int:
        return min(self.writers + self.readers)

    @property
    def last(self) -> int:
        return max(self.writers + self.readers)


def uses_of(program: Program, device: int) -> dict[int, Use]:
    """Every activation of a device by the id of its buffer, in the order of first use."""
    found: dict[int, Use] = {}
    for i, step in enumerate(program.steps):
        for views, written in ((step.inputs, False), (step.outputs, True)):
            for b in (v.buffer for v in views):
                if b.space is not Space.device or b.index != device:
                    continue
                use = found.setdefault(id(b), Use(b))
                (use.writers if written else use.readers).append(i)
                if step.opcode is Opcode.transfer:
                    use.arrives |= written
                    use.leaves |= not written
    return found


def only_moves(step: Step) -> bool:
    """Whether the step computes nothing, so that the DMA engine can do it."""
    return step.opcode is Opcode.call and KERNELS[step.kernel].moves


def crosses(step: Step, source: bool, target: bool) -> bool:
    """Whether a step that only moves is a transfer between the memories of a chip when its two sides lie on chip or not."""
    return step.kernel == "copy" and source != target

"""The few records of a plan that running it from the command line needs, read without numpy.

Only for plans the native verifier has accepted: offsets are taken as they are, except in the optional sections, which it does not read.
"""

from __future__ import annotations

from typing import NamedTuple

from flaot.errors import PlanError
from flaot.ir.types import MAX_RANK, DType, Frozen, TensorType
from flaot.plan.fields import DEVICE, ENTRY, FROZEN, HEADER, PORT, SECTION, STEP_NAME, TENSOR, Record, Section


class LeanPort(NamedTuple):
    """An input or output: name, dtype name, shape, bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


class StepName(NamedTuple):
    """What a step is called."""

    kernel: str
    op: str
    nodes: tuple[str, ...]


class LeanPlan:
    """Reads records of ``data`` when asked."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        count = self._field(HEADER, "section_count", 0)
        table = [SECTION.struct.unpack_from(data, HEADER.size + i * SECTION.size) for i in range(count)]
        self._sections = {id: (offset, size) for id, _, offset, size in table}

    @property
    def inputs(self) -> list[LeanPort]:
        return self._ports(Section.inputs)

    @property
    def outputs(self) -> list[LeanPort]:
        return self._ports(Section.outputs)

    @property
    def step_count(self) -> int:
        return self._field(ENTRY, "step_count", self._sections[Section.entries][0])

    @property
    def chips(self) -> list[tuple[str, str]]:
        """Name and device type of every device after the host."""
        start, size = self._sections[Section.devices]
        rows = [DEVICE.struct.unpack_from(self._data, start + i) for i in range(DEVICE.size, size, DEVICE.size)]
        return [(self._string(r[0]), self._string(r[1])) for r in rows]

    @property
    def step_names(self) -> list[StepName]:
        """Names of all steps; empty when the plan carries none. Raises PlanError when they are damaged."""
        if Section.step_names not in self._sections:
            return []
        start, size = self._sections[Section.step_names]
        rows = [STEP_NAME.struct.unpack_from(self._data, start + i) for i in range(0, size, STEP_NAME.size)]
        origins, room = self._sections.get(Section.origins, (0, 0))
        names = self._data[origins : origins + room].cast("I")
        if any(first + n > len(names) for _, _, first, n in rows):
            raise PlanError("names of steps are out of bounds")
        return [StepName(self._string(k), self._string(op), tuple(map(self._string, names[first : first + n]))) for k, op, first, n in rows]

    @property
    def frozen(self) -> list[Frozen]:
        """Initializers that the model lists as inputs too. Raises PlanError when they are damaged."""
        start, size = self._sections.get(Section.frozen, (0, 0))
        if size % FROZEN.size:
            raise PlanError(f"frozen initializers in {size} bytes, not a whole number of records")
        return [self._frozen(FROZEN.struct.unpack_from(self._data, start + i)) for i in range(0, size, FROZEN.size)]

    def _frozen(self, row: tuple[int, ...]) -> Frozen:
        name, dtype, rank, _, *rest = row
        if dtype not in set(DType) or rank > MAX_RANK:
            raise PlanError(f"a frozen initializer of type {dtype} and rank {rank}")
        return Frozen(self._string(name), TensorType(DType(dtype), tuple(rest[:rank])), bytes(rest[MAX_RANK:]))

    def _ports(self, section: Section) -> list[LeanPort]:
        start, size = self._sections.get(section, (0, 0))
        rows = [PORT.struct.unpack_from(self._data, start + i) for i in range(0, size, PORT.size)]
        return [LeanPort(self._string(name), *self._type(tensor), nbytes) for name, tensor, nbytes in rows]

    def _type(self, index: int) -> tuple[str, tuple[int, ...]]:
        fields = TENSOR.struct.unpack_from(self._data, self._sections[Section.tensors][0] + index * TENSOR.size)
        first = [f.name for f in TENSOR.fields].index("dims")
        return DType(fields[0]).name, fields[first : first + fields[1]]

    def _string(self, offset: int) -> str:
        start, size = self._sections[Section.strings]
        rest = bytes(self._data[start + offset : start + min(size, offset + 65536)])
        return rest.partition(b"\0")[0].decode(errors="replace")

    def _field(self, record: Record, name: str, at: int) -> int:
        field = next(f for f in record.fields if f.name == name)
        offset = at + record.offset(name)
        return int.from_bytes(self._data[offset : offset + int(field.kind[1:]) // 8], "little")

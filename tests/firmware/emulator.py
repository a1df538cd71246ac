"""A Cortex-M4 with 4 MiB of flash and of RAM, emulated by unicorn; programs leave through semihosting's SYS_EXIT_EXTENDED."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FLASH, RAM, SIZE = 0x00000000, 0x20000000, 4 << 20
PAINT = 0xA5


@dataclass
class Elf:
    """Load segments (address, bytes) and symbols of a 32-bit little-endian ELF file."""

    segments: list[tuple[int, bytes]] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Elf:
        data, elf = path.read_bytes(), cls()
        (program,), (program_count,) = struct.unpack_from("<I", data, 28), struct.unpack_from("<H", data, 44)
        for i in range(program_count):
            kind, offset, _, address, size = struct.unpack_from("<5I", data, program + 32 * i)
            if kind == 1 and size:
                elf.segments.append((address, data[offset : offset + size]))
        elf.symbols = {name: value for name, value, _ in _symbols(data)}
        return elf


def _symbols(data: bytes) -> Iterator[tuple[str, int, bool]]:
    """Name, value and whether it is defined, of every named symbol."""
    (table,), (count,) = struct.unpack_from("<I", data, 32), struct.unpack_from("<H", data, 48)
    sections = [struct.unpack_from("<10I", data, table + 40 * i) for i in range(count)]
    for s in sections:
        for at in range(s[4], s[4] + s[5], 16) if s[1] == 2 else ():  # SHT_SYMTAB
            name, value, _, _, _, section = struct.unpack_from("<IIIBBH", data, at)
            start = sections[s[6]][4] + name
            if data[start]:
                yield data[start : data.index(b"\0", start)].decode(), value, section != 0


def symbols(path: Path) -> tuple[set[str], set[str]]:
    """Symbols an object defines, and those it needs from others."""
    found = list(_symbols(path.read_bytes()))
    return {name for name, _, defined in found if defined}, {name for name, _, defined in found if not defined}


class CortexM4:
    """``run`` once; memory can be written before and read after."""

    def __init__(self, path: Path) -> None:
        import unicorn
        from unicorn import arm_const

        self.elf, self.exit_code, self._regs = Elf.load(path), None, arm_const
        self.cpu: Any = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        self.cpu.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M4)
        self.cpu.mem_map(FLASH, SIZE, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        self.cpu.mem_map(RAM, SIZE)
        self.cpu.mem_map(0xE0000000, 1 << 20)  # system control space
        self.cpu.mem_write(RAM, bytes([PAINT]) * SIZE)
        for address, data in self.elf.segments:
            self.cpu.mem_write(address, data)
        self.cpu.hook_add(unicorn.UC_HOOK_INTR, self._interrupt)

    def write(self, symbol: str, data: bytes, at: int = 0) -> None:
        self.cpu.mem_write(self.elf.symbols[symbol] + at, data)

    def read(self, symbol: str, size: int, at: int = 0) -> bytes:
        return bytes(self.cpu.mem_read(self.elf.symbols[symbol] + at, size))

    def run(self) -> int | None:
        """The program's exit code; None when it did not exit. Access outside flash and RAM, and writes to flash, raise UcError."""
        stack, reset = struct.unpack("<II", self.cpu.mem_read(FLASH, 8))
        self.cpu.reg_write(self._regs.UC_ARM_REG_SP, stack)
        self.cpu.emu_start(reset | 1, 0xFFFFFFFF)
        return self.exit_code

    def stack_used(self) -> int:
        """Bytes of stack ever written; the arena and everything else lies below."""
        memory = bytes(self.cpu.mem_read(RAM, SIZE))
        bottom = max(self.elf.symbols[s] for s in ("bss_end", "arena_end")) - RAM
        used = next((i for i in range(bottom, SIZE) if memory[i] != PAINT), SIZE)
        return SIZE - used

    def _interrupt(self, cpu: Any, number: int, _: object) -> None:
        operation, arguments = cpu.reg_read(self._regs.UC_ARM_REG_R0), cpu.reg_read(self._regs.UC_ARM_REG_R1)
        if operation == 0x20:
            self.exit_code = struct.unpack("<I", cpu.mem_read(arguments + 4, 4))[0]
        cpu.emu_stop()

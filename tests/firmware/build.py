"""Builds the runtime core, the portable kernels and a plan into a Cortex-M4 program with ziglang's clang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flaot.kernels.base import KERNELS, load_all
from flaot.kernels.generate import kernel_table
from flaot.plan.read import Plan

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CSRC, KERNEL_SOURCES = ROOT / "flaot" / "runtime" / "csrc", ROOT / "flaot" / "kernels"

FLAGS = [
    "-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp",
    "-std=c99", "-g", "-Os", "-ffreestanding", "-ffp-contract=off", "-fno-math-errno", "-ffunction-sections", "-fdata-sections",
    "-fno-sanitize=undefined", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", f"-I{CSRC / 'include'}", f"-I{CSRC}",
    f"-I{KERNEL_SOURCES}",
]


def portable_sources() -> list[Path]:
    """Everything a firmware compiles besides its own code and the kernel table."""
    core, memory = sorted((CSRC / "core").glob("*.c")), sorted((CSRC / "port" / "freestanding").glob("*.c"))
    return [*core, *memory, *sorted(KERNEL_SOURCES.glob("*/generic*.c"))]


def compile_all(sources: list[Path], folder: Path, extra: list[str]) -> list[Path]:
    """Objects of the sources, in order. Raises CalledProcessError with the compiler's text."""
    objects = []
    for source in sources:
        target = folder / f"{source.parent.name}_{source.stem}.o"
        zig(["cc", *FLAGS, *extra, "-c", str(source), "-o", str(target)])
        objects.append(target)
    return objects


def build(plan: Plan, objects: list[Path], folder: Path, ports: int) -> Path:
    """The ELF file of a plan and the compiled portable sources; only kernels the plan uses are in its table and so linked."""
    load_all()
    used = {s.kernel for s in plan.steps}
    table = folder / "kernels.c"
    table.write_text(kernel_table([k for k in KERNELS.values() if k.name in used]))
    (folder / "plan.flp").write_bytes(plan.data.tobytes())
    arena = -(-plan.arena_bytes // 64) * 64 + 4 * (len(plan.inputs) + len(plan.outputs))
    extra = [f"-DARENA_BYTES={arena}", f"-DPORT_BYTES={max(ports, 8)}", f'-DPLAN="{folder / "plan.flp"}"']
    sources = [table, HERE / "startup.c", HERE / "main.c", HERE / "plan.S"]
    elf = folder / "firmware.elf"
    link = ["-Wl,--gc-sections", f"-Wl,-T,{HERE / 'cortex_m4.ld'}", "-o", str(elf)]
    zig(["cc", *FLAGS, *extra, *map(str, [*sources, *objects]), *link])
    return elf


def zig(arguments: list[str]) -> str:
    done = subprocess.run([sys.executable, "-m", "ziglang", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout

"""Two chips, told by flaot: what a network takes on npu_v2 and npu_v3, what a chip refuses, and what a wrong descriptor costs.

    python samples/two_chips.py                               # ResNet-50 and an encoder, exported by PyTorch: some minutes
    python samples/two_chips.py --model a.onnx --encoder b.onnx
    python samples/two_chips.py --page docs/two_chips.md      # refreshes the tables and pictures of the page

The toy chip of samples/vendor_adapter plays the chip that is not as its descriptor says; it takes make and a C compiler.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import flaot
from flaot.frontend.load import load
from flaot.mapping.policy import policy_of
from flaot.plan.read import read_plan
from flaot.report.chips import ChipReport

SAMPLES = Path(__file__).resolve().parent
ROOT = SAMPLES.parent
OUT = SAMPLES / "out"
CHIPS = ("npu_v2", "npu_v3")
SIZES = (1024, 2048, 4096, 6144, 8192, 12288, 16384)
"""Kilobytes that descriptors state; the bundled npu_v3 has 8192."""
DIGITS = SAMPLES / "mnist" / "digits.onnx"
TOY = SAMPLES / "vendor_adapter" / "toy_npu.hcd"


@dataclass(frozen=True)
class Story:
    """Who plays: the network, one with 12 heads, the toy chip's adapter, and the folder for what is made."""

    model: Path
    encoder: Path
    adapter: Path
    out: Path
    sizes: Sequence[int] = SIZES


@dataclass(frozen=True)
class Ran:
    """A network compiled for a chip, run in its simulator, and compared with onnxruntime."""

    report: dict[str, Any]
    counted: int
    launches: int
    noise: float
    plan: Path

    @property
    def estimate(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["estimate"]
        return found

    def busy(self, queue: str) -> str:
        return next(f"{u['utilisation']:.0%}" for u in self.estimate["units"] if u["name"] == queue)

    @property
    def paths(self) -> str:
        return ", ".join(f"{n} {path}" for path, n in sorted(self.report["mapping"]["paths"].items()))


def ran(model: Path, chip: str | Path, out: Path, allow_expand: Sequence[str] = ()) -> Ran:
    """Raises FlaotError where the chip refuses, or where the results differ from onnxruntime's."""
    hcd = flaot.load_hcd(chip)
    compiled = flaot.compile(model, hcd, flaot.Options(shapes=batch(model), policy=policy_of(hcd, allow_expand=allow_expand)))
    plan = out / f"{model.stem}.{Path(chip).stem}{'.expanded' if allow_expand else ''}.flp"
    plan.write_bytes(compiled.plan)
    with flaot.Session(plan, threads=0, adapter="simulator") as session:
        generator = np.random.default_rng(0)
        feeds = {p.name: generator.standard_normal(p.shape, np.float32) for p in session.get_inputs()}
        session.run(None, feeds)
        (counters,) = session.counters()
    result = flaot.verify(str(plan), str(model), feeds, threads=0, adapter="simulator")
    if not result.ok:
        raise flaot.FlaotError(result.sentence, where=str(plan))
    noise = min((c.snr_db for c in result.outputs if c.snr_db is not None), default=float("inf"))
    return Ran(compiled.report, counters.bytes_in + counters.bytes_out, counters.launches, noise, plan)


def batch(model: Path) -> dict[str, int]:
    """Binds the symbol that the exporter leaves for the batch, where it does. Raises FlaotError for what is no model."""
    try:
        inputs = load(model).model.graph.input
    except flaot.FlaotError as e:
        e.at(str(model))
        raise
    return {d.dim_param: 1 for value in inputs for d in value.type.tensor_type.shape.dim if d.dim_param}


# -- chapters: each returns Markdown ----------------------------------------------------------------------------------------------


def side_by_side(story: Story) -> str:
    """The same network on both chips."""
    both = [ran(story.model, chip, story.out) for chip in CHIPS]
    described = [flaot.load_hcd(chip).full for chip in CHIPS]
    rows: list[tuple[str, Callable[[int], str]]] = [
        ("peak of the float16 units, TFLOP/s", lambda i: f"{described[i].compute_units['fp16'].peak_tflops}"),
        ("off-chip memory, GB/s", lambda i: f"{described[i].memory.off_chip_memory.bandwidth_gb_per_s:g}"),
        ("cycles", lambda i: f"{both[i].estimate['cycles']:,}"),
        ("time, us", lambda i: f"{both[i].estimate['time_us']:.1f}"),
        ("roofline bound, us", lambda i: f"{both[i].estimate['bound_us']:.1f}"),
        ("time over bound", lambda i: f"{both[i].estimate['ratio']:.3f}"),
        ("with the host and its link, us", lambda i: f"{both[i].estimate['total_us']:.1f}"),
        ("bytes over off-chip memory, planned", lambda i: f"{both[i].estimate['traffic_bytes']:,}"),
        ("bytes the simulator moved by DMA", lambda i: f"{both[i].counted:,}"),
        ("on-chip memory used, of", lambda i: f"{both[i].estimate['on_chip_bytes']:,} of {both[i].estimate['on_chip_limit_bytes']:,}"),
        ("busy: dma0, dma1", lambda i: f"{both[i].busy('dma0')}, {both[i].busy('dma1')}"),
        ("busy: float16 units", lambda i: both[i].busy("fp16")),
        ("steps by path", lambda i: both[i].paths),
        ("agrees with onnxruntime to", lambda i: f"{both[i].noise:.1f} dB"),
    ]
    return table(["", *CHIPS], [[name, *(cell(i) for i in range(len(CHIPS)))] for name, cell in rows])


def heads(story: Story) -> str:
    """A transformer whose attention has more heads than the unit knows."""
    twelve = derived(story.out / "npu_v3_12.hcd", "npu_v3", "compute_units: {attention: {supported_heads: [1, 2, 4, 8, 12, 16]}}")
    refused = command(["flaot", "compile", story.encoder, "--hcd", "npu_v3", "-o", story.out / "refused.flp", *shapes(story.encoder)])
    columns = {
        "products on npu_v3": ran(story.encoder, "npu_v3", story.out, ["Attention"]),
        "unit of npu_v3_12": ran(story.encoder, twelve, story.out),
    }
    rows: list[tuple[str, Callable[[Ran], str]]] = [
        ("nodes native, expanded", lambda r: "{native}, {expanded}".format(**r.report["mapping"]["verdicts"])),
        ("launches", lambda r: str(r.launches)),
        ("cycles", lambda r: f"{r.estimate['cycles']:,}"),
        ("time over bound", lambda r: f"{r.estimate['ratio']:.3f}"),
        ("busy: dma0", lambda r: r.busy("dma0")),
        ("busy: float16 units, attention unit", lambda r: f"{r.busy('fp16')}, {r.busy('attention')}"),
        ("agrees with onnxruntime to", lambda r: f"{r.noise:.1f} dB"),
    ]
    return f"{refused}\n\n{table(['', *columns], [[name, *map(cell, columns.values())] for name, cell in rows])}"


def cache(story: Story) -> str:
    """The network on npu_v3 by descriptors that state other sizes of its on-chip memory."""
    found = {kb: ran(story.model, sized(story.out, kb), story.out) for kb in story.sizes}
    true = found[8192].estimate
    rows = []
    for kb, r in found.items():
        costs = [figure for key in ("cycles", "traffic_bytes") for figure in (f"{r.estimate[key]:,}", change(r.estimate[key], true[key]))]
        rows.append([f"**{kb}**" if kb == 8192 else str(kb), *costs, f"{r.estimate['ratio']:.3f}", r.paths])
    return table(["size_kb", "cycles", "", "bytes over off-chip memory", "", "time over bound", "steps by path"], rows)


def too_large(story: Story) -> str:
    """Plans for more on-chip memory than there is: the toy chip has half of what its descriptor says."""
    plans = {model: story.out / f"{model.stem}.toy_npu.flp" for model in (DIGITS, story.model)}
    for model, plan in plans.items():
        hcd = flaot.load_hcd(TOY)
        plan.write_bytes(flaot.compile(model, hcd, flaot.Options(shapes=batch(model), policy=policy_of(hcd, prefer="toy_npu"))).plan)
    lie = {"TOY_LIE": "memory"}
    verify = command(["flaot", "verify", plans[DIGITS], DIGITS, "--adapter", story.adapter], lie, "verified|error")
    run = command(["flaot", "run", plans[story.model], "--adapter", story.adapter], lie)
    return "\n\n".join([verify, run, probes(TOY, story, lie, "size_kb")])


def alignment(story: Story) -> str:
    """The chip was revised, its descriptor was not."""
    lie, hcd, plan = {"TOY_LIE": "alignment"}, story.out / "toy_npu_128.hcd", story.out / "digits.flp"
    hcd.write_text(TOY.read_text().replace("memory_alignment_bytes: 64", "memory_alignment_bytes: 128"))
    parts = []
    for descriptor in (TOY, hcd):
        parts.append(command(["flaot", "compile", DIGITS, "--hcd", descriptor, "--prefer", "toy_npu", "-o", plan], keep="cycles|error"))
        parts.append(command(["flaot", "verify", plan, DIGITS, "--adapter", story.adapter], lie, "verified|error"))
        parts.append(probes(descriptor, story, lie, "alignment_bytes"))
    return "\n\n".join(parts)


def pictures(story: Story, folder: Path) -> list[Path]:
    """Draws the plans of the first chapter."""
    from pictures import Drawn, memories, timelines

    plans = {chip: story.out / f"{story.model.stem}.{chip}.flp" for chip in CHIPS}
    drawn = [Drawn(chip, ChipReport(read_plan(plan.read_bytes()))) for chip, plan in plans.items()]
    paths = [folder / "two_chips_timeline.png", folder / "two_chips_memory.png"]
    timelines(drawn, paths[0])
    memories(drawn, paths[1])
    return paths


CHAPTERS = {"side by side": side_by_side, "heads": heads, "cache": cache, "too large": too_large, "alignment": alignment}


# -- what chapters are made of ----------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def derived(path: Path, base: str, text: str) -> Path:
    path.write_text(f"extends: {base}\n{text}\n")
    return path


def change(now: int, before: int) -> str:
    return f"{now / before - 1:+.1%}" if now != before else ""


def sized(out: Path, kb: int) -> Path:
    return derived(out / f"npu_v3_{kb}kb.hcd", "npu_v3", f"memory: {{on_chip_cache: {{size_kb: {kb}}}}}")


def shapes(model: Path) -> list[str]:
    return [word for symbol, size in batch(model).items() for word in ("--shape", f"{symbol}={size}")]


def probes(hcd: Path, story: Story, lie: dict[str, str], key: str) -> str:
    """What the operator suite's probes say of a key, and what does not hold."""
    line = ["flaot", "optest", "--hcd", hcd, "--adapter", story.adapter, "--probes"]
    return command(line, lie, f"LIES|error|{key}")


def command(line: Sequence[object], environment: dict[str, str] | None = None, keep: str = "error") -> str:
    """Runs a command line; shows it, the lines of its output in which ``keep`` is found, at most three, and its exit code if not 0."""
    words = [_near(w) if isinstance(w, Path) else str(w) for w in line]
    done = subprocess.run(
        [sys.executable, "-m", *words], env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}, capture_output=True, text=True
    )
    found = [text.strip() for text in (done.stdout + done.stderr).splitlines() if re.search(keep, text)]
    left = [f"... and {len(found) - 3} more such lines"] if len(found) > 3 else []
    code = [f"(exit code {done.returncode})"] if done.returncode else []
    setting = "".join(f"{name}={value} " for name, value in (environment or {}).items())
    return "\n".join(["```console", f"$ {setting}{shlex.join(words)}", *found[:3], *left, *code, "```"])


def _near(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


# -- making what the story needs --------------------------------------------------------------------------------------------------


def exported(name: str, out: Path) -> Path:
    """A sample network with seeded weights; one that is there is taken as it is."""
    path = out / f"{name}.onnx"
    if not path.exists():
        if importlib.util.find_spec("torch") is None:
            sys.exit("two_chips: PyTorch is needed to export the networks: pip install '.[torch]', or give --model and --encoder")
        print(f"exporting {name}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, SAMPLES / "export.py", name, "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path


def adapter(out: Path) -> Path:
    """Builds the toy chip's SDK and adapter."""
    build = out / "toy"
    line = ["make", "-s", "-C", str(TOY.parent), f"BUILD={build}", f"FLAOT={ROOT / 'flaot'}"]
    try:
        subprocess.run(line, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        sys.exit(f"two_chips: the toy chip cannot be built: {e}")
    return build / "libtoy_adapter.so"


def check(page: Path) -> None:
    """Ends the program where the page cannot take every chapter."""
    try:
        text = page.read_text()
    except (OSError, UnicodeDecodeError) as e:
        sys.exit(f"two_chips: {page}: {getattr(e, 'strerror', None) or e}")
    lacking = next((m for name in CHAPTERS for m in (f"<!-- {name} -->", f"<!-- end of {name} -->") if text.count(f"{m}\n") != 1), None)
    if lacking is not None:
        sys.exit(f"two_chips: {page}: the mark {lacking} is expected once, on a line of its own")


def refresh(page: Path, name: str, text: str) -> None:
    """Puts a chapter between its marks in the page."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = page.read_text().split(begin)
    page.write_text(f"{before}{begin}{text}\n{end}{rest.split(end)[1]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="an ONNX file in place of ResNet-50 from PyTorch")
    parser.add_argument("--encoder", type=Path, help="an ONNX file in place of an encoder with 12 heads from PyTorch")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="write chapters between their marks, and pictures beside it")
    args = parser.parse_args()
    if args.page:
        check(args.page)
    drawing = importlib.util.find_spec("matplotlib") is not None
    if args.page and not drawing:
        sys.exit("two_chips: matplotlib is needed for the pictures of the page: pip install '.[picture]'")
    OUT.mkdir(exist_ok=True)
    story = Story(args.model or exported("resnet50", OUT), args.encoder or exported("encoder_6x384", OUT), adapter(OUT), OUT)
    for name, chapter in CHAPTERS.items():
        text = chapter(story)
        print(f"## {name.capitalize()}\n\n{text}\n", flush=True)
        if args.page:
            refresh(args.page, name, text)
    if drawing:
        print("Pictures:", *map(_near, pictures(story, args.page.parent if args.page else OUT)))
    else:
        print("Pictures are drawn where matplotlib is installed: pip install '.[picture]'")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except flaot.FlaotError as e:
        sys.exit(f"two_chips: {e}")

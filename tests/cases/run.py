"""Compiles and runs the cases of FLAOT_CASES and judges each: ``python -m tests.cases.run`` prints the verdicts,
``--write`` puts them into tests/cases.ratchet."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RATCHET = Path(__file__).resolve().parents[1] / "cases.ratchet"
TIMEOUT = 60


@dataclass(frozen=True)
class Verdict:
    """``pass``, ``refused`` (a valid model, with the reason), ``fail`` or ``crash``."""

    word: str
    why: str = ""


def folder() -> Path | None:
    path = os.environ.get("FLAOT_CASES")
    return Path(path) / "open" if path else None


def names() -> list[str]:
    place = folder()
    return sorted(p.parent.name for p in place.glob("*/case.json")) if place else []


def judge(name: str) -> Verdict:
    """Runs one case through the command line, as a person would."""
    place = folder()
    assert place is not None
    case = place / name
    spec = json.loads((case / "case.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        plan, got = Path(scratch, "plan.flp"), Path(scratch, "got.npz")
        done = _flaot("compile", case / "model.onnx", "--hcd", "host", "-o", plan)
        if done.returncode == 0 and (spec["must"], spec.get("stage")) != ("refuse", "compile"):
            done = _flaot("run", plan, "--inputs", case / "inputs.npz", "--outputs", got)
        broken = _crash(done)
        if broken:
            return Verdict("crash", broken)
        if spec["must"] == "refuse":
            return _refusal(done, spec)
        if done.returncode:
            return Verdict("refused" if done.returncode == 5 else "fail", _message(done))
        wrong = _difference(got, case / "outputs.npz", spec)
        return Verdict("fail", wrong) if wrong else Verdict("pass")


def _flaot(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flaot", *map(str, words)]
    try:
        return subprocess.run(command, capture_output=True, timeout=TIMEOUT, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 255, "", f"no end within {TIMEOUT} s")


def _crash(done: subprocess.CompletedProcess[str]) -> str:
    if "Traceback (most recent call last)" in done.stderr:
        return done.stderr.strip().splitlines()[-1]
    wild = done.returncode < 0 or done.returncode >= 128 or done.returncode == 70
    return f"exit status {done.returncode}: {_message(done)}" if wild else ""


def _message(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if "flaot: error:" in line]
    text = " ".join(lines or done.stderr.split("\n")).strip()
    return re.sub(r"\S*[/\\](\S+)", r"\1", text.removeprefix("flaot: error:").strip())


def _refusal(done: subprocess.CompletedProcess[str], spec: dict[str, object]) -> Verdict:
    if done.returncode == 0:
        return Verdict("fail", f"accepted: {spec['reason']}")
    mention = spec.get("mention") or []
    assert isinstance(mention, list)
    if mention and not any(m in done.stderr for m in mention):
        return Verdict("fail", f"refused without naming {' or '.join(mention)}: {_message(done)}")
    return Verdict("pass" if done.stderr.strip() else "fail", "" if done.stderr.strip() else "refused without a message")


def _difference(got: Path, want: Path, spec: dict[str, float]) -> str:
    with np.load(got) as mine, np.load(want) as theirs:
        for name in theirs.files:
            if name not in mine.files:
                return f"output {name} missing"
            a, b = mine[name], theirs[name]
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{name}: {a.dtype}{list(a.shape)} in place of {b.dtype}{list(b.shape)}"
            exact = b.dtype.kind in "biu"
            equal = a == b if exact else np.isclose(a.astype("f8"), b.astype("f8"), spec["rtol"], spec["atol"], equal_nan=True)
            if not np.all(equal):
                return f"{name}: {int(np.size(equal) - np.sum(equal))} of {b.size} wrong"
    return ""


def ratchet() -> dict[str, Verdict]:
    """The verdicts on record: one line each, the case's name, pass, refused or fail, and why."""
    rows = [line.split(" ", 2) for line in RATCHET.read_text().splitlines() if line and not line.startswith("#")]
    return {row[0]: Verdict(row[1], row[2] if len(row) > 2 else "") for row in rows}


def main() -> int:
    only = [a for a in sys.argv[1:] if not a.startswith("-")]
    verdicts = {}
    for name in names():
        if only and name not in only:
            continue
        verdicts[name] = judge(name)
        print(f"{name:32} {verdicts[name].word:8} {verdicts[name].why}".rstrip(), flush=True)
    good = sum(v.word == "pass" for v in verdicts.values())
    print(f"{good} of {len(verdicts)} pass")
    if "--write" in sys.argv:
        head = "# Verdict of every case: pass, or why not. Written by python -m tests.cases.run --write.\n"
        RATCHET.write_text(head + "".join(f"{n} {v.word} {v.why}".rstrip() + "\n" for n, v in verdicts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

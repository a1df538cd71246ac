"""Progress is for terminals: a pseudo-terminal sees it, a pipe never does."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.cli.models import write_pair


def on_terminal(arguments: list[str], folder: Path) -> str:
    """What a command writes to a terminal on its standard error."""
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "flaot.cli.main", *arguments], cwd=folder, stderr=terminal, stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.getcwd(), "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            block = os.read(control, 4096)
        except OSError:
            break
        if not block:
            break
        seen += block
    os.close(control)
    assert process.wait() == 0
    return seen.decode()


def test_compile_names_its_stages_on_a_terminal(tmp_path: Path) -> None:
    write_pair(tmp_path)
    assert "schedule and write" in on_terminal(["compile", "m.onnx", "-o", "m.flp"], tmp_path)
    assert on_terminal(["compile", "m.onnx", "-o", "m.flp", "--json"], tmp_path) == ""


def test_a_pipe_sees_nothing(tmp_path: Path) -> None:
    write_pair(tmp_path)
    command = [sys.executable, "-m", "flaot.cli.main", "compile", "m.onnx", "-o", "m.flp"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.getcwd()})
    assert (run.returncode, run.stderr) == (0, "")

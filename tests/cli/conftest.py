"""The command line as a user meets it: a process with arguments, its outputs and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Done:
    """A finished process."""

    code: int
    out: str
    err: str

    def failed(self, code: int, *words: str) -> Done:
        """Asserts the exit code, one line of error per problem, and no traceback."""
        assert self.code == code, self
        assert self.err.startswith("flaot: error: "), self
        assert "Traceback" not in self.err
        assert all(line.startswith(("flaot: error: ", "flaot: warning: ")) for line in self.err.splitlines()), self
        for word in words:
            assert word in self.err, self
        return self


def flaot(*args: object, cwd: Path | None = None, env: dict[str, str] | None = None, **kwargs: Any) -> Done:
    """Runs ``flaot`` from this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    line = [sys.executable, "-m", "flaot.cli.main", *map(str, args)]
    done = subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, **kwargs)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """``run(*args)`` in an empty folder."""

    def call(*args: object, **kwargs: Any) -> Done:
        return flaot(*args, cwd=kwargs.pop("cwd", tmp_path), **kwargs)

    return call

"""onnxruntime's answer, asked for in a child process."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flaot.errors import DependencyError, LimitError, UsageError, printable
from flaot.runtime.npy import Array, read_data, read_members, to_npz

TIMEOUT = 1800
"""Seconds the reference may take."""

OTHER_MODEL = "is it the model the plan was made of?"


def reference(
    model: str, feeds: Mapping[str, Array], values: Sequence[str] = (), *, optimise: bool = True, shake: int = 0, stored: str = ""
) -> dict[str, np.ndarray]:
    """The model's outputs, and the intermediates ``values`` where the main graph makes them. A ``shake`` above 0
    seeds rounding noise on every operation (see :mod:`flaot.verify.shake`), in the type ``stored`` unless it is empty.

    Raises UsageError when the model lacks a feed, DependencyError (exit code 8) when onnxruntime is missing, refuses the model or
    crashes; LimitError when it takes too long.
    """
    try:
        done = subprocess.run(
            COMMAND, input=job_of(model, feeds, values, optimise, shake, stored), capture_output=True, env=environment(), timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise LimitError(f"the reference takes more than {TIMEOUT} s", where=printable(model, 200)) from None
    head, _, body = done.stdout.partition(b"\n")
    if done.returncode or not head:
        raise failed(model, f"onnxruntime {ending(done.returncode)}")
    return answer_of(model, json.loads(head), body)


COMMAND = (sys.executable, "-m", "flaot.verify.child")


def environment() -> dict[str, str]:
    """In which the child finds this package."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}


def job_of(model: str, feeds: Mapping[str, Array], values: Sequence[str], optimise: bool, shake: int, stored: str) -> bytes:
    """What the child reads for one job."""
    archive = to_npz(feeds)
    job = {"model": model, "values": list(values), "optimise": optimise, "shake": shake, "stored": stored, "feed_bytes": len(archive)}
    return json.dumps(job).encode() + b"\n" + archive


def answer_of(model: str, head: dict[str, Any], body: bytes) -> dict[str, np.ndarray]:
    """The values in the child's answer. Raises what :func:`reference` does."""
    if head.get("kind") == "dependency":
        raise DependencyError(f"verifying needs onnx and onnxruntime, which do not load: {printable(head['error'], 300)}")
    if head.get("kind") == "mismatch":
        raise UsageError(head["error"], where=printable(model, 200), hint=OTHER_MODEL)
    if "error" in head:
        raise failed(model, printable(" ".join(head["error"].split()), 400))
    return {
        name: np.frombuffer(read_data(stream, header, name), header.dtype).reshape(header.shape)
        for name, header, stream in read_members(io.BytesIO(body), "reference")
    }


def failed(model: str, why: str) -> DependencyError:
    """The reference gave no answer."""
    return DependencyError(f"reference failed: {why}", where=printable(model, 200))


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"

"""onnxruntime's answers to many small jobs, from one child process that is started again when it crashes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from types import TracebackType

import numpy as np

from flaot.runtime.npy import Array
from flaot.verify.child import SERVE
from flaot.verify.reference import COMMAND, answer_of, ending, environment, failed, job_of


class ReferenceServer:
    """A context manager; calling it does what :func:`flaot.verify.reference.reference` does, without starting a process each time."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ReferenceServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def __call__(
        self, model: str, feeds: Mapping[str, Array], values: Sequence[str] = (), *, optimise: bool = True, shake: int = 0, stored: str = ""
    ) -> dict[str, np.ndarray]:
        child = self._started()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(job_of(model, feeds, values, optimise, shake, stored))
            child.stdin.flush()
            head = child.stdout.readline()
        except BrokenPipeError:
            head = b""
        if not head:
            self._child = None
            raise failed(model, f"onnxruntime {ending(child.wait())}")
        answer = json.loads(head)
        return answer_of(model, answer, child.stdout.read(answer["body_bytes"]))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            pipe = subprocess.PIPE
            self._child = subprocess.Popen((*COMMAND, SERVE), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment())
        return self._child

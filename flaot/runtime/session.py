"""Running plans from Python, in the manner of onnxruntime's InferenceSession.

A session may be used from several threads: each concurrent run takes a context (arena and worker threads) of its own from a pool
that grows to the number of runs in flight. The GIL is released while a plan runs.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flaot.errors import PlanError, RunInputError, UsageError
from flaot.plan.chips import step_where
from flaot.plan.program import Named
from flaot.plan.read import Plan, PlanPort, read_plan
from flaot.runtime import planfile
from flaot.runtime.adapter import adapters_for
from flaot.runtime.capi import OK, NativePlan
from flaot.runtime.counters import Counters, total
from flaot.runtime.explain import explain_refusal
from flaot.runtime.library import run_error
from flaot.runtime.runner import Runner

Feeds = Mapping[str, np.ndarray]
Libraries = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
"""Adapters by the paths of their libraries."""
MAX_THREADS = 64


@dataclass
class RunOptions:
    """Options of one run. ``nanoseconds``: a uint64 array with an entry per step, to which each step's time is added."""

    nanoseconds: np.ndarray | None = None


@dataclass(frozen=True)
class StepTime:
    """Time of one step, with the names of the model nodes it came from; ``kernel`` is ``name.variant``."""

    step: int
    op: str
    origin: tuple[str, ...]
    kernel: str
    nanoseconds: int


class Session:
    """A plan ready to run.

    Args:
        plan: path of a ``.flp`` file, or its bytes. A file is read into memory once and not touched again.
        threads: threads that share the work of one run; 0 takes every CPU this process may use.
        adapter: path of a library that runs the plan's chips of its device type, "simulator", or several of them. Other chips are run by
            an installed package's adapter, or simulated.

    Raises PlanError for a damaged or incompatible plan, FileSystemError, LimitError, UsageError for another number of threads,
    DependencyError for an adapter that does not load.
    """

    def __init__(self, plan: str | os.PathLike[str] | bytes, threads: int = 1, adapter: Libraries = None) -> None:
        if not 0 <= threads <= MAX_THREADS:
            raise UsageError(f"{threads} threads; allowed are 0 (all CPUs) to {MAX_THREADS}")
        self.threads = threads or min(len(os.sched_getaffinity(0)), MAX_THREADS)
        data, where = planfile.load(plan)
        self.plan: Plan = read_plan(data, where=where)
        native = NativePlan(data)
        if native.status != OK:
            raise PlanError(explain_refusal(self.plan, native.status, native.record), where=where)
        self._native: NativePlan | None = native
        given = [] if adapter is None else [adapter] if isinstance(adapter, str | os.PathLike) else list(adapter)
        types = [c.device_type for c in self.plan.chips]
        self._adapters = adapters_for(types, [os.fspath(g) for g in given]) if types or given else []
        self._idle: list[Runner] = [Runner(self.plan, native, self.threads, self._adapters)] if self.plan.chips else []
        self._output_slots = {p.name: i for i, p in enumerate(self.plan.outputs)}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives memory and threads back, those of runs in flight when they finish. Closing twice is allowed."""
        self._native = None
        self._idle.clear()

    def get_inputs(self) -> list[PlanPort]:
        """Name, shape and numpy dtype of every input, in the model's order."""
        return list(self.plan.inputs)

    def get_outputs(self) -> list[PlanPort]:
        """The same of every output."""
        return list(self.plan.outputs)

    def run(
        self, output_names: Sequence[str] | Feeds | None, input_feed: Feeds | None = None, run_options: RunOptions | None = None
    ) -> list[np.ndarray]:
        """``run(None, feeds)``, ``run(["y"], feeds)`` or ``run(feeds)``: the outputs as a list, all or those named.

        Feeds map every input's name to an array of its shape and dtype, in any memory order. Raises RunInputError, and UsageError
        when the session is closed or ``nanoseconds`` is no array of one uint64 per step.
        """
        feeds, slots = input_feed, None
        if isinstance(output_names, Mapping) or feeds is None:
            feeds = output_names  # type: ignore[assignment]
        elif output_names is not None:
            slots = self._slots(output_names)
        runner = self._take()
        try:
            runner.bind(feeds)
            if run_options is None or run_options.nanoseconds is None:
                status = runner.run()
            else:
                status = self._timed(runner, run_options.nanoseconds)
            if status != OK:
                raise self._run_error(runner, status)
            return runner.results(slots)
        finally:
            self._give_back(runner)

    def profile(self, feeds: Feeds, repeat: int = 1) -> list[StepTime]:
        """Mean time of every step over ``repeat`` runs, in whole nanoseconds. Raises what ``run`` does."""
        if repeat < 1:
            raise UsageError(f"{repeat} runs; at least 1 is needed")
        total = np.zeros(self.step_count, np.uint64)
        for _ in range(repeat):
            self.run(None, feeds, RunOptions(total))
        times = []
        for i, t in enumerate(total):
            kernel, variant, op, origin = self.plan.step_name(i)
            times.append(StepTime(i, op, origin, f"{kernel}.{variant}", int(t) // repeat))
        return times

    def intermediates(self, feeds: Feeds) -> Iterator[tuple[Named, np.ndarray]]:
        """Runs step by step; yields every inspectable value of the model, in order of execution, with a copy of its data.

        Raises what ``run`` does, and PlanError when the plan places a value outside its memory.
        """
        runner = self._take()
        try:
            runner.bind(feeds)
            self._expect(runner, runner.begin())
            done = 0
            for named in sorted(self.plan.names, key=lambda n: n.step):
                upto = min(named.step + 1, self.step_count)
                self._expect(runner, runner.steps(done, max(upto - done, 0)))
                done = max(done, upto)
                yield named, runner.read(named.view)
        finally:
            self._give_back(runner)

    def counters(self) -> list[Counters]:
        """What every chip of the plan has done in the runs that have ended, in the order of the plan's chips. Raises UsageError when the
        session is closed."""
        if self._native is None:
            raise UsageError("the session is closed", where=self.plan.where)
        idle = list(self._idle)
        return [total(runner.counters(device) for runner in idle) for device in range(1, len(self.plan.chips) + 1)]

    @property
    def step_count(self) -> int:
        return self.plan.step_count

    # -- private -------------------------------------------------------------------------------------------------------

    def _slots(self, names: Sequence[str]) -> list[int]:
        if isinstance(names, str):
            names = [names]
        unknown = [n for n in names if n not in self._output_slots]
        if unknown:
            raise RunInputError(f"no output {unknown[0]!r}; the plan has {list(self._output_slots)}", where=self.plan.where)
        return [self._output_slots[n] for n in names]

    def _take(self) -> Runner:
        native = self._native
        if native is None:
            raise UsageError("the session is closed", where=self.plan.where)
        try:
            return self._idle.pop()
        except IndexError:
            return Runner(self.plan, native, self.threads, self._adapters)

    def _give_back(self, runner: Runner) -> None:
        runner.release()
        if self._native is not None:
            self._idle.append(runner)

    def _timed(self, runner: Runner, nanoseconds: np.ndarray) -> int:
        good = isinstance(nanoseconds, np.ndarray) and nanoseconds.dtype == np.uint64 and nanoseconds.shape == (self.step_count,)
        if not good or not nanoseconds.flags.c_contiguous or not nanoseconds.flags.writeable:
            raise UsageError(f"nanoseconds must be a contiguous uint64 array of {self.step_count} entries")
        status = runner.begin()
        return status if status != OK else runner.steps(0, self.step_count, ctypes.c_void_p(nanoseconds.ctypes.data))

    def _expect(self, runner: Runner, status: int) -> None:
        if status != OK:
            raise self._run_error(runner, status)

    def _run_error(self, runner: Runner, status: int) -> Exception:
        return run_error(status, runner.message(), f"{self.plan.where}: {step_where(self.plan, runner.failed_step())}")


__all__: list[Any] = ["Counters", "Feeds", "PlanPort", "RunOptions", "Session", "StepTime"]

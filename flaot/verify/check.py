"""The plan's answer against the reference's, output by output and layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from flaot.errors import DependencyError, UsageError, printable
from flaot.runtime.draw import draw
from flaot.runtime.feeds import load_feeds
from flaot.runtime.npy import Array
from flaot.runtime.session import Libraries, Session
from flaot.verify.bounds import Bound, Precision, bounds_of_model, precision_of
from flaot.verify.compare import compare, out_of_range
from flaot.verify.reference import OTHER_MODEL, reference
from flaot.verify.result import Comparison, Result
from flaot.verify.shake import FLUSHED

Reference = Callable[..., dict[str, np.ndarray]]
"""What answers as :func:`flaot.verify.reference.reference` does."""


class _Port:
    """A session's input as the feed loader sees it."""

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape


def verify(
    plan: str | bytes, model: str, feeds: Mapping[str, np.ndarray] | None = None, *, layers: bool = False, seed: int = 0, threads: int = 1,
    adapter: Libraries = None,
) -> Result:
    """Runs ``plan`` (path or bytes) and ``model`` (path) on ``feeds``, or on seeded random inputs, and compares.

    Raises PlanError, RunInputError, or DependencyError when onnxruntime cannot run the model.
    """
    session = Session(plan, threads=threads, adapter=adapter)
    given = {name: np.asarray(x) for name, x in (feeds or {}).items()}
    for p in session.get_inputs():
        if p.name not in given:
            drawn = draw(p.type.dtype.name, p.type.shape, seed, p.name)
            given[p.name] = np.frombuffer(drawn, p.type.dtype.numpy).reshape(p.type.shape)
    return judge(session, str(model), given, layers)


def verify_files(
    plan: str, model: str, archive: str | None, single: Mapping[str, str], *, seed: int = 0, layers: bool = False, threads: int = 1,
    adapter: Libraries = None,
) -> Result:
    """The same with inputs from a .npz archive and .npy files by name."""
    session = Session(plan, threads=threads, adapter=adapter)
    ports = [_Port(p.name, p.type.dtype.name, p.type.shape) for p in session.get_inputs()]
    arrays = load_feeds(ports, archive, single, seed, lambda: session.plan.frozen)
    types = {p.name: p.type.dtype.numpy for p in session.get_inputs()}
    return judge(session, model, {n: np.frombuffer(a.data, types[n]).reshape(a.shape) for n, a in arrays.items()}, layers)


def judge(session: Session, model: str, feeds: Mapping[str, np.ndarray], layers: bool = False, ask: Reference = reference) -> Result:
    """Runs a session and asks for the reference of ``model`` (path) on the same feeds; ``ask`` answers. Raises what :func:`verify` does."""
    got = dict(zip((p.name for p in session.get_outputs()), session.run(None, feeds), strict=True))
    feeds = {p.name: feeds[p.name] for p in session.get_inputs()}  # without frozen initializers, which the model has anyway
    raw = {n: Array(x.dtype.name, x.shape, np.ascontiguousarray(x).tobytes()) for n, x in feeds.items()}
    want = ask(model, raw)
    precision = precision_of(session.plan)
    bounds = bounds_of_model(model, {n: x.shape for n, x in feeds.items()}, precision)
    producers = _producers(session)
    wants = {n: want[n] for n in got if n in want}
    if got and not wants:
        what = f"the model makes none of the plan's outputs: {', '.join(printable(n) for n in list(got)[:8])}"
        raise UsageError(what, where=printable(model, 200), hint=OTHER_MODEL)
    outputs = [compare(n, got[n], w, bounds.get(n, Bound()), *producers.get(n, ("", ()))) for n, w in wants.items()]
    result = Result(outputs, not_compared=[n for n in got if n not in want])
    if layers:
        result.layers, data, wants = _layers(result, session, model, feeds, raw, bounds, ask)
        got = data | got
    if not result.ok:
        _reconsider(result, model, raw, got, wants | {n: want[n] for n in got if n in want}, bounds, precision, ask)
    return result


Arrays = dict[str, np.ndarray]


def _layers(
    result: Result, session: Session, model: str, feeds: Mapping[str, np.ndarray], raw: Mapping[str, Array], bounds: Mapping[str, Bound],
    ask: Reference,
) -> tuple[list[Comparison], Arrays, Arrays]:
    """Intermediates against the model as it is written: without onnxruntime's own optimisations. Half types count as the float32
    numbers they are, whichever side has them. Returns both sides' data too."""
    from flaot.ir.widen import HALVES, widened

    want = ask(model, raw, [n.name for n in session.plan.names], optimise=False)
    want = {n: x.astype(np.float32) if x.dtype == np.float16 else x for n, x in want.items()}
    compared, got = [], {}
    for named, data in session.intermediates(feeds):
        if named.name not in want:
            result.not_compared.append(named.name)
            continue
        step = session.plan.step_name(named.step) if named.step < session.step_count else ("", "", "", ())
        got[named.name] = widened(data, named.view.dtype) if named.view.dtype in HALVES else data
        compared.append(compare(named.name, got[named.name], want[named.name], bounds.get(named.name, Bound()), step[2], step[3]))
    return compared, got, want


SHAKES = 3
"""Disturbed runs of the reference that tell how ill-conditioned a value is."""


def _reconsider(
    result: Result, model: str, raw: Mapping[str, Array], got: Arrays, want: Arrays, bounds: Mapping[str, Bound], precision: Precision,
    ask: Reference,
) -> None:
    """Compares what differs once more, allowing for how far the reference itself moves under rounding noise, that of the type a chip
    stores values in where there is one."""
    stored = f"{precision.stored.name}{FLUSHED if precision.flush else ''}" if precision.stored is not None else ""
    failed = [c.name for c in (*result.layers, *result.outputs) if not c.ok and got[c.name].dtype.kind == "f"]
    if not failed:
        return
    try:
        runs = [ask(model, raw, failed, optimise=False, shake=seed, stored=stored) for seed in range(1, SHAKES + 1)]
    except DependencyError:
        return
    for comparisons in (result.layers, result.outputs):
        for i, c in enumerate(comparisons):
            shaken = [r[c.name] for r in runs if c.name in r and r[c.name].shape == want[c.name].shape]
            if not c.ok and c.name in failed and shaken:
                spread = np.max([np.abs(s.astype(np.float64) - want[c.name]) for s in shaken], axis=0)
                bound = bounds.get(c.name, Bound())
                again = compare(c.name, got[c.name], want[c.name], bound, c.op, c.nodes, spread)
                comparisons[i] = out_of_range(again, got[c.name], want[c.name], shaken, stored) if stored else again


def _producers(session: Session) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Operator and model nodes of the step that writes each output."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    ports = session.get_outputs()
    for step in session.plan.steps:
        for view in step.outputs:
            if view.buffer.space.name == "output" and view.buffer.index < len(ports):
                found[ports[view.buffer.index].name] = (step.op, step.origin)
    return found

"""One case through the device: compiled, run, compared."""

from __future__ import annotations

import dataclasses
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from flaot.errors import DependencyError, FlaotError, InternalError, printable
from flaot.hcd import Hcd
from flaot.ir.graph import Graph
from flaot.ir.types import DType
from flaot.mapping.decisions import Decision
from flaot.mapping.orders import ChipLayouts
from flaot.mapping.policy import policy_of
from flaot.mapping.record import Record
from flaot.optest.case import Case, Expected
from flaot.optest.limits import is_claimed
from flaot.optest.model import model_of, to_bytes
from flaot.optest.probes.bench import Bench
from flaot.optest.verdict import BUG, ELSEWHERE, OUTSIDE, PASS, REFUSED, TRAPPED, UNKNOWN, WRONG, Verdict
from flaot.pipeline import Compiled, Options, compile_made, read_model
from flaot.runtime.npy import Array, to_npz
from flaot.runtime.session import Session
from flaot.verify.check import judge
from flaot.verify.result import Comparison
from flaot.verify.server import ReferenceServer

HALVES = (DType.float16, DType.bfloat16)


@dataclass
class Device:
    """What cases run on: a chip's descriptor, the adapter that runs it (None: the simulator), and what answers for onnxruntime."""

    hcd: Hcd
    adapter: str | None
    reference: ReferenceServer
    folder: Path
    keep: Path | None = None

    def run(self, case: Case) -> Verdict:
        """The case's verdict. Raises DependencyError without onnxruntime, DeviceError or LimitError where the device is busy or lost."""
        base = Verdict(case.id, case.operator, case.kind, PASS, slow=case.slow)
        try:
            return self._run(base, case)
        except InternalError as e:
            return replace(base, verdict=BUG, text=e.what)
        except (FlaotError, OSError):
            raise
        except Exception as e:  # whatever one case brings to light, the others are still to be tried
            return replace(base, verdict=BUG, text=printable(f"{type(e).__name__}: {e}", 200))

    def _run(self, base: Verdict, case: Case) -> Verdict:
        model, feeds = model_of(case, [_rounded(a, case, self.hcd) for a in case.arrays()])
        path = self.folder / "case.onnx"
        path.write_bytes(to_bytes(model))
        if self.keep is not None:
            keep(self.keep, case, to_bytes(model), feeds)
        hcd = laid_out(self.hcd, case.layout)
        try:
            compiled = _compiled(case, model.SerializeToString(), feeds, hcd)
        except InternalError:
            raise
        except FlaotError as e:
            return replace(base, verdict=REFUSED, text=e.what, origin=e.origin)
        base = replace(base, dtype=_stored(compiled.record))
        away = _away(compiled.record, case, hcd)
        if away is not None:
            verdict, text, origin = away
            return replace(base, verdict=verdict, text=text, origin=origin)
        try:
            return self._measured(base, case, compiled.plan, path, feeds)
        except InternalError:
            raise
        except DependencyError as e:
            if "do not load" in e.what:
                raise
            return replace(base, verdict=UNKNOWN, text=e.what)
        except FlaotError as e:
            if self.hcd.full.chip.device_type != "cpu":
                Bench(self.hcd, self.adapter).require(e)
            return replace(base, verdict=TRAPPED, text=e.what)

    def _measured(self, base: Verdict, case: Case, plan: bytes, path: Path, feeds: dict[str, np.ndarray]) -> Verdict:
        with Session(plan, adapter=self.adapter) as session:
            if case.expected:
                wrong = _stated(case.expected, session.run(None, feeds))
                return base if wrong is None else replace(base, verdict=WRONG, text=wrong[0], error=wrong[1], bound=wrong[2])
            turned = {p.name: feeds[p.name] for p in session.get_inputs()}
            found = judge(_Turned(session, case, self.hcd), str(path), turned, ask=self.reference).outputs  # type: ignore[arg-type] # same methods
        worst = max(found, key=_beyond)
        wrong_text = "" if worst.ok else worst.note or f"at {list(worst.worst)} got {worst.got:.7g}, want {worst.want:.7g}"
        return replace(
            base, verdict=PASS if worst.ok else WRONG, text=wrong_text, error=abs(worst.got - worst.want), bound=worst.allowed,
            exact=worst.snr_db is None,
        )


class _Turned:
    """A session whose first input is fed in the order the case is about."""

    def __init__(self, session: Session, case: Case, hcd: Hcd) -> None:
        self._session, self._order = session, _order(case, hcd)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, names: None, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        return self._session.run(names, {n: x.transpose(self._order) if n == "x0" and self._order else x for n, x in feeds.items()})


def keep(folder: Path, case: Case, model: bytes, feeds: dict[str, np.ndarray]) -> None:
    """Writes the case's model and inputs into a folder, so that ``flaot compile`` and ``flaot verify`` can repeat it. Raises
    FileSystemError."""
    from flaot.files import make_folder, write_file

    stem = folder / case.id.replace("/", ".")
    make_folder(str(folder))
    write_file(f"{stem}.onnx", model)
    arrays = {n: Array(x.dtype.name, x.shape, np.ascontiguousarray(x).tobytes()) for n, x in feeds.items()}
    write_file(f"{stem}.npz", to_npz(arrays))


def laid_out(hcd: Hcd, layout: str) -> Hcd:
    """The descriptor with another default layout."""
    if not layout or hcd.full.tensor is None:
        return hcd
    tensor = hcd.full.tensor.model_copy(update={"default_layout": layout})
    return dataclasses.replace(hcd, full=hcd.full.model_copy(update={"tensor": tensor}))


def _compiled(case: Case, model: bytes, feeds: dict[str, np.ndarray], hcd: Hcd) -> Compiled:
    fed = {"x0": case.layout} if _order(case, hcd) else {}
    policy = policy_of(hcd, fallback="allow", prefer=hcd.name if hcd.full.chip.device_type != "cpu" else "")
    options = Options(policy=policy, input_layouts=fed)

    def read() -> Graph:
        graph = read_model(model, options)
        if case.stored:
            graph.model_dtype = DType[case.stored] if DType[case.stored] in HALVES else None
        return graph

    return compile_made(read, hcd, options)


def _order(case: Case, hcd: Hcd) -> tuple[int, ...]:
    """The axes of the first input in the order it is fed; () for the model's own."""
    first = case.inputs[0]
    if not case.layout or first is None or first.constant or len(first.shape) != 4:
        return ()
    return ChipLayouts(hcd).order(case.layout, 4)


def _rounded(array: np.ndarray | None, case: Case, hcd: Hcd) -> np.ndarray | None:
    """float32 values that the type the case is stored in holds, so that what is compared is the operator alone."""
    if array is None or array.dtype != np.float32 or hcd.full.chip.device_type == "cpu":
        return array
    if case.stored == "bfloat16":
        bits = array.view(np.uint32) + 0x7FFF + (array.view(np.uint32) >> 16 & 1)
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)
    return array if case.stored == "float32" else array.astype(np.float16).astype(np.float32)


def _stored(record: Record) -> str:
    return next((d.dtype for d in record.decisions if d.node and d.dtype), "")


def _away(record: Record, case: Case, hcd: Hcd) -> tuple[str, str, str] | None:
    """The verdict where some of the case does not run on the chip as it was claimed, why, and the line that rests on; None when all of it
    does. What breaks the claim goes before what the descriptor rules out."""
    if hcd.full.chip.device_type == "cpu":
        return None
    made = [d for d in record.decisions if d.node]
    found = [_told(d, case, hcd) for d in made if d.verdict != "native" or d.device != hcd.name]
    if found:
        return next((f for f in found if f[0] == ELSEWHERE), found[0])
    return None if made else (ELSEWHERE, "nothing is left of it to run", "")


def _told(d: Decision, case: Case, hcd: Hcd) -> tuple[str, str, str]:
    """The verdict on a node that does not run on the chip, its sentence and line."""
    how = "expanded into simpler operators" if d.verdict == "expanded" else "run by the host"
    text = f"{d.op} is {how}{f': {d.reason}' if d.reason else ''}"
    if not is_claimed(d.op, case.operator, hcd):
        return OUTSIDE, f"it takes {d.op} as well, which is not claimed{f': {d.reason}' if d.reason else ''}", d.origin
    return OUTSIDE if _is_limit(d.origin, hcd) else ELSEWHERE, text, d.origin


def _is_limit(origin: str, hcd: Hcd) -> bool:
    """Whether a line is a condition of the operator table, or the size of the on-chip memory, which what cannot be cut does not fit into:
    what it says limits the claim, and breaks none."""
    table = hcd.full.operators or {}
    lines = {hcd.origin("operators", n, "requires", i) for n, e in table.items() for i in range(len(e.requires or ()))}
    lines |= {hcd.origin("operators", n, k) for n, e in table.items() for k in ("max_rank", "min_rank") if getattr(e, k) is not None}
    return origin in lines | {hcd.origin("memory", "on_chip_cache", "size_kb")}


def _beyond(c: Comparison) -> tuple[bool, float]:
    """Failed ones first, then by error over bound."""
    error = abs(c.got - c.want)
    return not c.ok, error / c.allowed if c.allowed else error


def _stated(expected: tuple[Expected, ...], got: list[np.ndarray]) -> tuple[str, float, float] | None:
    """The sentence, error and bound of the first element that is not what the descriptor's vector says, or None."""
    for i, (e, g) in enumerate(zip(expected, got, strict=True)):
        if g.shape != e.array.shape:
            return f"output {i} has shape {list(g.shape)}, want {list(e.array.shape)}", float("inf"), 0.0
        want, have = e.array.astype(np.float64), g.astype(np.float64)
        allowed = e.atol + e.rtol * np.abs(want)
        off = np.abs(have - want)
        wrong = ~((off <= allowed) | (have == want))
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return printable(f"output {i} at {list(at)} got {have[at]:.7g}, want {want[at]:.7g}", 200), float(off[at]), float(allowed[at])
    return None


def temporary() -> tempfile.TemporaryDirectory[str]:
    """A folder for the models that are being run."""
    return tempfile.TemporaryDirectory(prefix="flaot-optest-")

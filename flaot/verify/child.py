"""The reference in a process of its own, so that a crash of onnxruntime is an answer and not an end.

Standard input: a JSON line (``model``, ``values``, ``optimise``, ``shake``, ``stored``), then the feeds as .npz.
Standard output: a JSON line (``ok``, or ``error`` with ``kind``: dependency, reference or mismatch), then the values as .npz.
With ``--serve`` jobs follow each other; their line says how many bytes of feeds come (``feed_bytes``), as the answer's does of values.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from flaot.errors import printable
from flaot.runtime.npy import Array, read_data, read_members, to_npz

SERVE = "--serve"
SHOWN = 8
"""Names a message lists at most."""


class Mismatch(Exception):
    """The plan and the model have other inputs."""


def main() -> None:
    output = os.dup(1)
    os.dup2(2, 1)  # whatever onnxruntime prints must not mix with the answer
    source = sys.stdin.buffer
    if SERVE not in sys.argv:
        line, _, archive = source.read().partition(b"\n")
        _answer(output, *_done(json.loads(line), archive))
    else:
        for line in source:
            job = json.loads(line)
            _answer(output, *_done(job, source.read(job["feed_bytes"])))
    os.close(output)


def _done(job: dict[str, Any], archive: bytes) -> tuple[dict[str, Any], bytes]:
    """The head and body of the answer to one job."""
    try:
        import onnx
        import onnxruntime
    except Exception as e:
        return {"kind": "dependency", "error": f"{type(e).__name__}: {e}"}, b""
    try:
        return {"ok": True}, to_npz(_run(onnx, onnxruntime, job, _feeds(archive)))
    except Mismatch as e:
        return {"kind": "mismatch", "error": str(e)}, b""
    except Exception as e:
        return {"kind": "reference", "error": f"{type(e).__name__}: {e}"}, b""


def _answer(output: int, head: dict[str, Any], body: bytes) -> None:
    with open(output, "wb", closefd=False) as f:
        f.write(json.dumps({**head, "body_bytes": len(body)}).encode() + b"\n" + body)


def _feeds(archive: bytes) -> dict[str, np.ndarray]:
    return {
        name: np.frombuffer(read_data(stream, header, name), header.dtype).reshape(header.shape)
        for name, header, stream in read_members(io.BytesIO(archive), "feeds")
    }


def _run(onnx: Any, ort: Any, job: dict[str, Any], feeds: dict[str, np.ndarray]) -> dict[str, Array]:
    model = onnx.load_model(job["model"], load_external_data=False)
    if job["shake"]:
        from flaot.verify.shake import shake

        shake(model, job["shake"], job["stored"])
    wanted = _add_outputs(onnx, model, job["values"])
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if job["optimise"] else level.ORT_DISABLE_ALL
    folder = os.path.dirname(os.path.abspath(job["model"]))
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    source = job["model"] if not job["values"] and not job["shake"] else model.SerializeToString()
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    needed = [i.name for i in session.get_inputs()]
    if set(needed) - set(feeds):
        raise Mismatch(f"the model takes {_quoted(needed)}, the plan {_quoted(feeds)}")
    known = {*needed, *(i.name for i in session.get_overridable_initializers())}
    results = session.run(wanted, {k: v for k, v in feeds.items() if k in known})
    return {n: _array(r) for n, r in zip(wanted, results, strict=True) if isinstance(r, np.ndarray) and r.dtype.kind in "fiub"}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{printable(n)}'" for n in list(names)[:SHOWN]) or "no input"


def _add_outputs(onnx: Any, model: Any, values: list[str]) -> list[str]:
    """Makes intermediates outputs; returns the names of all tensors to fetch."""
    have = [o.name for o in model.graph.output if o.type.WhichOneof("value") in ("tensor_type", None)]
    made = {name for node in model.graph.node for name in node.output}
    extra = [v for v in values if v in made and v not in have]
    for name in extra:
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    return have + extra


def _array(r: np.ndarray) -> Array:
    return Array(r.dtype.name, r.shape, np.ascontiguousarray(r).tobytes())


if __name__ == "__main__":
    main()

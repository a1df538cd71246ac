"""Bytes to ModelProto, refusing what only looks like a model.

protobuf accepts an empty file, merges two concatenated messages and skips what it does not know, so the top level of the message
is walked here before it is parsed.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from flaot.errors import FileSystemError, FlaotError, LimitError, ModelError

MAX_MODEL_BYTES = 2**31 - 1
"""protobuf's own limit on one message."""

OLDEST_IR, OLDEST_OPSET = 3, 7

_LOOKS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PK\x03\x04", "a zip archive (a PyTorch checkpoint or a packed model)"),
    (b"\x1f\x8b", "gzip data; unpack it first"),
    (b"\x7fELF", "an ELF binary"),
    (b"%PDF", "a PDF document"),
    (b"\x89HDF", "an HDF5 file (a Keras model)"),
    (b"FLP", "a flaot plan"),
    (b"flp", "a flaot plan"),
)


@dataclass(frozen=True)
class Source:
    """A parsed model, the folder its external data may lie in, and the SHA-256 of the model file (external data not included)."""

    model: onnx.ModelProto
    folder: Path | None
    digest: bytes


def load(model: Path | str | bytes | onnx.ModelProto) -> Source:
    """Reads and parses a model. Raises ModelError, FileSystemError, LimitError or MemoryError; the caller adds the file name."""
    if isinstance(model, onnx.ModelProto):
        source = Source(model, None, sha256(model.SerializeToString(deterministic=True)).digest())
    elif isinstance(model, bytes | bytearray | memoryview):
        source = Source(parse(bytes(model)), None, sha256(model).digest())
    else:
        path = Path(model)
        data = _file_bytes(path)
        source = Source(parse(data), path.parent, sha256(data).digest())
    check_versions(source.model)
    return source


def _file_bytes(path: Path) -> bytes:
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):
            raise FileSystemError("is not a regular file")
        if info.st_size > MAX_MODEL_BYTES:
            raise LimitError(
                f"{info.st_size} bytes; an ONNX file holds at most {MAX_MODEL_BYTES}",
                hint="larger weights belong in external data files",
            )
        return path.read_bytes()
    except (OSError, ValueError) as e:
        raise FileSystemError(f"cannot be read: {getattr(e, 'strerror', None) or e}") from None


def parse(data: bytes) -> onnx.ModelProto:
    """The message in ``data``, which must be one whole ModelProto and nothing else."""
    if not data:
        raise ModelError("the file is empty; expected an ONNX model")
    for magic, what in _LOOKS:
        if data.startswith(magic):
            raise ModelError(f"not an ONNX model; it looks like {what}")
    if not any(data[:64]):
        raise ModelError("not an ONNX model; it begins with zeros")
    try:
        _check_top_level(data)
        model = onnx.ModelProto()
        model.ParseFromString(data)
        return model
    except FlaotError:
        if _is_text(data):
            raise ModelError("not an ONNX model; it looks like text") from None
        raise
    except DecodeError as e:
        if "alloc" in str(e):  # "Arena alloc failed"; protobuf has no class of its own for it
            raise MemoryError from None
        raise ModelError("not a readable ONNX model; the file is damaged, cut short or nested too deep") from None


def _is_text(data: bytes) -> bool:
    head = data[:256]
    return all(b in b"\t\n\r" or 32 <= b < 127 or b >= 128 for b in head) and sum(32 <= b < 127 for b in head) > 0.9 * len(head)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise ModelError("not a readable ONNX model; the file is cut short")
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ModelError(f"not a readable ONNX model; a number of more than 64 bits at byte {at - 10}")


def _check_top_level(data: bytes) -> None:
    known = onnx.ModelProto.DESCRIPTOR.fields_by_number
    repeated = {n for n, f in known.items() if f.is_repeated}
    seen: set[int] = set()
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number not in known or wire not in (0, 2):
            raise ModelError(f"not an ONNX model, or followed by something else: unknown field {number} at byte {start}")
        if number in seen and number not in repeated:
            raise ModelError(
                f"'{known[number].name}' a second time at byte {start}; the file seems to hold two models one after the other"
            )
        seen.add(number)
        size, at = _varint(data, at)
        if wire == 2:
            at += size
            if at > len(data):
                raise ModelError(f"the file is cut short: {at - len(data)} bytes of '{known[number].name}' are missing")


def check_versions(model: onnx.ModelProto) -> None:
    """The IR version is one flaot reads, and the model has a graph and operator set imports."""
    if not model.HasField("graph"):
        raise ModelError("the model has no graph")
    if not OLDEST_IR <= model.ir_version <= onnx.IR_VERSION:
        raise ModelError(f"IR version {model.ir_version}; supported are {OLDEST_IR} to {onnx.IR_VERSION}")
    check_names(model.graph)
    if not model.opset_import:
        raise ModelError(f"no opset_import; supported ai.onnx opsets are {OLDEST_OPSET} to {newest_opset()}")


def check_names(graph: onnx.GraphProto) -> None:
    """protobuf hands strings that are not UTF-8 out as bytes; such names are refused."""
    infos = [*graph.input, *graph.output, *graph.value_info]
    names = [graph.name, *(v.name for v in infos), *(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer)]
    names += [d.dim_param for v in infos for d in v.type.tensor_type.shape.dim]
    if not all(isinstance(name, str) for name in names):
        raise ModelError("a name in the graph is not valid UTF-8")


def newest_opset() -> int:
    return int(onnx.defs.onnx_opset_version())


def domain_of(name: str) -> str:
    """ONNX's own domain has two spellings; the IR uses the empty one."""
    return "" if name == "ai.onnx" else name


def opsets(imports: object) -> dict[str, int]:
    """Domain to version. A domain imported twice with different versions is refused."""
    found: dict[str, int] = {}
    for item in imports:  # type: ignore[attr-defined]
        domain = domain_of(item.domain)
        if found.setdefault(domain, item.version) != item.version:
            raise ModelError(f"domain '{domain or 'ai.onnx'}' is imported as opset {found[domain]} and as {item.version}")
    if "" in found and not OLDEST_OPSET <= found[""] <= newest_opset():
        raise ModelError(f"ai.onnx opset {found['']}; supported are {OLDEST_OPSET} to {newest_opset()}")
    return found

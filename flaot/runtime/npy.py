"""``.npy`` and ``.npz`` files without numpy, whose import costs more than a small plan's whole run. Nothing is ever unpickled."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple

from flaot.errors import RunInputError, printable
from flaot.files import read_file

DESCRIPTORS = {
    "f4": "float32", "u1": "uint8", "i1": "int8", "u2": "uint16", "i2": "int16", "i4": "int32", "i8": "int64", "b1": "bool",
    "f2": "float16", "f8": "float64", "u4": "uint32", "u8": "uint64", "V2": "bfloat16",
}  # fmt: skip
"""numpy's type codes -> flaot's dtype names; bfloat16 arrays of ml_dtypes are saved as two raw bytes."""

_MAX_HEADER = 10_000


class Array(NamedTuple):
    """A dense row-major array: dtype name, shape, little-endian bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Header(NamedTuple):
    """What a .npy file says about its data."""

    dtype: str
    shape: tuple[int, ...]
    code: str
    fortran: bool
    size: int


def open_npy(path: str) -> tuple[Header, IO[bytes]]:
    """Header and data of a .npy file. Raises RunInputError or FileSystemError."""
    stream = io.BytesIO(read_file(path, "a .npy file"))
    return read_header(stream, printable(path, 200)), stream


def open_npz(path: str) -> Iterator[tuple[str, Header, IO[bytes]]]:
    """Name, header and data of every array of a .npz file, one at a time. Raises RunInputError or FileSystemError."""
    return read_members(io.BytesIO(read_file(path, "a .npz file")), printable(path, 200))


def read_members(source: IO[bytes], shown: str) -> Iterator[tuple[str, Header, IO[bytes]]]:
    """The same for content already read; ``shown`` names it in messages."""
    import zipfile
    import zlib

    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError) as e:
        raise RunInputError(f"not a .npz file ({printable(e)})", where=shown, hint="save it with numpy.savez") from None
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        where = f"{shown}: '{printable(name)}'"
        try:
            with archive.open(member) as stream:
                yield name, read_header(stream, where), stream
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError, zlib.error) as e:
            raise RunInputError(f"damaged ({printable(e)})", where=where) from None


def read_header(stream: IO[bytes], where: str) -> Header:
    """Raises RunInputError for anything but a plain array of numbers."""

    def fail(what: str) -> RunInputError:
        return RunInputError(what, where=where)

    import ast

    magic = stream.read(8)
    if magic[:6] != b"\x93NUMPY" or len(magic) < 8:
        raise fail("not a .npy file")
    width = 2 if magic[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > _MAX_HEADER:
        raise fail(f"a header of {length} bytes; at most {_MAX_HEADER} are allowed")
    try:
        fields = ast.literal_eval(stream.read(length).decode("latin-1").strip())
        descr, fortran, shape = fields["descr"], bool(fields["fortran_order"]), fields["shape"]
        if not isinstance(shape, tuple) or not all(type(d) is int and d >= 0 for d in shape):
            raise ValueError
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        raise fail("a damaged .npy header") from None
    if not isinstance(descr, str) or "O" in descr:
        raise fail("holds Python objects or records, not a plain array of numbers")
    if descr[1:] not in DESCRIPTORS:
        raise fail(f"holds elements of type '{printable(descr)}'; known: {', '.join(DESCRIPTORS.values())}")
    count = 1
    for d in shape:
        count *= d
    return Header(DESCRIPTORS[descr[1:]], shape, descr, fortran, count * int(descr[2:]))


def read_data(stream: IO[bytes], header: Header, where: str) -> bytes:
    """The array's bytes, little-endian and row-major."""
    data = stream.read(header.size + 1)
    if len(data) != header.size:
        raise RunInputError(f"holds {'more' if len(data) > header.size else 'fewer'} bytes than its header says", where=where)
    if header.code[0] == ">" or (header.fortran and len(header.shape) > 1):
        import numpy as np

        array = np.frombuffer(data, header.code).reshape(header.shape, order="F" if header.fortran else "C")
        return array.astype(array.dtype.newbyteorder("<")).tobytes()
    return data


def to_npz(arrays: Mapping[str, Array]) -> bytes:
    """The content of a .npz file that numpy.load reads; equal arrays give equal bytes."""
    import zipfile

    codes = {v: k for k, v in DESCRIPTORS.items()}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            code = codes[array.dtype]
            prefix = "|" if code.endswith("1") else "<"
            shape = f"({', '.join(map(str, array.shape))}{',' if len(array.shape) == 1 else ''})"
            text = f"{{'descr': '{prefix}{code}', 'fortran_order': False, 'shape': {shape}, }}"
            text += " " * (-(len(text) + 11) % 64) + "\n"
            member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(member, "w", force_zip64=True) as out:
                out.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin-1"))
                out.write(array.data)
    return target.getvalue()

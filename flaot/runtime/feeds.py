"""Command-line inputs: files by name, the rest drawn at random; checked against what the plan takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Protocol

from flaot.errors import RunInputError, printable
from flaot.runtime import npy
from flaot.runtime.draw import draw
from flaot.runtime.frozen import check_frozen
from flaot.runtime.npy import Array, Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flaot.ir.types import Frozen

    Defaults = Callable[[], Sequence[Frozen]]


class PortLike(Protocol):
    """An input of a plan: its name, dtype name and shape."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def load_feeds(
    ports: Sequence[PortLike], archive: str | None, single: Mapping[str, str], seed: int, frozen: Defaults = list
) -> dict[str, Array]:
    """One array per port. Raises RunInputError for unknown names, other shapes or dtypes, and damaged files.

    ``frozen`` gives the initializers of the plan that may be fed with their own value; it is asked when a name is no port.
    """
    known = {p.name: p for p in ports}
    feeds: dict[str, Array] = {}
    if archive is not None:
        for name, header, stream in npy.open_npz(archive):
            where = f"{printable(archive, 200)}: '{printable(name)}'"
            _take(feeds, known, frozen, name, header, stream, where)
    for name, path in single.items():
        if _default(name, known, frozen) is None:
            _known(name, known, f"--input {printable(name)}")
        header, stream = npy.open_npy(path)
        _take(feeds, known, frozen, name, header, stream, printable(path, 200))
    for port in ports:
        if port.name not in feeds:
            feeds[port.name] = Array(port.dtype, port.shape, draw(port.dtype, port.shape, seed, port.name))
    return feeds


def _default(name: str, known: Mapping[str, PortLike], frozen: Defaults) -> Frozen | None:
    """The frozen initializer of this name; None when it is an input or unknown."""
    return None if name in known else next((f for f in frozen() if f.name == name), None)


def _known(name: str, known: Mapping[str, PortLike], where: str) -> PortLike:
    if name in known:
        return known[name]
    import difflib

    close = difflib.get_close_matches(name[:200], list(known), 1)
    names = ", ".join(f"'{printable(n)}'" for n in list(known)[:20])
    hint = f"did you mean '{printable(close[0])}'?" if close else f"its inputs are {names}" if known else "it has no inputs"
    raise RunInputError(f"the plan has no input '{printable(name)}'", where=where, hint=hint)


def _take(
    feeds: dict[str, Array], known: Mapping[str, PortLike], frozen: Defaults, name: str, header: Header, stream: IO[bytes], where: str
) -> None:
    default = _default(name, known, frozen)
    if default is not None:
        check_frozen(default, header.dtype, header.shape, lambda: npy.read_data(stream, header, where), where)
        return
    port = _known(name, known, where)
    check(port, header.dtype, header.shape, where)
    feeds[name] = Array(port.dtype, port.shape, npy.read_data(stream, header, where))


def check(port: PortLike, dtype: str, shape: tuple[int, ...], where: str) -> None:
    """Raises RunInputError unless dtype and shape are the port's; bfloat16 may come as its bits in uint16."""
    if dtype != port.dtype and (port.dtype, dtype) != ("bfloat16", "uint16"):
        raise RunInputError(f"input '{printable(port.name)}' has dtype {dtype}; the plan takes {port.dtype}", where=where)
    if tuple(shape) != tuple(port.shape):
        raise RunInputError(
            f"input '{printable(port.name)}' has shape {list(shape)}; the plan takes {list(port.shape)}",
            where=where,
            hint="compile with --shape for another one",
        )

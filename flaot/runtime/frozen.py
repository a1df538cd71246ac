"""Feeds for initializers that are frozen into the plan: only the value they have anyway is accepted."""

from __future__ import annotations

from collections.abc import Callable

from flaot.errors import RunInputError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flaot.ir.types import Frozen


def check_frozen(frozen: Frozen, dtype: str, shape: tuple[int, ...], data: Callable[[], bytes], where: str) -> None:
    """Raises RunInputError unless the feed is the initializer; ``data`` gives its row-major little-endian bytes.

    bfloat16 may come as its bits in uint16.
    """
    from hashlib import sha256  # takes longer to import than a small plan takes to run

    type = frozen.type
    carried = dtype == type.dtype.name or (type.dtype.name, dtype) == ("bfloat16", "uint16")
    same = carried and tuple(shape) == type.shape
    if same and sha256(data()).digest() == frozen.digest:
        return
    fed = "other values" if same else f"{dtype}{list(shape)}"
    raise RunInputError(
        f"input '{printable(frozen.name)}' is frozen into the plan as an initializer of the model, {type}; it is fed {printable(fed)}",
        where=where,
        hint="to change it, compile a model without it among the initializers",
    )

"""Windows of fewer spatial axes in the parameters of kernels that have three."""

from __future__ import annotations

from collections.abc import Sequence


def three(values: Sequence[int], fill: int) -> tuple[int, ...]:
    """One entry per spatial axis, with ``fill`` for the outer axes that are not there."""
    return (*[fill] * (3 - len(values)), *values)

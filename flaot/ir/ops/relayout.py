"""Relayout: the same tensor stored in another axis order. Inserted by the layouts stage; defined as Identity."""

from __future__ import annotations

from dataclasses import dataclass

from flaot.ir.ops.transfer import _Same
from flaot.ir.types import Layout


@dataclass(frozen=True)
class Relayout(_Same):
    """Logical value unchanged; the result is stored with ``layout`` (outermost axis first)."""

    layout: Layout

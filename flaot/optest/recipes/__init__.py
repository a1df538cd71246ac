"""How to make cases of each ONNX operator: one function per family, found by the operator's name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator

from flaot.optest.case import Case
from flaot.optest.limits import Limits

Recipe = Callable[[str, Limits], Iterator[Case]]

RECIPES: dict[str, Recipe] = {}
"""Every recipe by ONNX operator."""


def recipe(*operators: str) -> Callable[[Recipe], Recipe]:
    """Registers a function that makes the cases of these operators. Raises ValueError when one has a recipe already."""

    def register(fn: Recipe) -> Recipe:
        for name in operators:
            if name in RECIPES:
                raise ValueError(f"two recipes for {name}")
            RECIPES[name] = fn
        return fn

    return register


def load_all() -> None:
    """Imports every module of this package; idempotent."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")


def cases_of(operator: str, limits: Limits) -> list[Case]:
    """The cases of an operator, each name once; none when there is no recipe."""
    load_all()
    made = RECIPES.get(operator)
    found = {c.name: c for c in made(operator, limits)} if made is not None else {}
    return list(found.values())

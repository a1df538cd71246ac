"""Proof against onnxruntime: ``flaot.verify(plan, model, feeds)`` and what ``flaot verify`` calls.

The module itself is callable, so that ``flaot.verify`` is the function whether or not this package has been imported by name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from flaot.verify.check import verify, verify_files
from flaot.verify.result import Result

__all__ = ["Result", "verify", "verify_files"]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        return verify(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable

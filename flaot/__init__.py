"""flaot: ahead-of-time ONNX-to-chip converter with a compact C99 runtime.

    plan = flaot.compile("model.onnx", "host").plan
    outputs = flaot.Session(plan).run(None, {"x": x})
    flaot.verify(plan, "model.onnx", {"x": x})

Names are imported on first use: running a plan needs neither onnx nor networkx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flaot.version import VERSION as __version__

if TYPE_CHECKING:
    from flaot import verify
    from flaot.errors import FlaotError
    from flaot.hcd import Hcd, load_hcd
    from flaot.pipeline import Compiled, Options
    from flaot.pipeline import compile_model as compile
    from flaot.plan.read import Plan
    from flaot.runtime.session import Session

_HOMES = {
    "Compiled": ("flaot.pipeline", "Compiled"),
    "FlaotError": ("flaot.errors", "FlaotError"),
    "Hcd": ("flaot.hcd", "Hcd"),
    "Options": ("flaot.pipeline", "Options"),
    "Plan": ("flaot.plan.read", "Plan"),
    "Session": ("flaot.runtime.session", "Session"),
    "compile": ("flaot.pipeline", "compile_model"),
    "load_hcd": ("flaot.hcd", "load_hcd"),
    "verify": ("flaot.verify", ""),
}
__all__ = ["Compiled", "FlaotError", "Hcd", "Options", "Plan", "Session", "__version__", "compile", "load_hcd", "verify"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'flaot' has no attribute '{name}'")
    import importlib

    module, attribute = _HOMES[name]
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return __all__

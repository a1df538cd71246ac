"""Adapters of installed packages: entry points of the group ``flaot.adapters``.

The name of an entry point is the device type it serves, its value a function without parameters that returns the path of the
adapter's library.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from flaot.errors import DependencyError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "flaot.adapters"
REINSTALL = "reinstall or repair it, or use --adapter simulator"


@dataclass(frozen=True)
class Installed:
    """One entry point; ``package`` is the name and version of what was installed."""

    device_type: str
    package: str
    _point: EntryPoint

    @property
    def source(self) -> str:
        """The package in words."""
        return f"package {printable(self.package)}"

    def library(self) -> str:
        """The path of the library. Raises DependencyError, whatever the package does."""
        try:
            path = self._point.load()()
        except (Exception, SystemExit) as e:  # what a foreign package raises is its own affair
            problem = f"its adapter for device type '{printable(self.device_type)}' is not found: {type(e).__name__}: {printable(e, 200)}"
            raise DependencyError(problem) from None
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            given = "an empty path" if isinstance(path, str) else f"an object of type {type(path).__name__}"
            problem = f"'{printable(self._point.value)}' returns {given}; the path of a library is wanted"
            raise DependencyError(problem)
        return os.fsdecode(path)


def installed() -> list[Installed]:
    """All of them, in the order of their device types and packages."""
    from importlib.metadata import entry_points  # slow to import, and only plans for chips ask

    found = [Installed(p.name, f"{p.dist.name} {p.dist.version}" if p.dist else p.module, p) for p in entry_points(group=GROUP)]
    return sorted(found, key=lambda i: (i.device_type, i.package))


def installed_for(device_type: str) -> Installed | None:
    """The one that serves a device type, if any. Raises DependencyError when several packages do."""
    found = [i for i in installed() if i.device_type == device_type]
    if len({i.package for i in found}) > 1:
        packages = ", ".join(str(printable(i.package)) for i in found)
        problem = f"{len(found)} packages offer adapters for device type '{printable(device_type)}': {packages}"
        raise DependencyError(problem, hint="uninstall all but one, or choose a library by --adapter")
    return found[0] if found else None

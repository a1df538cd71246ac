"""Hardware Capability Descriptors: what flaot knows of a chip. Use :func:`load_hcd`."""

from flaot.hcd.library import bundled, load_hcd
from flaot.hcd.loader import Hcd, load, load_file

__all__ = ["Hcd", "bundled", "load", "load_file", "load_hcd"]

"""Hardware Capability Descriptors: what flaot knows of a chip. Use :func:`load_hcd`."""

from flaot.hcd.board import Board, board_of
from flaot.hcd.library import bundled, load_hcd
from flaot.hcd.loader import Hcd, load, load_file

__all__ = ["Board", "Hcd", "board_of", "bundled", "load", "load_file", "load_hcd"]

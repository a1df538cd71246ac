"""Files to start from: what a new op, chip or adapter needs, complete and passing its own tests."""

from flaot.scaffold.make import Made
from flaot.scaffold.names import adapter, chip, op

__all__ = ["Made", "adapter", "chip", "op"]

"""What a machine really does, and what its descriptor says about it."""

from flaot.measure.compare import Row, compare, contradictions
from flaot.measure.figures import Figures, Level
from flaot.measure.host import measure_host
from flaot.measure.write import descriptor

__all__ = ["Figures", "Level", "Row", "compare", "contradictions", "descriptor", "measure_host"]

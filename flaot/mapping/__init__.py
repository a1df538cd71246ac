"""Where every node of a model runs, in what element type and layout, and why."""

LEVELS = ("none", "conservative", "balanced", "aggressive")
"""Names of fusion levels 0 to 3."""

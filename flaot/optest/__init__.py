"""The standard operator suite: what a chip claims, measured on the chip.

claims -> recipes (cases from the descriptor's own limits) -> suite (compile, run, compare) -> summary, report, ratchet.
``probes`` look for descriptors that lie.
"""

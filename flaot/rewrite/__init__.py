"""The rewrite engine: rules, the fixpoint driver, and what it recorded."""

from flaot.ir.graph import Patch
from flaot.rewrite.engine import run_rules
from flaot.rewrite.rule import Miss, Rule, Sweep, rules_in
from flaot.rewrite.trace import Tracer

__all__ = ["Miss", "Patch", "Rule", "Sweep", "Tracer", "rules_in", "run_rules"]

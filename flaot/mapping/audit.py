"""Warnings about a descriptor that need to know flaot's operators: names nobody knows, which would silently allow or deny nothing."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.hcd import Hcd
from flaot.hcd.operators import Condition, Predicate
from flaot.hcd.text import nearest
from flaot.mapping.attributes import attribute_names, input_slot
from flaot.mapping.names import READ_AS, known_operators, ops_named


def audit(hcd: Hcd) -> tuple[str, ...]:
    """One sentence, with its line, per operator, attribute or input of ``operators`` and ``fusions`` that no node can have."""
    return tuple(dict.fromkeys((*_operators(hcd), *_fusions(hcd))))


def _operators(hcd: Hcd) -> Iterator[str]:
    table, known = hcd.full.operators or {}, known_operators()
    for name, entry in table.items():
        where = hcd.origin("operators", name)
        parts = [p for p in READ_AS.get(name, ()) if p not in table]
        if name not in known:
            yield f"{where}: there is no operator {name}; {nearest(name, known)}"
        elif parts and entry.supported is not False:
            yield f"{where}: {name} is read as {', '.join(READ_AS[name])}; list {', '.join(parts)} as well"
        for i, predicate in enumerate(entry.requires or ()):
            yield from _conditions(name, predicate, hcd.origin("operators", name, "requires", i))


def _fusions(hcd: Hcd) -> Iterator[str]:
    known = known_operators()
    for i, fusion in enumerate(hcd.full.fusions or ()):
        for k, node in enumerate(fusion.pattern):
            if node.op not in known:
                yield f"{hcd.origin('fusions', i, 'pattern', k)}: there is no operator {node.op}; {nearest(node.op, known)}"
            for j, predicate in enumerate(node.requires or ()):
                yield from _conditions(node.op, predicate, hcd.origin("fusions", i, "pattern", k, "requires", j))


def _conditions(name: str, predicate: Predicate, where: str) -> Iterator[str]:
    for condition in (predicate, predicate.when):
        sentence = _unknown(name, condition) if condition is not None else None
        if sentence is not None:
            yield f"{where}: {sentence}"


def _unknown(name: str, condition: Condition) -> str | None:
    ops = ops_named(name)
    if not ops:
        return None
    if condition.input is not None:
        if any(input_slot(op, condition.input) is not None for op in ops):
            return None
        return f"{name} has no input {condition.input}; input_0, input_1, ... name any"
    names = sorted({n for op in ops for n in attribute_names(op)})
    if condition.attribute in names:
        return None
    return f"conditions on {condition.attribute} of {name} are never met; known are {', '.join(names) or 'none'}"

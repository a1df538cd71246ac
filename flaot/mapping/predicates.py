"""Conditions of a descriptor on attributes and inputs of a node; each says what it found and what it allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flaot.hcd.operators import Condition, Predicate
from flaot.ir.graph import Node
from flaot.mapping.attributes import attribute_of, input_slot, spellings


def violated(node: Node, predicate: Predicate) -> str | None:
    """The sentence that says how the node fails the predicate, or None."""
    if predicate.when is not None and failure(node, predicate.when) is not None:
        return None
    found = failure(node, predicate)
    return None if found is None else f"{found}{f': {predicate.reason}' if predicate.reason else ''}"


def failure(node: Node, condition: Condition) -> str | None:
    """How the node fails the condition, or None. An attribute or input its op does not know fails it, an optional input that is left out
    does not."""
    if condition.input is not None:
        return _input_failure(node, condition)
    assert condition.attribute is not None
    value = attribute_of(node, condition.attribute)
    if value is None:
        return f"it has no attribute {condition.attribute}"
    entries = tuple(value) if isinstance(value, tuple | list) else (value,)
    wrong = next(_wrong(condition, entries, lambda e: spellings(node, str(condition.attribute), e)), None)
    return None if wrong is None else f"{condition.attribute} is {_shown(value)}; {wrong}"


def _input_failure(node: Node, condition: Condition) -> str | None:
    assert condition.input is not None
    slot = input_slot(type(node.op), condition.input)
    if slot is None:
        return f"it has no input {condition.input}"
    value = node.inputs[slot] if slot < len(node.inputs) else None
    if value is None:
        return None
    if condition.constant is not None and value.is_constant != condition.constant:
        return f"input {condition.input} is {'' if value.is_constant else 'not '}constant; it must {'' if condition.constant else 'not '}be"
    wrong = next(_wrong(condition, value.type.shape, lambda e: iter((e,))), None)
    return None if wrong is None else f"input {condition.input} has shape {list(value.type.shape)}; {wrong}"


def _wrong(condition: Condition, entries: tuple[Any, ...], forms: Callable[[Any], Iterator[Any]]) -> Iterator[str]:
    if condition.at_least is not None and any(e < condition.at_least for e in entries):
        yield f"at least {condition.at_least:g} is needed"
    if condition.at_most is not None and any(e > condition.at_most for e in entries):
        yield f"at most {condition.at_most:g} is allowed"
    if condition.one_of is not None and any(not set(forms(e)) & set(condition.one_of) for e in entries):
        yield f"allowed are {', '.join(map(spelled, condition.one_of))}"
    if condition.multiple_of is not None and any(e % condition.multiple_of for e in entries):
        yield f"multiples of {condition.multiple_of} are allowed"
    if condition.max_product is not None:
        product = 1
        for e in entries:
            product *= e
        if product > condition.max_product:
            yield f"a product of at most {condition.max_product} is allowed"


def _shown(value: Any) -> str:
    return f"[{', '.join(map(spelled, value))}]" if isinstance(value, tuple | list) else spelled(value)


def spelled(value: Any) -> str:
    """A value as descriptors write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)

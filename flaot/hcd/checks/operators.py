"""Rules on operators, their conditions, fusions and conformance vectors."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from flaot.hcd.fields import INTEGERS
from flaot.hcd.operators import Condition, Operator, Predicate
from flaot.hcd.rules import Finding, active_units, repeated, rule, unknown
from flaot.hcd.schema import Schema
from flaot.hcd.text import nearest

Path = tuple[str | int, ...]


def _listed(hcd: Schema) -> Iterator[tuple[Path, Operator]]:
    for name, op in (hcd.operators or {}).items():
        yield ("operators", name), op


@rule
def operators_name_units_in_use(hcd: Schema) -> Iterator[Finding]:
    for path, op in _listed(hcd):
        yield from unknown((*path, "units"), op.units, list(active_units(hcd)), "compute unit in use")


@rule
def operators_use_dtypes_of_the_chip(hcd: Schema) -> Iterator[Finding]:
    dtypes = hcd.tensor.supported_dtypes if hcd.tensor else None
    for path, op in _listed(hcd):
        for i, combination in enumerate(op.dtypes or ()):
            for key in ("inputs", "outputs"):
                for k, dtype in enumerate(getattr(combination, key)):
                    if dtypes and dtype not in dtypes:
                        yield Finding(
                            (*path, "dtypes", i, key, k),
                            f"{dtype} is not among tensor.supported_dtypes ({', '.join(sorted(dtypes))})",
                            on_value=True,
                        )


@rule
def operators_use_layouts_of_their_units(hcd: Schema) -> Iterator[Finding]:
    for path, op in _listed(hcd):
        units = [u for n, u in active_units(hcd).items() if not op.units or n in op.units]
        offered = {x for u in units for x in u.supported_layouts or ()}
        for key in ("layouts_in", "layouts_out"):
            for k, layout in enumerate(getattr(op, key) or ()):
                if offered and layout not in offered:
                    yield Finding(
                        (*path, key, k),
                        f"{layout} is not among the layouts of its units ({', '.join(sorted(offered))})",
                        on_value=True,
                    )


@rule
def operator_ranks_fit_the_chip(hcd: Schema) -> Iterator[Finding]:
    limit = hcd.tensor.max_rank if hcd.tensor else None
    for path, op in _listed(hcd):
        if limit is not None and (op.max_rank or 0) > limit:
            yield Finding((*path, "max_rank"), f"{op.max_rank} exceeds tensor.max_rank ({limit})", on_value=True)
        if op.min_rank is not None and op.max_rank is not None and op.min_rank > op.max_rank:
            yield Finding((*path, "min_rank"), f"{op.min_rank} exceeds max_rank ({op.max_rank})", on_value=True)


@rule
def conditions_are_well_formed(hcd: Schema) -> Iterator[Finding]:
    fusions = enumerate(hcd.fusions or ())
    nodes = ((("fusions", i, "pattern", k), node.requires) for i, f in fusions for k, node in enumerate(f.pattern))
    owners: list[tuple[Path, tuple[Predicate, ...] | None]] = [*((p, op.requires) for p, op in _listed(hcd)), *nodes]
    for path, predicates in owners:
        for i, predicate in enumerate(predicates or ()):
            yield from _condition((*path, "requires", i), predicate)
            if predicate.when is not None:
                yield from _condition((*path, "requires", i, "when"), predicate.when)


def _condition(path: Path, c: Condition) -> Iterator[Finding]:
    if (c.attribute is None) == (c.input is None):
        yield Finding(path, "a condition is about either an 'attribute' or an 'input'")
    values = (c.at_least, c.at_most, c.one_of, c.multiple_of, c.max_product)
    if all(v is None for v in (*values, c.constant)):
        yield Finding(path, "a condition without anything to hold", "state at_least, at_most, one_of, multiple_of, max_product or constant")
    if c.constant is not None and c.input is None:
        yield Finding((*path, "constant"), "belongs to conditions on an input; attributes are always known")
    if c.at_least is not None and c.at_most is not None and c.at_least > c.at_most:
        yield Finding((*path, "at_least"), f"{c.at_least:g} exceeds at_most ({c.at_most:g}): no value is allowed", on_value=True)


@rule
def fusions_are_graphs_of_the_chips_operators(hcd: Schema) -> Iterator[Finding]:
    for i, name in repeated([f.name for f in hcd.fusions or ()]):
        yield Finding(("fusions", i, "name"), f"a second fusion named {name}", on_value=True)
    for i, fusion in enumerate(hcd.fusions or ()):
        ids = [n.id for n in fusion.pattern]
        for k, name in repeated(ids):
            yield Finding(("fusions", i, "pattern", k, "id"), f"a second node with the id {name}", on_value=True)
        for k, node in enumerate(fusion.pattern):
            for j, name in enumerate(node.inputs):
                if name in ids[k:]:
                    yield Finding(
                        ("fusions", i, "pattern", k, "inputs", j), f"{name} is no earlier node", "list nodes in order", on_value=True
                    )
        read = {name for node in fusion.pattern for name in node.inputs}
        for k, name in enumerate(ids[:-1]):
            if name not in read:
                yield Finding(("fusions", i, "pattern", k, "id"), f"nothing in the pattern reads {name}", on_value=True)
        yield from _listed_op(hcd, ("fusions", i, "result"), fusion.result)


def _listed_op(hcd: Schema, path: Path, name: str) -> Iterator[Finding]:
    supported = [n for n, op in (hcd.operators or {}).items() if op.supported is not False]
    if hcd.operators is not None and name not in supported:
        yield Finding(path, f"{name} is not among the chip's operators; {nearest(name, supported)}", on_value=True)


@rule
def vectors_are_whole(hcd: Schema) -> Iterator[Finding]:
    for i, vector in enumerate((hcd.conformance.vectors if hcd.conformance else None) or ()):
        path: Path = ("conformance", "vectors", i)
        yield from _listed_op(hcd, (*path, "op"), vector.op)
        for key in ("inputs", "outputs"):
            for k, array in enumerate(getattr(vector, key)):
                if len(array.values) != prod(array.shape):
                    yield Finding(
                        (*path, key, k, "values"), f"{len(array.values)} values for a shape of {prod(array.shape)} elements", on_value=True
                    )


@rule
def operators_sum_floats_in_floats(hcd: Schema) -> Iterator[Finding]:
    for path, op in _listed(hcd):
        if op.accumulator in INTEGERS:
            yield Finding((*path, "accumulator"), f"{op.accumulator} for sums of floating point", "state a float type", on_value=True)

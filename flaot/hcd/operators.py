"""Operators and fusions: what the chip runs, under which conditions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.fields import UNORDERED, Count, DTypeName, Layouts, Name, Names, Number, OpName, Scalars, Section, Text

Rank = Annotated[int, Field(ge=0, le=8)]
DTypeList = Annotated[tuple[DTypeName, ...], Field(min_length=1)]


class Condition(Section):
    """A condition on one attribute or input of an operator; a list-valued attribute meets it with every entry."""

    attribute: Name | None = Field(default=None, description="the attribute it is about")
    input: Name | None = Field(default=None, description="the input it is about")
    at_least: Number | None = Field(default=None, description="lowest value")
    at_most: Number | None = Field(default=None, description="highest value")
    one_of: Scalars | None = Field(default=None, description="the values allowed")
    multiple_of: Count | None = Field(default=None, description="the value is a multiple of this")
    max_product: Count | None = Field(default=None, description="highest product of the entries")
    constant: bool | None = Field(default=None, description="true: the input is known when compiling")


class Predicate(Condition):
    """A condition with the case it holds in, and its reason."""

    when: Condition | None = Field(default=None, description="the rest is required only where this holds")
    reason: Text | None = Field(default=None, description="why, as messages show it")


class Combination(Section):
    """Element types that go together."""

    inputs: DTypeList = Field(description="element types of the inputs in order; the last one holds for all further inputs")
    outputs: DTypeList = Field(description="element types of the outputs in order; the last one holds for all further outputs")


class Operator(Section):
    """One operator the chip runs."""

    supported: bool | None = Field(default=None, description="false takes out an operator that the base lists")
    units: Names | None = Field(default=None, description="compute units that run it; those whose kind fits when left out")
    dtypes: Annotated[tuple[Combination, ...], *UNORDERED] | None = Field(
        default=None, description="combinations of element types; those of the units when left out"
    )
    layouts_in: Layouts | None = Field(default=None, description="storage orders it reads")
    layouts_out: Layouts | None = Field(default=None, description="storage orders it writes")
    min_rank: Rank | None = Field(default=None, description="lowest number of dimensions")
    max_rank: Rank | None = Field(default=None, description="highest number of dimensions")
    in_place: bool | None = Field(default=None, description="the output may lie over the first input")
    accumulator: DTypeName | None = Field(
        default=None,
        description="element type sums are kept in; when left out the unit's for products, float32 for softmax, norms and reductions",
    )
    requires: Annotated[tuple[Predicate, ...], *UNORDERED] | None = Field(
        default=None, description="conditions on attributes and inputs, all of which hold"
    )
    precision: Text | None = Field(default=None, description="note on its accuracy")
    reason: Text | None = Field(default=None, description="why it is limited or missing, as messages show it")


class FusionNode(Section):
    """One operator of a pattern."""

    id: Name = Field(description="name of its result within the pattern")
    op: OpName = Field(description="the operator")
    inputs: Annotated[tuple[Name, ...], Field(min_length=1)] = Field(
        description="ids of earlier nodes, or new names for inputs from outside"
    )
    requires: Annotated[tuple[Predicate, ...], *UNORDERED] | None = Field(
        default=None, description="conditions on attributes and inputs, all of which hold"
    )


class Fusion(Section):
    """A small graph the chip runs as one step."""

    name: Name = Field(description="name of the fusion, as reports show it")
    level: Annotated[int, Field(ge=1, le=3)] = Field(description="fusion level from which it is used")
    pattern: Annotated[tuple[FusionNode, ...], Field(min_length=2, max_length=32)] = Field(
        description="operators in order; the last one gives the result"
    )
    result: OpName = Field(description="the operator it becomes")

"""Operators that move elements and compute nothing: results are exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe
from flaot.optest.recipes.shapes import shapes


def ints(*values: int) -> Tensor:
    """A constant list of sizes or positions."""
    return Tensor((len(values),), dtype="int64", values=values, constant=True)


@recipe("Transpose")
def transpose(op: str, limits: Limits) -> Iterator[Case]:
    """All axes reversed, pairs of them exchanged."""
    for s in shapes(op, limits, 2):
        if max(s.dims) > 1:
            yield Case(s.name, op, (Tensor(s.dims),), {"perm": list(reversed(range(len(s.dims))))}, layout=s.layout, slow=s.slow)
    yield Case("typical/heads", op, (Tensor((1, 6, 4, 8)),), {"perm": [0, 2, 1, 3]})
    yield Case("boundary/channels_last", op, (Tensor((2, 5, 3, 4)),), {"perm": [0, 2, 3, 1]})


@recipe("Concat")
def concat(op: str, limits: Limits) -> Iterator[Case]:
    """Along every axis, of parts that end between aligned addresses."""
    for s in shapes(op, limits):
        x = Tensor(s.dims)
        yield Case(s.name, op, (x, x), {"axis": len(s.dims) - 1}, layout=s.layout, slow=s.slow)
    for axis in range(min(4, limits.max_rank)):
        dims = (2, 3, 4, 5)[: min(4, limits.max_rank)]
        part = (*dims[:axis], dims[axis] + 1, *dims[axis + 1 :])
        yield Case(f"boundary/axis_{axis}", op, (Tensor(dims), Tensor(part)), {"axis": axis})
    yield Case("boundary/eight_parts", op, tuple(Tensor((3, i + 1)) for i in range(8)), {"axis": 1})


@recipe("Slice")
def cut(op: str, limits: Limits) -> Iterator[Case]:
    """From inside, with steps, and backwards."""
    def case(name: str, dims: tuple[int, ...], start: int, end: int, axis: int, step: int = 1, layout: str = "") -> Case:
        return Case(name, op, (Tensor(dims), ints(start), ints(end), ints(axis), ints(step)), layout=layout)

    yield case("typical/rows", (8, 12), 2, 6, 0)
    yield case("boundary/odd_sizes", (3, 5, 7), 1, 6, 2)
    yield case("boundary/stepped", (4, 11), 1, 10, 1, 3)
    yield case("boundary/backwards", (4, 9), 8, -100, 1, -2)
    yield case(f"boundary/rank_{limits.max_rank}", (2, 3, 2, 3, 2, 4, 2, 3)[: limits.max_rank], 1, 2, limits.max_rank - 1)
    for layout in limits.layouts:
        yield case(f"boundary/layout_{layout}", (2, 6, 3, 4), 1, 5, 1, layout=layout)


@recipe("Split")
def split(op: str, limits: Limits) -> Iterator[Case]:
    """Into equal and unequal parts."""
    yield Case("typical/halves", op, (Tensor((2, 8, 3)), ints(4, 4)), {"axis": 1}, outputs=2)
    yield Case("boundary/unequal", op, (Tensor((3, 10)), ints(1, 7, 2)), {"axis": 1}, outputs=3)
    yield Case("boundary/first_axis", op, (Tensor((5, 7)), ints(2, 3)), {"axis": 0}, outputs=2)
    for layout in limits.layouts:
        yield Case(f"boundary/layout_{layout}", op, (Tensor((2, 6, 3, 4)), ints(2, 4)), {"axis": 1}, outputs=2, layout=layout)


@recipe("Reshape")
def reshape(op: str, limits: Limits) -> Iterator[Case]:
    """To fewer and to more axes."""
    yield Case("typical/flatten", op, (Tensor((2, 3, 4)), ints(2, 12)))
    yield Case("boundary/to_one_axis", op, (Tensor((3, 5, 7)), ints(105)))
    rank = limits.max_rank
    sizes = (2, 3, 2, 3, 2, 3, 2, 3)[:rank]
    count = 1
    for s in sizes:
        count *= s
    yield Case(f"boundary/to_rank_{rank}", op, (Tensor((count,)), ints(*sizes)))
    for layout in limits.layouts:
        yield Case(f"boundary/layout_{layout}", op, (Tensor((2, 6, 3, 4)), ints(2, 72)), layout=layout)


@recipe("Flatten")
def flatten(op: str, limits: Limits) -> Iterator[Case]:
    """At the second axis and at the third."""
    yield Case("typical/image", op, (Tensor((2, 3, 4, 5)),), {"axis": 1})
    yield Case("boundary/third_axis", op, (Tensor((2, 3, 4, 5)),), {"axis": 2})
    for layout in limits.layouts:
        yield Case(f"boundary/layout_{layout}", op, (Tensor((2, 6, 3, 4)),), {"axis": 1}, layout=layout)


@recipe("Squeeze", "Unsqueeze")
def axes(op: str, limits: Limits) -> Iterator[Case]:
    """Axes of one element come and go."""
    yield Case("typical/axis", op, (Tensor((3, 1, 5) if op == "Squeeze" else (3, 5)), ints(1)))
    if limits.max_rank >= 4:
        yield Case("boundary/two_axes", op, (Tensor((2, 4, 1, 1) if op == "Squeeze" else (2, 4)), ints(2, 3)))


@recipe("Expand", "Tile")
def repeat(op: str, limits: Limits) -> Iterator[Case]:
    """Values repeated along axes."""
    tile = op == "Tile"
    yield Case("typical/rows", op, (Tensor((1, 5)), ints(*((4, 1) if tile else (4, 5)))))
    yield Case("boundary/inner_axis", op, (Tensor((3, 1, 2)), ints(*((1, 7, 1) if tile else (3, 7, 2)))))
    rank = limits.max_rank - tile  # reading a Tile takes an axis more
    dims = (1, *((3, 2) * rank)[: rank - 1])
    wanted, times = (2, *dims[1:]), (2, *(1,) * (rank - 1))
    yield Case(f"boundary/rank_{rank}", op, (Tensor(dims), ints(*(times if tile else wanted))))


@recipe("Pad")
def pad(op: str, limits: Limits) -> Iterator[Case]:
    """With constants, and with what is beside the edge."""
    def case(name: str, dims: tuple[int, ...], pads: tuple[int, ...], layout: str = "", **attributes: Any) -> Case:
        return Case(name, op, (Tensor(dims), ints(*pads), Tensor((), values=(0.5,), constant=True)), attributes, layout=layout)

    yield case("typical/image", (1, 3, 5, 6), (0, 0, 1, 1, 0, 0, 1, 1))
    yield case("boundary/odd_sizes", (3, 5), (2, 1, 0, 3))
    if not limits.requires:
        yield case("boundary/reflected", (3, 6), (0, 2, 0, 3), mode="reflect")
        yield case("boundary/edge", (3, 6), (1, 2, 0, 3), mode="edge")
    for layout in limits.layouts:
        yield case(f"boundary/layout_{layout}", (2, 5, 3, 4), (0, 0, 1, 0, 0, 0, 2, 1), layout)


@recipe("DepthToSpace", "SpaceToDepth")
def blocks(op: str, limits: Limits) -> Iterator[Case]:
    """Blocks of 2 x 2, which need rank 6 in between."""
    if limits.max_rank < 6:
        return
    dims = (1, 8, 3, 5) if op == "DepthToSpace" else (1, 2, 6, 10)
    case = Case("typical/two", op, (Tensor(dims),), {"blocksize": 2})
    yield case
    for layout in limits.layouts:
        yield replace(case, name=f"boundary/layout_{layout}", layout=layout)

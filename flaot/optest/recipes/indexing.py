"""Operators that pick elements by position, and those that go through a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe
from flaot.optest.recipes.movement import ints


def positions(*shape: int, below: int, constant: bool = False) -> Tensor:
    """int64 from 0 to ``below`` - 1."""
    return Tensor(shape, 0, below, "int64", constant=constant)


@recipe("Gather")
def gather(op: str, limits: Limits) -> Iterator[Case]:
    """Rows of a table, and positions along other axes."""
    yield Case("typical/embedding", op, (Tensor((32, 8), constant=True), positions(2, 5, below=32)), {"axis": 0})
    yield Case("boundary/inner_axis", op, (Tensor((3, 7, 5)), positions(4, below=7)), {"axis": 1})
    yield Case("boundary/constant_positions", op, (Tensor((6, 5)), positions(3, below=6, constant=True)), {"axis": 0})


@recipe("GatherElements")
def gather_elements(op: str, limits: Limits) -> Iterator[Case]:
    """Element by element."""
    yield Case("typical/rows", op, (Tensor((4, 6)), positions(3, 6, below=4)), {"axis": 0})


@recipe("GatherND")
def gather_nd(op: str, limits: Limits) -> Iterator[Case]:
    """Elements by coordinates."""
    yield Case("typical/pairs", op, (Tensor((4, 5)), positions(6, 2, below=4)))


@recipe("ScatterElements", "Scatter")
def scatter_elements(op: str, limits: Limits) -> Iterator[Case]:
    """Each position once."""
    order = Tensor((4, 3), dtype="int64", values=(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3), constant=True)
    rows = Tensor((2, 3), dtype="int64", values=(0, 1, 2, 3, 2, 1), constant=True)
    opset = 10 if op == "Scatter" else 18
    yield Case("typical/rows", op, (Tensor((4, 3)), rows, Tensor((2, 3))), {"axis": 0}, opset=opset)
    yield Case("boundary/columns", op, (Tensor((4, 4)), order, Tensor((4, 3))), {"axis": 1}, opset=opset)


@recipe("ScatterND")
def scatter_nd(op: str, limits: Limits) -> Iterator[Case]:
    """Rows by coordinate."""
    yield Case("typical/rows", op, (Tensor((5, 3)), Tensor((2, 1), dtype="int64", values=(3, 1), constant=True), Tensor((2, 3))))


@recipe("ArgMax", "ArgMin")
def arg(op: str, limits: Limits) -> Iterator[Case]:
    """Positions of distinct values."""
    yield Case("typical/last_axis", op, (Tensor((3, 16), step=0.03125),), {"axis": 1, "keepdims": 0})
    yield Case("boundary/first_axis", op, (Tensor((7, 5), step=0.03125),), {"axis": 0})


@recipe("TopK")
def top_k(op: str, limits: Limits) -> Iterator[Case]:
    """The largest of distinct values."""
    values = tuple(((7 * k) % 32) / 8 for k in range(32))
    yield Case("typical/five", op, (Tensor((2, 32), values=values), ints(5)), {"axis": 1}, outputs=2)


@recipe("CumSum")
def cumulative(op: str, limits: Limits) -> Iterator[Case]:
    """Forwards and backwards."""
    axis = Tensor((), dtype="int64", values=(1,), constant=True)
    yield Case("typical/rows", op, (Tensor((3, 9)), axis))
    yield Case("boundary/backwards", op, (Tensor((3, 9)), axis), {"reverse": 1, "exclusive": 1})


@recipe("Einsum")
def einsum(op: str, limits: Limits) -> Iterator[Case]:
    """Products over named axes."""
    yield Case("typical/product", op, (Tensor((4, 6)), Tensor((6, 5))), {"equation": "ij,jk->ik"})
    yield Case("boundary/stack", op, (Tensor((2, 3, 4)), Tensor((2, 5, 4))), {"equation": "bij,bkj->bik"})


@recipe("GridSample")
def grid_sample(op: str, limits: Limits) -> Iterator[Case]:
    """Points inside the image."""
    yield Case("typical/linear", op, (Tensor((1, 3, 5, 6)), Tensor((1, 4, 4, 2), -0.9, 0.9)), {"mode": "linear"}, opset=20)


@recipe("RoiAlign")
def roi_align(op: str, limits: Limits) -> Iterator[Case]:
    """Two regions of one image."""
    rois = Tensor((2, 4), values=(0.0, 0.0, 4.0, 4.0, 1.0, 1.0, 5.0, 6.0), constant=True)
    batch = Tensor((2,), dtype="int64", values=(0, 0), constant=True)
    yield Case("typical/two", op, (Tensor((1, 3, 8, 8)), rois, batch), {"output_height": 2, "output_width": 2, "sampling_ratio": 2})


@recipe("AffineGrid")
def affine_grid(op: str, limits: Limits) -> Iterator[Case]:
    """A turned grid."""
    yield Case("typical/grid", op, (Tensor((1, 2, 3)), ints(1, 1, 4, 5)), opset=20)


@recipe("OneHot")
def one_hot(op: str, limits: Limits) -> Iterator[Case]:
    """Positions as rows."""
    depth = Tensor((), dtype="int64", values=(6,), constant=True)
    yield Case("typical/rows", op, (positions(2, 3, below=6), depth, Tensor((2,), values=(0.0, 1.0), constant=True)))


@recipe("Trilu")
def triangle(op: str, limits: Limits) -> Iterator[Case]:
    """Both halves."""
    yield Case("typical/upper", op, (Tensor((2, 5, 5)),))
    yield Case("boundary/lower", op, (Tensor((4, 6)),), {"upper": 0})


@recipe("ReverseSequence")
def reverse_sequence(op: str, limits: Limits) -> Iterator[Case]:
    """Sequences of different lengths."""
    yield Case("typical/batch", op, (Tensor((5, 3, 2)), ints(3, 5, 2)), {"batch_axis": 1, "time_axis": 0})


@recipe("LSTM", "GRU", "RNN")
def recurrent(op: str, limits: Limits) -> Iterator[Case]:
    """One direction and both, at the longest sequence and the largest batch."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]

    def case(name: str, length: int, batch: int, features: int = 6, hidden: int = 5, both: bool = False) -> Case:
        d = 2 if both else 1
        w = Tensor((d, gates * hidden, features), -0.4, 0.4, constant=True)
        r = Tensor((d, gates * hidden, hidden), -0.4, 0.4, constant=True)
        attributes: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if both else "forward"}
        return Case(name, op, (Tensor((length, batch, features)), w, r), attributes)

    yield case("typical/forward", 6, 2)
    yield case("typical/both_ways", 5, 1, both=True)
    yield case("boundary/one_step", 1, 1)
    yield case(f"boundary/batch_{limits.max_batch}", 2, limits.max_batch, 3, 3)
    yield case(f"boundary/sequence_{limits.max_sequence}", limits.max_sequence, 1, 2, 2)

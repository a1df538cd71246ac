"""Small hand-made programs, and plans of them."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from flaot.ir.types import DType, Frozen, TensorType
from flaot.plan.fields import HEADER
from flaot.plan.program import Buffer, DeviceRecord, Named, Port, Program, Space, Step, View
from flaot.plan.write import write_plan

CPU = DeviceRecord("test_cpu", "cpu", 0, 64)


def port(space: Space, index: int, name: str, type: TensorType) -> Port:
    return Port(name, View.dense(Buffer(space, type.nbytes, name, index=index, offset=0), type))


def arena(offset: int, type: TensorType) -> View:
    return View.dense(Buffer(Space.arena, type.nbytes, offset=offset), type)


def softmax_step(x: View, y: View, axis: int = 1, **more: object) -> Step:
    params = np.array([axis, 0], "<i4").tobytes()
    return Step("softmax_f32", "generic", (x,), (y,), params, op="Softmax", **more)  # type: ignore[arg-type]


def two_softmaxes(rows: int = 2, columns: int = 8) -> Program:
    """y = softmax(softmax(x)), the intermediate named 'mid', both steps with scratch nobody uses."""
    type = TensorType(DType.float32, (rows, columns))
    x, y, mid = port(Space.input, 0, "x", type), port(Space.output, 0, "y", type), arena(64, type)
    end = 64 + -(-type.nbytes // 64) * 64
    steps = [
        softmax_step(x.view, mid, parallel=True, scratch=32, origin=("first",)),
        softmax_step(mid, y.view, parallel=True, scratch=40, scratch_offset=end, origin=("second", "third")),
    ]
    return Program([x], [y], steps, [Named("mid", mid, 0)], arena=end, lower_bound=64)


def softmax_of_constant() -> Program:
    """y = softmax(c) and z = softmax(x), with a constant, a strided view and a second port."""
    type, wide = TensorType(DType.float32, (4, 3)), TensorType(DType.float32, (3, 4))
    constant = Buffer(Space.constant, 48, "c", np.arange(12, dtype=np.float32))
    x = port(Space.input, 0, "x", wide)
    y, z = port(Space.output, 0, "y", type), port(Space.output, 1, "z", type)
    steps = [softmax_step(View.dense(constant, type), y.view), softmax_step(x.view.permute((1, 0)), z.view, axis=0)]
    return Program([x], [y, z], steps)


K = np.arange(6, dtype="<f4").reshape(2, 3)


def with_frozen() -> Program:
    """Two softmaxes of a model that lists its initializers k (:data:`K`) and flag (of an unknown value) as inputs."""
    program = two_softmaxes()
    program.frozen = [
        Frozen("k", TensorType(DType.float32, (2, 3)), sha256(K.tobytes()).digest()), Frozen("flag", TensorType(DType.bool, ()), bytes(32)),
    ]
    return program


def plan_of(program: Program) -> bytes:
    return write_plan(program, device=CPU, model_digest=bytes(range(32)), hcd_digest=bytes(32))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def seal(plan: bytes) -> bytes:
    """The plan with its digest recomputed."""
    start = HEADER.offset("digest")
    return plan[:start] + sha256(memoryview(plan)[start + 32 :]).digest() + plan[start + 32 :]

"""Seeded random models over the ops whose memory the scheduler shares: views, concatenations, in-place chains, layout changes."""

from __future__ import annotations

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class RandomModel:
    """Grows a graph of live float32 tensors by applying random ops to random ones."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.data = np.random.RandomState(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.live: list[tuple[str, tuple[int, ...]]] = []
        self.inputs: list[tuple[str, tuple[int, ...]]] = []
        for _ in range(self.rng.randint(1, 2)):
            shape = (1, self.rng.choice([3, 4, 8, 16, 17]), self.rng.randint(4, 9), self.rng.randint(4, 9))
            self.inputs.append((f"x{len(self.inputs)}", shape))
        self.live += self.inputs

    def build(self, size: int) -> onnx.ModelProto:
        makers = 2 * [self.conv, self.unary, self.binary, self.concat] + [self.depthwise, self.pool]
        makers += [self.slice, self.split, self.transpose, self.reshape, self.pad, self.softmax, self.reduce, self.batch_norm, self.gather]
        while len(self.nodes) < size:
            self.rng.choice(makers)()
        read = {i for n in self.nodes for i in n.input}
        ends = [(n, s) for n, s in self.live if n not in read and (n, s) not in self.inputs]
        ends += self.rng.sample(self.live, min(2, len(self.live)))
        ends = list(dict.fromkeys(e for e in ends if e not in self.inputs))
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.inputs],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ends],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def emit(self, op: str, inputs: list[str], shapes: list[tuple[int, ...]], **attributes: object) -> list[str]:
        names = [f"v{len(self.live) + i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op.lower()}_{len(self.nodes)}", **attributes))
        self.live += list(zip(names, shapes, strict=True))
        return names

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant((self.data.randn(*shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def pick(self, rank: int | None = None) -> tuple[str, tuple[int, ...]] | None:
        fitting = [v for v in self.live if (rank is None or len(v[1]) == rank) and np.prod(v[1]) < 20_000]
        return self.rng.choice(fitting) if fitting else None

    def image(self) -> tuple[str, tuple[int, ...]] | None:
        fitting = [v for v in self.live if len(v[1]) == 4 and min(v[1][2:]) >= 3 and v[1][0] == 1 and v[1][1] <= 64]
        return self.rng.choice(fitting) if fitting else None

    # -- ops -----------------------------------------------------------------------------------------------------------

    def conv(self) -> None:
        picked = self.image()
        if picked is None:
            return
        x, (n, c, h, w) = picked
        m, k = self.rng.choice([1, 4, 8, 16, 17, 24]), self.rng.choice([1, 1, 3])
        stride = self.rng.choice([1, 1, 2])
        size = [(d + 2 * (k // 2) - k) // stride + 1 for d in (h, w)]
        inputs = [x, self.weights(m, c, k, k)] + ([self.weights(m)] if self.rng.random() < 0.5 else [])
        self.emit("Conv", inputs, [(n, m, *size)], pads=[k // 2] * 4, strides=[stride] * 2)

    def depthwise(self) -> None:
        picked = self.image()
        if picked is None:
            return
        x, (n, c, h, w) = picked
        self.emit("Conv", [x, self.weights(c, 1, 3, 3)], [(n, c, h, w)], pads=[1] * 4, group=c)

    def unary(self) -> None:
        picked = self.pick()
        if picked is not None:
            self.emit(self.rng.choice(["Relu", "Sigmoid", "Tanh", "Neg", "HardSwish", "Abs"]), [picked[0]], [picked[1]])

    def binary(self) -> None:
        picked = self.pick()
        if picked is None:
            return
        a, shape = picked
        same = [n for n, s in self.live if s == shape]
        partial = [d if self.rng.random() < 0.6 else 1 for d in shape]
        b = self.rng.choice(same) if self.rng.random() < 0.6 else self.weights(*partial) if partial else self.rng.choice(same)
        pair = [a, b] if self.rng.random() < 0.5 else [b, a]
        self.emit(self.rng.choice(["Add", "Mul", "Sub", "Max"]), pair, [shape])

    def pool(self) -> None:
        picked = self.image()
        if picked is None:
            return
        x, (n, c, h, w) = picked
        if self.rng.random() < 0.3:
            self.emit("GlobalAveragePool", [x], [(n, c, 1, 1)])
        else:
            stride = self.rng.choice([1, 2])
            to = (n, c, *((d - 1) // stride + 1 for d in (h, w)))
            window = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [stride] * 2}
            self.emit(self.rng.choice(["MaxPool", "AveragePool"]), [x], [to], **window)

    def concat(self) -> None:
        picked = self.pick()
        if picked is None or not picked[1]:
            return
        a, shape = picked
        axis = self.rng.randrange(len(shape))
        rest = (*shape[:axis], *shape[axis + 1 :])
        fitting = [(n, s) for n, s in self.live if len(s) == len(shape) and (*s[:axis], *s[axis + 1 :]) == rest]
        parts = [picked] + [self.rng.choice(fitting) for _ in range(self.rng.randint(1, 2))]
        total = sum(s[axis] for _, s in parts)
        self.emit("Concat", [n for n, _ in parts], [(*shape[:axis], total, *shape[axis + 1 :])], axis=axis)

    def slice(self) -> None:
        picked = self.pick()
        if picked is None or not picked[1]:
            return
        x, shape = picked
        axis = self.rng.randrange(len(shape))
        start, step = self.rng.randrange(shape[axis]), self.rng.choice([1, 1, 2])
        size = len(range(start, shape[axis], step))
        inputs = [x, self.integers(start), self.integers(shape[axis]), self.integers(axis), self.integers(step)]
        self.emit("Slice", inputs, [(*shape[:axis], size, *shape[axis + 1 :])])

    def split(self) -> None:
        picked = self.pick()
        if picked is None or not any(d >= 2 for d in picked[1]):
            return
        x, shape = picked
        axis = self.rng.choice([i for i, d in enumerate(shape) if d >= 2])
        first = self.rng.randint(1, shape[axis] - 1)
        shapes = [(*shape[:axis], d, *shape[axis + 1 :]) for d in (first, shape[axis] - first)]
        self.emit("Split", [x, self.integers(first, shape[axis] - first)], shapes, axis=axis)

    def transpose(self) -> None:
        picked = self.pick()
        if picked is None:
            return
        x, shape = picked
        perm = tuple(self.rng.sample(range(len(shape)), len(shape)))
        if len(shape) == 4 and self.rng.random() < 0.6:
            perm = self.rng.choice([(0, 2, 3, 1), (0, 3, 1, 2)])
        self.emit("Transpose", [x], [tuple(shape[p] for p in perm)], perm=list(perm))

    def reshape(self) -> None:
        picked = self.pick()
        if picked is None or not picked[1]:
            return
        x, shape = picked
        choices = [(1, *shape), tuple(d for d in shape if d != 1) or (1,), (shape[0], int(np.prod(shape[1:])))]
        if len(shape) == 4 and shape[0] == 1 and shape[1] % 2 == 0:
            choices += [(2, shape[1] // 2, *shape[2:]), (shape[1] // 2, 2, shape[2] * shape[3])]
        to = self.rng.choice([c for c in choices if len(c) <= 5] or [shape])
        self.emit("Reshape", [x, self.integers(*to)], [to])

    def pad(self) -> None:
        picked = self.pick(4)
        if picked is not None:
            x, (n, c, h, w) = picked
            self.emit("Pad", [x, self.integers(0, 0, 1, 0, 0, 0, 0, 1)], [(n, c, h + 1, w + 1)])

    def softmax(self) -> None:
        picked = self.pick()
        if picked is not None and picked[1]:
            self.emit("Softmax", [picked[0]], [picked[1]], axis=self.rng.randrange(len(picked[1])))

    def reduce(self) -> None:
        picked = self.pick()
        if picked is None or not picked[1]:
            return
        x, shape = picked
        axis, keep = self.rng.randrange(len(shape)), self.rng.randint(0, 1)
        to = (*shape[:axis], *([1] if keep else []), *shape[axis + 1 :])
        self.emit(self.rng.choice(["ReduceMean", "ReduceMax"]), [x], [to], axes=[axis], keepdims=keep)

    def batch_norm(self) -> None:
        picked = self.image()
        if picked is None:
            return
        x, shape = picked
        variance = self.constant((self.data.rand(shape[1]) + 0.5).astype(np.float32))
        self.emit("BatchNormalization", [x, *(self.weights(shape[1]) for _ in range(3)), variance], [shape])

    def gather(self) -> None:
        picked = self.pick()
        if picked is None or not picked[1]:
            return
        x, shape = picked
        axis = self.rng.randrange(len(shape))
        index = [self.rng.randrange(-shape[axis], shape[axis]) for _ in range(3)]
        self.emit("Gather", [x, self.integers(*index)], [(*shape[:axis], 3, *shape[axis + 1 :])], axis=axis)

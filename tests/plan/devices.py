"""Small hand-made programs for a host with a chip beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flaot.ir.types import DType, TensorType
from flaot.kernels.base import KERNELS, load_all
from flaot.plan.program import Buffer, Chip, Command, Launch, Machine, Named, Opcode, Program, Space, Step, Unit, View
from tests.plan.programs import port

F16 = DType.float16
NCHW, NHWC, NHCW = (0, 1, 2, 3), (0, 2, 3, 1), (0, 2, 1, 3)

NPU = Chip(
    "NPU-V3", "npu_v3", alignment=256, max_rank=4, max_batch=4, max_sequence=16, max_attention=8, heads=(1, 2, 4),
    dtypes=(DType.int8, F16, DType.bfloat16), layouts=(NCHW, NHWC), arena=4096,
    machine=Machine(1_000_000, (Unit("fp16"), Unit("vector")), 4096, 1000, 1000),
)


def on_chip(offset: int, type: TensorType, layout: tuple[int, ...] | None = None) -> View:
    return View.dense(Buffer(Space.device, type.nbytes, index=1, offset=offset), type, layout)


def scratchpad(offset: int, type: TensorType) -> View:
    """A tensor in the memory on the chip."""
    return View.dense(Buffer(Space.on_chip, type.nbytes, index=1, offset=offset), type)


def dma(source: View, target: View, queue: int, waits: tuple[int, ...] = ()) -> Step:
    return Step("", "", (source,), (target,), op="Load", device=1, opcode=Opcode.dma, command=Command(queue, waits))


def weights(array: np.ndarray, dtype: DType = F16) -> View:
    data = np.ascontiguousarray(array)
    return View.dense(Buffer(Space.constant, data.nbytes, data=data, index=1), TensorType(dtype, data.shape))


def transfer(source: View, target: View) -> Step:
    return Step("", "", (source,), (target,), op="Transfer", device=1, opcode=Opcode.transfer)


def conv(inputs: tuple[View, ...], output: View, launch: Launch, stride: int = 1) -> Step:
    """A convolution without pads; a third input is the bias."""
    load_all()
    kernel, taps = KERNELS["conv_f32"], int(np.prod(inputs[1].dims[2:]))
    spatial = dict(strides=[1, stride, stride], pads=[0, 0, 0], dilations=[1, 1, 1])
    plain = {p.name: 0 for p in kernel.params if p.name not in spatial} | {"group": 1, "bias": int(len(inputs) > 2)}
    blob = kernel.pack(**spatial, **plain)
    return Step("conv_f32", "generic", inputs, (output,), blob, 136 * taps, origin=("layer1/conv",), op="Conv", device=1, launch=launch)


IMAGE = TensorType(F16, (1, 1, 3, 3))
ONES = np.ones((1, 1, 2, 2), np.float16)
ALONE = Launch("fp16", batch=1)


def conv_on_chip(
    chip: Chip = NPU, x_type: TensorType = IMAGE, w: np.ndarray = ONES, bias: np.ndarray | None = None, launch: Launch = ALONE,
    layout: tuple[int, ...] = NCHW,
) -> Program:
    """y = conv(x, w) + bias in the chip's memory, with x brought in and y brought out; y is named 'sum' while it lies there."""
    n, _, *size = x_type.shape
    stored = x_type.dtype
    y_type = TensorType(stored, (n, w.shape[0], *(s - k + 1 for s, k in zip(size, w.shape[2:], strict=True))))
    x, y = port(Space.input, 0, "x", x_type), port(Space.output, 0, "y", y_type)
    chip_x, chip_y = on_chip(0, x_type), on_chip(1024, y_type, layout)
    out = View.dense(Buffer(Space.arena, y_type.nbytes, offset=0), y_type, layout)
    inputs = (chip_x, weights(w, stored), *([weights(bias, stored)] if bias is not None else []))
    steps = [transfer(x.view, chip_x), conv(inputs, chip_y, launch)]
    if layout == NCHW:
        steps.append(transfer(chip_y, y.view))
    else:
        steps += [transfer(chip_y, out), copy(out, y.view)]
    return Program([x], [y], steps, [Named("sum", chip_y, 1)], arena=4096, alignment=64, chips=[replace(chip)])


DMA, CHIP_LINK, FP16 = (0, 1), 4, 2
"""Queues of the chip below: two DMA channels, the unit of convolutions, transfers."""
TWO_CHANNELS = replace(NPU, machine=replace(NPU.machine, channels=2, on_chip_peak=1024))


def conv_through_scratchpad(waits: dict[int, tuple[int, ...]] | None = None, chip: Chip = TWO_CHANNELS) -> Program:
    """y = conv(x, w): a transfer (step 0), x and w loaded over two channels (1, 2), the convolution (3), y stored (4) and transferred (5).
    ``waits`` replaces what single steps wait for."""
    y_type = TensorType(F16, (1, 1, 2, 2))
    x, y = port(Space.input, 0, "x", IMAGE), port(Space.output, 0, "y", y_type)
    x_far, y_far, x_near, w_near, y_near = on_chip(0, IMAGE), on_chip(1024, y_type), *(
        scratchpad(at, type) for at, type in ((0, IMAGE), (256, TensorType(F16, ONES.shape)), (512, y_type))
    )
    steps = [
        transfer(x.view, x_far), dma(x_far, x_near, DMA[0]), dma(weights(ONES), w_near, DMA[1]), conv((x_near, w_near), y_near, ALONE),
        dma(y_near, y_far, DMA[0]), transfer(y_far, y.view),
    ]
    queues = (CHIP_LINK, DMA[0], DMA[1], FP16, DMA[0], CHIP_LINK)
    order = {0: (), 1: (0,), 2: (), 3: (1, 2), 4: (3,), 5: (4,)} | (waits or {})
    steps = [replace(s, command=Command(q, order[i])) for i, (s, q) in enumerate(zip(steps, queues, strict=True))]
    return Program([x], [y], steps, arena=4096, alignment=64, chips=[replace(chip)])


def copy(source: View, target: View) -> Step:
    """A copy on the host."""
    load_all()
    return Step("copy", "generic", (source,), (target,), op="Copy", scratch=0)

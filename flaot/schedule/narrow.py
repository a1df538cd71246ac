"""Constants of a chip in the element type it stores, by the kernel that narrows values on their way there."""

from __future__ import annotations

import numpy as np

from flaot.errors import InternalError
from flaot.ir.types import DType, Rounding, TensorType
from flaot.kernels.recast import RECAST
from flaot.plan.fields import kernel_id
from flaot.plan.program import Buffer, Space, View
from flaot.runtime import native


def narrow(array: np.ndarray, dtype: DType, rounding: Rounding = Rounding.half_to_even) -> np.ndarray:
    """A float32 array as float16, or as the bits of bfloat16 (uint16). Finite numbers stay finite: such constants (-1e9 in a mask) mean
    "very large", and an infinity in their place would make products NaN."""
    source = np.ascontiguousarray(array, np.float32)
    target = np.empty(source.shape, dtype.numpy)
    if source.size == 0:
        return target
    shape = (source.size,)
    x, y = (View.dense(Buffer(Space.arena, a.nbytes), TensorType(t, shape)) for a, t in ((source, DType.float32), (target, dtype)))
    memory = {id(x.buffer): source.reshape(-1).view(np.uint8), id(y.buffer): target.reshape(-1).view(np.uint8)}
    status = native.call_kernel(kernel_id(RECAST.name, "generic"), [x], [y], memory, RECAST.pack(rounding=int(rounding), flush=0), 0)
    if status:
        raise InternalError(f"recast: {native.status_text(status)}", where="schedule")
    return target

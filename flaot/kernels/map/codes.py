"""Instructions of the map kernel. Numbers are stored in plans: they may be added, never changed.

The high byte is the form: which element types the sources and the result have. T is the instruction's type, R its result type.
"""

from __future__ import annotations

import enum


class Form(enum.IntEnum):
    """How many sources an instruction has and what types they and the result are of."""

    unary = 0  # T -> T
    binary = 1  # T, T -> T
    compare = 2  # T, T -> bool
    test = 3  # T -> bool
    where = 4  # bool, T, T -> T
    cast = 5  # T -> R
    quantize = 6  # float32, float32, R -> R
    dequantize = 7  # T, float32, T -> float32


class Code(enum.IntEnum):
    """One elementwise operation each."""

    relu = 0x001
    sigmoid = 0x002
    tanh = 0x003
    erf = 0x004
    silu = 0x005
    gelu = 0x006
    gelu_tanh = 0x007
    leaky_relu = 0x008
    thresholded_relu = 0x009
    elu = 0x00A
    celu = 0x00B
    selu = 0x00C
    hard_sigmoid = 0x00D
    hard_swish = 0x00E
    softplus = 0x00F
    softsign = 0x010
    mish = 0x011
    shrink = 0x012
    clip = 0x013
    neg = 0x020
    abs = 0x021
    sign = 0x022
    floor = 0x023
    ceil = 0x024
    round = 0x025
    sqrt = 0x026
    reciprocal = 0x027
    bit_not = 0x028
    exp = 0x030
    log = 0x031
    sin = 0x032
    cos = 0x033
    tan = 0x034
    asin = 0x035
    acos = 0x036
    atan = 0x037
    sinh = 0x038
    cosh = 0x039
    asinh = 0x03A
    acosh = 0x03B
    atanh = 0x03C

    add = 0x101
    sub = 0x102
    mul = 0x103
    div = 0x104
    max = 0x105
    min = 0x106
    mod = 0x107
    fmod = 0x108
    pow = 0x109
    prelu = 0x10A
    bit_and = 0x110
    bit_or = 0x111
    bit_xor = 0x112
    shift_left = 0x113
    shift_right = 0x114

    equal = 0x201
    less = 0x202
    less_equal = 0x203
    and_ = 0x204
    or_ = 0x205
    xor = 0x206

    is_nan = 0x301
    is_inf = 0x302
    not_ = 0x303

    where = 0x401
    cast = 0x501
    quantize = 0x601
    dequantize = 0x701

    @property
    def form(self) -> Form:
        return Form(self >> 8)

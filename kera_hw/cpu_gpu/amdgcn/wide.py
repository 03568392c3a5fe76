"""Integers of 64 bits, which are two words: products, quotients, conversions."""
from __future__ import annotations

from kera_hw.cpu_gpu.amdgcn.code import MOVE, VCC, Code, high, low
from kera_hw.cpu_gpu.amdgcn.quotients import choose, reciprocal
from kera_hw.cpu_gpu.machine.code import VReg

_SIGN = 0x8000_0000
_TO_WORD, _FROM_WORD = 0xC1F0_0000, -32 & 0xFFFF_FFFF
"""The upper word of -2^32 as an f64; the exponent that takes an upper word down."""
_A_LITTLE = 0xBD70_0000
"""The upper word of -2^-40: a reciprocal that much smaller gives no quotient that is too large, and none that
is too small by more than 1 where it has fewer than 40 digits."""


def add(code: Code, a: VReg, b: VReg) -> VReg:
    return _carried(code, "v_add_co_u32", "v_addc_co_u32", a, b)


def subtract(code: Code, a: VReg, b: VReg) -> VReg:
    return _carried(code, "v_sub_co_u32", "v_subb_co_u32", a, b)


def _carried(code: Code, first: str, second: str, a: VReg, b: VReg) -> VReg:
    result = code.pair()
    code.op(first, low(result), VCC, low(a), low(b))
    code.op(second, high(result), VCC, high(a), high(b), VCC)
    return result


def multiply(code: Code, a: VReg, b: VReg) -> VReg:
    """Modulo 2^64."""
    found = code.give("v_mad_u64_u32", low(a), low(b), 0)
    upper = high(found)
    for one, other in ((a, b), (b, a)):
        if one not in code.small:
            upper = code.give("v_add_u32", upper, code.give("v_mul_lo_u32", high(one), low(other)))
    return code.both(low(found), upper) if upper != high(found) else found


def negate(code: Code, a: VReg) -> VReg:
    return subtract(code, code.both(0, 0), a)


def signs(code: Code, upper: VReg) -> VReg:
    """A word of nothing but a word's sign."""
    return code.give("v_ashrrev_i32", 31, upper)


def turned(code: Code, a: VReg, sign: VReg) -> VReg:
    """The same, or negative where a word of signs is set."""
    flipped = code.pair()
    for part in (low, high):
        code.op("v_xor_b32", part(flipped), part(a), sign)
    return subtract(code, flipped, code.both(sign, sign))


def sign_of(code: Code, a: VReg) -> VReg:
    result = code.word()
    code.op("v_ashrrev_i32", result, 31, high(a))
    return result


# Quotients


def divide_u32(code: Code, a: VReg, b: VReg) -> tuple[VReg, VReg]:
    """The quotient and the remainder, by a reciprocal that is a little too small."""
    wide_a, wide_b = (code.give("v_cvt_f64_u32", one) for one in (a, b))
    inverse = _shrunk(code, reciprocal(code, wide_b, code.give("v_rcp_f64", wide_b), 1))
    quotient = code.give("v_cvt_u32_f64", code.give("v_mul_f64", wide_a, inverse))
    rest = code.give("v_sub_u32", a, code.give("v_mul_lo_u32", quotient, b))
    less = code.give("v_sub_u32", rest, b)
    more = code.give("v_add_u32", 1, quotient)
    code.op("v_cmp_ge_u32", VCC, rest, b)
    return code.give("v_cndmask_b32", quotient, more, VCC), code.give("v_cndmask_b32", rest, less, VCC)


def divide_u64(code: Code, a: VReg, b: VReg) -> tuple[VReg, VReg]:
    """The same in two steps, since a quotient has up to 64 digits and each step finds 39."""
    divisor = float_u64(code, b)
    inverse = _shrunk(code, reciprocal(code, divisor, code.give("v_rcp_f64", divisor), 2))
    first = _whole(code, code.give("v_mul_f64", float_u64(code, a), inverse))
    rest = subtract(code, a, multiply(code, first, b))
    step = code.give("v_cvt_u32_f64", code.give("v_mul_f64", float_u64(code, rest), inverse))
    second = code.both(step, 0)
    quotient = add(code, first, second)
    rest = subtract(code, rest, multiply(code, second, b))
    less, more = subtract(code, rest, b), add(code, quotient, code.both(1, 0))
    code.op("v_cmp_ge_u64", VCC, rest, b)
    return choose(code, more, quotient), choose(code, less, rest)


def _shrunk(code: Code, inverse: VReg) -> VReg:
    return code.give("v_fma_f64", inverse, code.both(0, _A_LITTLE), inverse)


# Conversions


def float_u64(code: Code, a: VReg) -> VReg:
    """As an f64, rounded once: the upper word's number is exact."""
    return _float(code, a, "v_cvt_f64_u32")


def float_i64(code: Code, a: VReg) -> VReg:
    return _float(code, a, "v_cvt_f64_i32")


def _float(code: Code, a: VReg, upper: str) -> VReg:
    top = code.give("v_ldexp_f64", code.give(upper, high(a)), 32)
    return code.give("v_add_f64", top, code.give("v_cvt_f64_u32", low(a)))


def float32_u64(code: Code, a: VReg) -> VReg:
    """As an f32, rounded once: the 32 digits from the first on, the last of them set if any more are."""
    zeros = code.give("v_min_u32", 32, code.give("v_ffbh_u32", high(a)))
    digits = code.give("v_lshlrev_b64", zeros, a)
    code.op("v_cmp_ne_u32", VCC, 0, low(digits))
    sticky = code.give("v_cndmask_b32", 0, 1, VCC)
    number = code.give("v_cvt_f32_u32", code.give("v_or_b32", high(digits), sticky))
    return code.give("v_ldexp_f32", number, code.give("v_sub_u32", 32, zeros))


def float32_i64(code: Code, a: VReg) -> VReg:
    sign = sign_of(code, a)
    number = float32_u64(code, turned(code, a, sign))
    return code.give("v_or_b32", number, code.give("v_and_b32", _SIGN, sign))


def _whole(code: Code, value: VReg) -> VReg:
    """What an f64 below 2^64 and not negative is, without its fraction."""
    return _words(code, value, "v_cvt_u32_f64")


def whole_i64(code: Code, value: VReg) -> VReg:
    """The same of any f64 that an i64 holds."""
    return _words(code, value, "v_cvt_i32_f64")


def _words(code: Code, value: VReg, upper: str) -> VReg:
    whole = code.give("v_trunc_f64", value)
    down = code.give(MOVE, _FROM_WORD)
    top = code.give("v_floor_f64", code.give("v_ldexp_f64", whole, down))
    rest = code.give("v_fma_f64", top, code.both(0, _TO_WORD), whole)
    return code.both(code.give("v_cvt_u32_f64", rest), code.give(upper, top))

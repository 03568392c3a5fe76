"""Quotients and square roots, which these GPUs have no instruction for, correctly rounded.

The machine gives reciprocals of an error that the manual only bounds (2^-24 of an f64, relatively), so that
nothing here depends on which value it is: Newton's steps bring it near the result, and the remainder, which
`fma` gives exactly, says which neighbour is nearest. Markstein, "Computation of elementary functions on the
IBM RISC System/6000 processor", 1990.
"""
from __future__ import annotations

from kera_hw.cpu_gpu.amdgcn.code import MOVE, VCC, Code, high, low
from kera_hw.cpu_gpu.machine.code import Name, Part, VReg

_ONE, _HALF = Name("1.0"), Name("0.5")
_NORMAL, _INFINITE = 0x108, 0x204
_KEPT_BY_ROOT = 0x263
"""Classes of which the root is the number itself: NaNs, zeros and +infinity; of negatives it is a NaN."""
_LEAST_EXPONENT, _DIGITS = -1074, 53
_MAGNITUDE, _SIGN = 0x7FFF_FFFF, 0x8000_0000


def minus(pair: VReg) -> Part:
    return Part(pair, negative=True)


def choose(code: Code, if_so: VReg, otherwise: VReg) -> VReg:
    """By vcc, of pairs."""
    result = code.pair()
    for part in (low, high):
        code.op("v_cndmask_b32", part(result), part(otherwise), part(if_so), VCC)
    return result


def reciprocal(code: Code, divisor: VReg, guess: VReg, steps: int) -> VReg:
    """Each step of Newton's doubles the digits."""
    for _ in range(steps):
        error = code.give("v_fma_f64", minus(divisor), guess, _ONE)
        guess = code.give("v_fma_f64", guess, error, guess)
    return guess


def _quotient(code: Code, dividend: VReg, divisor: VReg, steps: int) -> tuple[VReg, VReg]:
    """Within little more than half a unit of the last digit; and a rough one, right where it is no number
    but 0, infinite or a NaN."""
    guess = code.give("v_rcp_f64", divisor)
    rough = code.give("v_mul_f64", dividend, guess)
    inverse = reciprocal(code, divisor, guess, steps)
    near = code.give("v_mul_f64", dividend, inverse)
    rest = code.give("v_fma_f64", minus(divisor), near, dividend)
    return code.give("v_fma_f64", rest, inverse, near), rough


def _unless_special(code: Code, quotient: VReg, rough: VReg) -> VReg:
    code.op("v_cmp_class_f64", VCC, rough, code.give(MOVE, _NORMAL))
    return choose(code, quotient, rough)


def divide_f32(code: Code, dividend: VReg, divisor: VReg) -> VReg:
    """By way of f64: a quotient of f32 is a number of f64 or far from where an f32 is rounded otherwise."""
    a, b = (code.give("v_cvt_f64_f32", one) for one in (dividend, divisor))
    return code.give("v_cvt_f32_f64", _unless_special(code, *_quotient(code, a, b, 1)))


def divide_f64(code: Code, dividend: VReg, divisor: VReg) -> VReg:
    """Of significands, with the exponent put on after: that may round again, which the remainder mends."""
    a, b = (_magnitude(code, code.give("v_frexp_mant_f64", one)) for one in (dividend, divisor))
    exponents = [code.give("v_frexp_exp_i32_f64", one) for one in (dividend, divisor)]
    scale = code.give("v_sub_u32", *exponents)
    near, rough = _quotient(code, a, b, 2)
    found = code.give("v_ldexp_f64", near, scale)
    # The distance of what was found to its neighbours, and the remainder, before the exponent was put on.
    digits = code.give("v_add_u32", -_DIGITS & 0xFFFF_FFFF, code.give("v_frexp_exp_i32_f64", near))
    least = code.give("v_sub_u32", _LEAST_EXPONENT & 0xFFFF_FFFF, scale)
    ulp = code.give("v_max_i32", digits, least)
    half = code.give("v_ldexp_f64", b, code.give("v_add_u32", -1, ulp))
    back = code.give("v_ldexp_f64", found, code.give("v_sub_u32", 0, scale))
    rest = code.give("v_fma_f64", minus(b), back, a)
    code.op("v_cmp_gt_f64", VCC, rest, half)
    above = _neighbour(code, found, "v_addc_co_u32")
    code.op("v_cmp_lt_f64", VCC, rest, minus(half))
    nearest = _neighbour(code, above, "v_subbrev_co_u32")
    code.op("v_cmp_class_f64", VCC, found, code.give(MOVE, _INFINITE))
    whole = _unless_special(code, choose(code, found, nearest), rough)
    sign = code.give("v_and_b32", _SIGN, code.give("v_xor_b32", high(dividend), high(divisor)))
    return code.both(low(whole), code.give("v_or_b32", high(whole), sign))


def _magnitude(code: Code, value: VReg) -> VReg:
    return code.both(low(value), code.give("v_and_b32", _MAGNITUDE, high(value)))


def _neighbour(code: Code, value: VReg, verb: str) -> VReg:
    """The next float, above or below, where vcc says so: its bits with the carry added or taken away."""
    result = code.pair()
    for part in (low, high):
        code.op(verb, part(result), VCC, 0, part(value), VCC)
    return result


def _root(code: Code, value: VReg) -> VReg:
    """Within little more than half a unit of the last digit, of what has a normal root."""
    guess = code.give("v_rsq_f64", value)
    near, half = code.give("v_mul_f64", value, guess), code.give("v_mul_f64", _HALF, guess)
    error = code.give("v_fma_f64", minus(half), near, _HALF)
    near, half = (code.give("v_fma_f64", one, error, one) for one in (near, half))
    rest = code.give("v_fma_f64", minus(near), near, value)
    return code.give("v_fma_f64", rest, half, near)


def _unless_kept(code: Code, root: VReg, value: VReg) -> VReg:
    code.op("v_cmp_class_f64", VCC, value, code.give(MOVE, _KEPT_BY_ROOT))
    return choose(code, value, root)


def root_f32(code: Code, value: VReg) -> VReg:
    """By way of f64, where all f32 are normal, and no root is near where an f32 is rounded otherwise."""
    wide = code.give("v_cvt_f64_f32", value)
    return code.give("v_cvt_f32_f64", _unless_kept(code, _root(code, wide), wide))


def root_f64(code: Code, value: VReg) -> VReg:
    """Of a number from 1 to 4, by an even exponent; the remainder says which neighbour is nearest."""
    exponent = code.give("v_frexp_exp_i32_f64", value)
    even = code.give("v_and_b32", -2, code.give("v_add_u32", -1, exponent))
    scaled = code.give("v_ldexp_f64", value, code.give("v_sub_u32", 0, even))
    near = _root(code, scaled)
    rest = code.give("v_fma_f64", minus(near), near, scaled)
    ulp = code.give("v_ldexp_f64", near, code.give(MOVE, 1 - _DIGITS & 0xFFFF_FFFF))
    # The root is above near + ulp / 2 where the remainder is above near * ulp: both are multiples of ulp².
    code.op("v_cmp_gt_f64", VCC, rest, ulp)
    above = _neighbour(code, near, "v_addc_co_u32")
    code.op("v_cmp_le_f64", VCC, rest, minus(ulp))
    nearest = _neighbour(code, above, "v_subbrev_co_u32")
    whole = code.give("v_ldexp_f64", nearest, code.give("v_ashrrev_i32", 1, even))
    return _unless_kept(code, whole, value)

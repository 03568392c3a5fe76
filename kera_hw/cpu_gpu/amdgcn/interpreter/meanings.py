"""What each vector instruction computes: arrays of lanes, as bits, to an array of lanes.

From the AMD Instinct MI200 ISA reference, chapter 12, on exact arithmetic of ``kera_hw.numerics``.
Reciprocals have the error that the manual allows and no particular value, so that code that depends on one is
found out.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

import numpy as np

from kera_hw.numerics import bits, floats
from kera_hw.numerics.arrays import Array
from kera_hw.types import F32, F64, FloatType, IntType

Meaning = Callable[..., Array]
Compute = Callable[[Array], Array] | Callable[[Array, Array], Array] | Callable[[Array, Array, Array], Array]
_U32 = IntType(32, False)
_ROUGH = 2.0**-23
"""Of reciprocals, relatively: 2^29 units in the last place."""
_GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)


def _typed(kinds: str, compute: Compute) -> Meaning:
    """Of operands taken as NumPy's types say, such as `i4 u4`."""
    dtypes = [np.dtype(one) for one in kinds.split()]
    call = cast(Meaning, compute)

    def meaning(*args: Array) -> Array:
        found = call(*(_as(arg, dtype) for arg, dtype in zip(args, dtypes, strict=True)))
        return found if found.dtype == np.bool_ else found.view(np.dtype(f"u{found.dtype.itemsize}"))

    return meaning


def _as(values: Array, dtype: np.dtype[np.generic]) -> Array:
    if values.dtype.itemsize != dtype.itemsize:  # the lower word of a constant
        values = values.astype(np.dtype(f"u{dtype.itemsize}"))
    return values.view(dtype)


# Integers


def _shifted(compute: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """By an amount modulo the width; it comes first."""

    def shift(amount: Array, value: Array) -> Array:
        width = np.uint32(8 * value.dtype.itemsize - 1)
        return compute(value, (amount & width).astype(value.dtype))

    return shift


def _first_digit(values: Array) -> Array:
    found = bits.count_leading_zeros(values, _U32).astype(np.uint32)
    return np.where(values == 0, np.uint32(0xFFFF_FFFF), found)


def _last_digit(values: Array) -> Array:
    found = bits.count_trailing_zeros(values, _U32).astype(np.uint32)
    return np.where(values == 0, np.uint32(0xFFFF_FFFF), found)


def _field(value: Array, at: Array, width: Array) -> Array:
    """Bits from a place on, extended by their sign where the value has one."""
    at, width = at & np.uint32(31), width & np.uint32(31)
    up = (np.uint32(32) - width) & np.uint32(31)
    moved = value >> at.astype(value.dtype)
    found = moved << up.astype(value.dtype) >> up.astype(value.dtype)
    return np.where(width == 0, value.dtype.type(0), found).astype(value.dtype)


def _align(high: Array, low: Array, amount: Array) -> Array:
    whole = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
    return (whole >> (amount & np.uint32(31)).astype(np.uint64)).astype(np.uint32)


def _mad(kind: type[np.generic]) -> Callable[[Array, Array, Array], Array]:
    def mad(a: Array, b: Array, c: Array) -> Array:
        found: Array = np.multiply(a.astype(kind), b.astype(kind))
        return found + c

    return mad


def _high_product(a: Array, b: Array) -> Array:
    return (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)


# Floats


def _extreme(
    kind: FloatType, choose: Callable[[Array, Array, FloatType], Array]
) -> Callable[[Array, Array], Array]:
    """The number where only one is. -0 is below +0."""

    def extreme(a: Array, b: Array) -> Array:
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, choose(a, b, kind)))

    return extreme


def _rough(exact: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Wrong by up to the manual's error, in a way that looks like chance, where it is a normal number."""

    def approximate(values: Array) -> Array:
        found = exact(values)
        chance = (found.view(np.uint64) * _GOLDEN >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0
        moved = found * (1.0 + chance * _ROUGH)
        normal = np.isfinite(moved) & (np.abs(found) >= 2.0**-1000)
        return np.where(normal, moved, found)

    return approximate


def _mantissa(values: Array) -> Array:
    return np.where(np.isfinite(values), np.frexp(values)[0], values)


def _exponent(values: Array) -> Array:
    return np.where(np.isfinite(values), np.frexp(values)[1], 0).astype(np.int32)


def _to_integer(source: FloatType, target: IntType) -> Callable[[Array], Array]:
    dtype = np.dtype("i4" if target.signed else "u4")

    def convert(values: Array) -> Array:
        return floats.to_integer(values, source, target.min, target.max).astype(dtype)

    return convert


def _class(values: Array, wanted: Array) -> Array:
    """Whether a number is of one of the classes that a mask names."""
    magnitude, negative = np.abs(values), np.signbit(values)
    quiet = values.view(np.uint64) >> np.uint64(51) & np.uint64(1) == 1
    normal, zero, infinite = magnitude >= 2.0**-1022, magnitude == 0, np.isinf(values)
    low = [(infinite, 2), (normal & ~infinite, 3), (~normal & ~zero, 4), (zero, 5)]
    number = np.where(quiet, 1, 0)
    for holds, code in low:
        number = np.where(holds & ~np.isnan(values), np.where(negative, code, 11 - code), number)
    return (wanted >> number.astype(np.uint32) & np.uint32(1)).astype(np.bool_)


def _ldexp(values: Array, exponent: Array) -> Array:
    return np.ldexp(values, exponent)


# Comparisons

_COMPARED: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "neq": lambda a, b: ~np.equal(a, b),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
}
_KINDS = {"i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "f32": "f4", "f64": "f8"}
_FORMATS = {"f32": F32, "f64": F64}
_INTS = {"i32": IntType(32, True), "u32": _U32}


def _last(compute: Callable[..., Array], kind: FloatType, *args: Array) -> Array:
    return compute(*args, kind)


def _per_float(verb: str, count: int, compute: Callable[..., Array]) -> dict[str, Meaning]:
    """Of f32 and f64, rounded once."""

    return {
        f"v_{verb}_{name}": _typed(" ".join([_KINDS[name]] * count), partial(_last, compute, kind))
        for name, kind in _FORMATS.items()
    }


MEANINGS: Mapping[str, Meaning] = {
    **{name: _typed("u4", lambda a: a) for name in (
        "v_mov_b32", "v_accvgpr_write_b32", "v_accvgpr_read_b32",
    )},
    "v_not_b32": _typed("u4", np.invert),
    "v_bfrev_b32": _typed("u4", lambda a: bits.reverse_bits(a, _U32)),
    "v_ffbh_u32": _typed("u4", _first_digit), "v_ffbl_b32": _typed("u4", _last_digit),
    "v_add_u32": _typed("u4 u4", np.add), "v_sub_u32": _typed("u4 u4", np.subtract),
    "v_and_b32": _typed("u4 u4", np.bitwise_and), "v_or_b32": _typed("u4 u4", np.bitwise_or),
    "v_xor_b32": _typed("u4 u4", np.bitwise_xor),
    **{f"v_{verb}_{kind}": _typed(f"{_KINDS[kind]} {_KINDS[kind]}", compute)
       for verb, compute in (("min", np.minimum), ("max", np.maximum)) for kind in ("i32", "u32")},
    "v_lshlrev_b32": _typed("u4 u4", _shifted(np.left_shift)),
    "v_lshrrev_b32": _typed("u4 u4", _shifted(np.right_shift)),
    "v_ashrrev_i32": _typed("u4 i4", _shifted(np.right_shift)),
    "v_lshlrev_b64": _typed("u4 u8", _shifted(np.left_shift)),
    "v_lshrrev_b64": _typed("u4 u8", _shifted(np.right_shift)),
    "v_ashrrev_i64": _typed("u4 i8", _shifted(np.right_shift)),
    "v_mul_lo_u32": _typed("u4 u4", np.multiply), "v_mul_hi_u32": _typed("u4 u4", _high_product),
    "v_mad_u64_u32": _typed("u4 u4 u8", _mad(np.uint64)), "v_mad_i64_i32": _typed("i4 i4 i8", _mad(np.int64)),
    "v_bfe_u32": _typed("u4 u4 u4", _field), "v_bfe_i32": _typed("i4 u4 u4", _field),
    "v_bfi_b32": _typed("u4 u4 u4", lambda mask, a, b: mask & a | ~mask & b),
    "v_alignbit_b32": _typed("u4 u4 u4", _align),
    "v_bcnt_u32_b32": _typed("u4 u4", lambda a, b: bits.popcount(a, _U32).astype(np.uint32) + b),
    **_per_float("add", 2, floats.add), **_per_float("mul", 2, floats.mul),
    **_per_float("fma", 3, floats.fma),
    "v_sub_f32": _typed("f4 f4", lambda a, b: floats.sub(a, b, F32)),
    **{f"v_{verb}_{name}": _typed(f"{_KINDS[name]} {_KINDS[name]}", _extreme(kind, choose))
       for verb, choose in (("min", floats.minimum), ("max", floats.maximum))
       for name, kind in _FORMATS.items()},
    **_per_float("floor", 1, floats.floor), **_per_float("ceil", 1, floats.ceil),
    **_per_float("trunc", 1, floats.trunc), **_per_float("rndne", 1, floats.round_even),
    "v_ldexp_f32": _typed("f4 i4", _ldexp), "v_ldexp_f64": _typed("f8 i4", _ldexp),
    "v_frexp_mant_f64": _typed("f8", _mantissa), "v_frexp_exp_i32_f64": _typed("f8", _exponent),
    "v_rcp_f64": _typed("f8", _rough(lambda a: 1.0 / a)),
    "v_rsq_f64": _typed("f8", _rough(lambda a: 1.0 / np.sqrt(a))),
    **{f"v_cvt_{name}_{number}": _typed(_KINDS[number], partial(floats.from_integer, target=kind))
       for name, kind in _FORMATS.items() for number in _INTS},
    **{f"v_cvt_{number}_{name}": _typed(_KINDS[name], _to_integer(kind, target))
       for name, kind in _FORMATS.items() for number, target in _INTS.items()},
    "v_cvt_f32_f64": _typed("f8", lambda a: floats.convert(a, F64, F32)),
    "v_cvt_f64_f32": _typed("f4", lambda a: floats.convert(a, F32, F64)),
    **{f"v_cmp_{verb}_{kind}": _typed(f"{_KINDS[kind]} {_KINDS[kind]}", compare)
       for verb, compare in _COMPARED.items() for kind in _KINDS},
    "v_cmp_class_f64": _typed("f8 u4", _class),
}
"""All but those that carry, and that choose by vcc."""

"""What each instruction computes, by its row in the table: arrays of lanes to an array of lanes.

From the PTX ISA manual, chapter 9.7, on exact arithmetic of ``kera_hw.numerics``. Where the manual leaves a
result open (a division by 0), the interpreter stops; a NaN of f32 is 0x7FFFFFFF, as the manual says.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NoReturn

import numpy as np

from kera_hw.cpu_gpu.gpu.interpreter.stop import Stop
from kera_hw.cpu_gpu.ptx.table import Instruction, width_bits
from kera_hw.numerics import bits, floats, integers
from kera_hw.numerics.arrays import Array, wrap
from kera_hw.types import F32, F64, FloatType, IntType

Meaning = Callable[[Instruction, list[Array]], Array]
NAN_F32 = np.uint32(0x7FFF_FFFF)


@cache
def dtype_of(kind: str) -> np.dtype[np.generic]:
    """Of values of a type; what has none of its own counts as unsigned."""
    if kind == "pred":
        return np.dtype(np.bool_)
    return np.dtype(f"{'u' if kind[0] == 'b' else kind[0].replace('s', 'i')}{width_bits(kind) // 8}")


def _integer(kind: str) -> IntType:
    return IntType(width_bits(kind), kind[0] == "s")


def _format(kind: str) -> FloatType:
    return F32 if kind == "f32" else F64


def _stop(message: str) -> NoReturn:
    raise Stop(message)


def _float(values: Array) -> Array:
    """With the NaN that f32 instructions give."""
    if values.dtype != np.float32:
        return values
    return np.where(np.isnan(values), NAN_F32.view(np.float32), values)


# Integers


def _mul_wide(row: Instruction, args: list[Array]) -> Array:
    a, b = (wrap(arg, _integer(row.operands[0].kind)) for arg in args[:2])
    return a * b + args[2] if len(args) == 3 else a * b


def _divided(take: Callable[[Array, Array, IntType], Array]) -> Meaning:
    def meaning(row: Instruction, args: list[Array]) -> Array:
        kind, (a, b) = _integer(row.kind), args
        if (b == 0).any() or (kind.signed and ((b == -1) & (a == kind.min)).any()):
            _stop("a division has no result that the manual defines")
        return take(a, b, kind)

    return meaning


def _shf(row: Instruction, args: list[Array]) -> Array:
    """32 bits of the pair b, a, from an amount modulo 32 on."""
    low, high, amount = (arg.astype(np.uint64) for arg in args)
    whole, amount = high << np.uint64(32) | low, amount & np.uint64(31)
    moved = whole << amount >> np.uint64(32) if row.chosen["dir"] == "l" else whole >> amount
    return (moved & np.uint64(0xFFFF_FFFF)).astype(np.uint32)


def _bfi(row: Instruction, args: list[Array]) -> Array:
    """As many bits of the first as said put in the second from a place on; what is beyond the top is lost."""
    word = args[0].dtype
    width = width_bits(row.kind)
    whole = np.array((1 << width) - 1, word)
    place, length = ((arg & np.uint32(0xFF)).astype(np.uint64) for arg in args[2:])

    def shifted(values: Array, amount: Array) -> Array:
        kept = np.minimum(amount, np.uint64(width - 1)).astype(word)
        return np.where(amount >= width, word.type(0), values << kept)

    field = shifted(~shifted(np.broadcast_to(whole, length.shape), length), place)
    return args[1] & ~field | shifted(args[0], place) & field


def _dp4a(row: Instruction, args: list[Array]) -> Array:
    """A sum and the products of four bytes each, modulo 2^32."""
    total = args[2].astype(np.int64)
    for k in range(4):
        factors = [
            (word >> np.uint32(8 * k)).astype(np.int8 if row.chosen[kind] == "s32" else np.uint8)
            for kind, word in zip(("atype", "btype"), args)
        ]
        total = total + factors[0].astype(np.int64) * factors[1].astype(np.int64)
    return (total & 0xFFFF_FFFF).astype(np.uint32)


def _counted(count: Callable[[Array, IntType], Array]) -> Meaning:
    def meaning(row: Instruction, args: list[Array]) -> Array:
        return count(args[0], _integer(row.kind)).astype(np.uint32)

    return meaning


# Comparisons

_COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}


def _setp(row: Instruction, args: list[Array]) -> Array:
    verb, (a, b) = row.chosen.get("cmp") or row.chosen.get("beq") or row.chosen["fcmp"], args
    unordered = (a != a) | (b != b)
    match verb:
        case "ne":
            return (a != b) & ~unordered
        case "neu":
            return (a != b) | unordered
        case "nan":
            return unordered
        case _:
            return _COMPARISONS[verb](a, b)


# Floats


def _rounded(compute: Callable[..., Array]) -> Meaning:
    def meaning(row: Instruction, args: list[Array]) -> Array:
        return _float(compute(*args, _format(row.kind)))

    return meaning


def _with_bits(change: Callable[[Array, Array], Array]) -> Meaning:
    """Of the bits of a float and the bit of its sign."""

    def meaning(row: Instruction, args: list[Array]) -> Array:
        word = np.dtype(f"u{args[0].dtype.itemsize}")
        top = np.array(1 << (8 * word.itemsize - 1), word)
        return change(args[0].view(word), top).view(args[0].dtype)

    return meaning


def _copysign(row: Instruction, args: list[Array]) -> Array:
    """The sign of the first in the second."""
    word = np.dtype(f"u{args[0].dtype.itemsize}")
    top = np.array(1 << (8 * word.itemsize - 1), word)
    sign, magnitude = (arg.view(word) for arg in args)
    return (sign & top | magnitude & ~top).view(args[0].dtype)


def _extreme(choose: Callable[[Array, Array, FloatType], Array]) -> Meaning:
    """The number where only one is: `.NaN` is not said. -0 is below +0."""

    def meaning(row: Instruction, args: list[Array]) -> Array:
        a, b = args
        found = choose(a, b, _format(row.kind))
        return _float(np.where(np.isnan(a), b, np.where(np.isnan(b), a, found)))

    return meaning


# Conversions


def _to_float(row: Instruction, args: list[Array]) -> Array:
    return floats.from_integer(args[0], _format(row.chosen["ftype"]))


def _to_integer(row: Instruction, args: list[Array]) -> Array:
    """Saturating. A NaN is 0, but of f64, or as 64 bits, the top bit alone."""
    kind, source = _integer(row.chosen["itype"]), row.chosen["ftype"]
    number = floats.to_integer(args[0], _format(source), kind.min, kind.max)
    found = number.astype(dtype_of(row.chosen["itype"]))
    if source == "f64" or kind.width_bits == 64:
        top = np.array(1 << (kind.width_bits - 1), f"u{kind.width_bits // 8}").view(found.dtype)
        found = np.where(np.isnan(args[0]), top, found)
    return found


_INTEGRAL = {"rni": floats.round_even, "rzi": floats.trunc, "rmi": floats.floor, "rpi": floats.ceil}


def _integral(row: Instruction, args: list[Array]) -> Array:
    return _float(_INTEGRAL[row.chosen["round"]](args[0], _format(row.kind)))


def _as_type(row: Instruction, args: list[Array]) -> Array:
    return args[0].astype(dtype_of(row.operands[0].kind))


def _same(row: Instruction, args: list[Array]) -> Array:
    return args[0]


MEANINGS: Mapping[str, Meaning] = {
    "add.type": lambda row, a: a[0] + a[1], "sub.type": lambda row, a: a[0] - a[1],
    "mul.lo.type": lambda row, a: a[0] * a[1], "mad.lo.type": lambda row, a: a[0] * a[1] + a[2],
    "mul.wide.type": _mul_wide, "mad.wide.type": _mul_wide,
    "div.type": _divided(integers.div), "rem.type": _divided(integers.rem),
    "min.type": lambda row, a: np.minimum(a[0], a[1]), "max.type": lambda row, a: np.maximum(a[0], a[1]),
    "neg.type": lambda row, a: np.negative(a[0]),
    "popc.type": _counted(bits.popcount), "clz.type": _counted(bits.count_leading_zeros),
    "bfi.type": _bfi, "dp4a.atype.btype": _dp4a,
    "brev.type": lambda row, a: bits.reverse_bits(a[0], _integer(row.kind)),
    "and.type": lambda row, a: a[0] & a[1], "or.type": lambda row, a: a[0] | a[1],
    "xor.type": lambda row, a: a[0] ^ a[1], "not.type": lambda row, a: ~a[0],
    "shl.type": lambda row, a: bits.shl(a[0], a[1], _integer(row.kind)),
    "shr.type": lambda row, a: bits.shr(a[0], a[1], _integer(row.kind)),
    "shf.dir.wrap.b32": _shf,
    "setp.cmp.type": _setp, "setp.beq.type": _setp, "setp.fcmp.type": _setp,
    "selp.type": lambda row, a: np.where(a[2], a[0], a[1]),
    "add.rn.type": _rounded(floats.add), "sub.rn.type": _rounded(floats.sub),
    "mul.rn.type": _rounded(floats.mul), "div.rn.type": _rounded(floats.div),
    "fma.rn.type": _rounded(floats.fma), "sqrt.rn.type": _rounded(floats.sqrt),
    "neg.ftype": _with_bits(lambda word, top: word ^ top),
    "abs.ftype": _with_bits(lambda word, top: word & ~top),
    "min.ftype": _extreme(floats.minimum), "max.ftype": _extreme(floats.maximum), "copysign.type": _copysign,
    "cvt.itype.jtype": _as_type, "cvt.rn.ftype.itype": _to_float, "cvt.rzi.itype.ftype": _to_integer,
    "cvt.round.f32.f32": _integral, "cvt.round.f64.f64": _integral,
    "cvt.f64.f32": lambda row, a: floats.convert(a[0], F32, F64),
    "cvt.rn.f32.f64": lambda row, a: _float(floats.convert(a[0], F64, F32)),
    "mov.type": _same, "cvta.to.global.u64": _same,
}
"""All rows but those that reach memory or change the course of a thread."""

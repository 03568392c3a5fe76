"""The native set: operations that x86-64, AArch64, RISC-V, WebAssembly and PTX each have almost one to one.

Data, not code: a signature is an operation of the registry on certain types, and a domain says on which
operands all machines agree with the registry. Elsewhere a machine gives any value, or stops (division), and
whoever writes native programs sees to it that nobody looks.

A float that is a NaN has no particular bits: a native operation may give any NaN for a NaN. Only what shows
bits can tell, so that a canonical NaN is put in place there and nowhere else.

A target that has instructions for more says so by further rows, of which some stand ready here.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from kera_hw.types import BF16, BOOL, F16, F32, F64, IntType, Type


class Domain(Enum):
    """On which operands a native operation means what the registry says."""

    TOTAL = "all operands"
    AMOUNT_BELOW_WIDTH = "amounts below the width; any value from there on"
    SAFE_DIVISOR = "divisors other than 0, and than -1 under the least dividend, where a machine may stop"
    VALUE_FITS = "numbers whose integer part the result holds; any value elsewhere"
    NAN_SHOWN = "numbers and the canonical NaN; the bits of any other are shown as they are"


class Signature(NamedTuple):
    """An operation on scalars of certain types."""

    opcode: str
    operands: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"{self.opcode} {' '.join(map(str, self.operands))} -> {self.result}"


Native = Mapping[Signature, Domain]
"""What a machine does, and where."""

NOTHING_MORE: Native = {}

INTS = tuple(IntType(width, signed) for width in (8, 16, 32, 64) for signed in (True, False))
FLOATS = (F32, F64)
WORDS = tuple(kind for kind in INTS if kind.width_bits >= 32)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def unsigned(width_bits: int) -> IntType:
    return IntType(width_bits, False)


def _alike(
    family: str, verbs: Iterable[str], kinds: Iterable[Type], count: int = 2, domain: Domain = Domain.TOTAL
) -> dict[Signature, Domain]:
    """Operations of ``count`` operands of one type that give it."""
    types = tuple(kinds)
    return {
        Signature(f"{family}.{verb}", (kind,) * count, kind): domain for verb in verbs for kind in types
    }


def _conversions(
    verb: str, pairs: Iterable[tuple[Type, Type]], domain: Domain = Domain.TOTAL
) -> dict[Signature, Domain]:
    return {Signature(f"convert.{verb}", (source,), target): domain for source, target in pairs}


NATIVE: Native = {
    **_alike("integer", ("add", "sub", "mul", "min", "max"), INTS),
    **_alike("integer", ("neg",), INTS, 1),
    **_alike("integer", ("abs",), (kind for kind in INTS if kind.signed), 1),
    **_alike("integer", ("div", "rem"), WORDS, domain=Domain.SAFE_DIVISOR),
    **_alike("bits", ("and", "or", "xor"), (*INTS, BOOL)),
    **_alike("bits", ("not",), (*INTS, BOOL), 1),
    **{
        Signature(f"bits.{verb}", (kind, unsigned(kind.width_bits)), kind): Domain.AMOUNT_BELOW_WIDTH
        for verb in ("shl", "shr") for kind in INTS
    },
    **_alike("floating", ("add", "sub", "mul", "div"), FLOATS),
    **_alike("floating", ("neg", "abs", "sqrt", "floor", "ceil", "round", "trunc"), FLOATS, 1),
    **{
        Signature(f"compare.{verb}", (kind, kind), BOOL): Domain.TOTAL
        for verb in COMPARISONS for kind in (*INTS, *FLOATS)
    },
    **{
        Signature("control.select", (BOOL, kind, kind), kind): Domain.TOTAL
        for kind in (*INTS, *FLOATS, BOOL)
    },
    **_conversions("cast", ((a, b) for a in (*INTS, BOOL) for b in INTS if a != b)),
    **_conversions("cast", ((IntType(width, True), kind) for width in (32, 64) for kind in FLOATS)),
    **_conversions("cast", ((F32, F64), (F64, F32))),
    **_conversions(
        "cast", ((kind, IntType(width, True)) for kind in FLOATS for width in (32, 64)), Domain.VALUE_FITS
    ),
    **_conversions(
        "bitcast", ((a, b) for a in INTS for b in INTS if a != b and a.width_bits == b.width_bits)
    ),
    **_conversions("bitcast", ((unsigned(kind.width_bits), kind) for kind in FLOATS)),
    **_conversions("bitcast", ((kind, unsigned(kind.width_bits)) for kind in FLOATS), Domain.NAN_SHOWN),
}
"""What every software target has."""

STORED: frozenset[Type] = frozenset((*INTS, *FLOATS))
"""Element types of native buffers. A bool is a u8 there, f16 and bf16 are u16."""

# Further rows for targets that have them.

FUSED_MULTIPLY_ADD: Native = _alike("floating", ("fma",), FLOATS, 3)
MINIMUM: Native = _alike("floating", ("min", "max"), FLOATS)
"""IEEE 754-2019 minimum and maximum, as AArch64, WebAssembly and PTX have them."""
COPYSIGN: Native = _alike("floating", ("copysign",), FLOATS, domain=Domain.NAN_SHOWN)
BIT_COUNTS: Native = {
    Signature(f"bits.{verb}", (unsigned(width),), unsigned(32)): Domain.TOTAL
    for verb in ("popcount", "clz", "ctz") for width in (32, 64)
}
_U64 = unsigned(64)
CARRY_LESS: Native = {Signature("bits.clmul", (_U64, _U64), _U64): Domain.TOTAL}
"""PCLMULQDQ of x86-64, PMULL of AArch64, clmul of RISC-V."""
ROTATIONS: Native = {
    Signature(f"bits.{verb}", (unsigned(width), unsigned(width)), unsigned(width)): Domain.TOTAL
    for verb in ("rotl", "rotr") for width in (32, 64)
}
SATURATING: Native = _alike(
    "integer", ("saturating_add", "saturating_sub"), (kind for kind in INTS if kind.width_bits < 32)
)
"""The narrow saturating additions of vector units."""
SATURATING_CONVERSIONS: Native = _conversions(
    "cast", ((kind, target) for kind in FLOATS for target in WORDS)
)
"""Floats to integers, saturating and 0 for NaN, as AArch64, WebAssembly and PTX have them."""
UNSIGNED_CONVERSIONS: Native = _conversions(
    "cast", ((kind, target) for kind in WORDS if not kind.signed for target in FLOATS)
)
F16_CONVERSIONS: Native = {
    **_conversions("cast", ((F16, F32), (F32, F16))),
    **_conversions("bitcast", ((unsigned(16), F16),)),
    **_conversions("bitcast", ((F16, unsigned(16)),), Domain.NAN_SHOWN),
}
BF16_CONVERSIONS: Native = {
    **_conversions("cast", ((BF16, F32), (F32, BF16))),
    **_conversions("bitcast", ((unsigned(16), BF16),)),
    **_conversions("bitcast", ((BF16, unsigned(16)),), Domain.NAN_SHOWN),
}


def _arithmetic(kind: Type, conversions: Native) -> Native:
    """Of a 16-bit format: what `floats` asks of f32 as well."""
    return {
        **conversions,
        **_alike("floating", ("add", "sub", "mul", "div"), (kind,)),
        **_alike("floating", ("neg", "abs", "sqrt"), (kind,), 1),
        **{Signature(f"compare.{verb}", (kind, kind), BOOL): Domain.TOTAL for verb in COMPARISONS},
        Signature("control.select", (BOOL, kind, kind), kind): Domain.TOTAL,
    }


F16_ARITHMETIC: Native = _arithmetic(F16, F16_CONVERSIONS)
"""As AArch64 (FEAT_FP16), AVX-512 FP16 and RISC-V (Zfh, Zvfh) have it."""
BF16_ARITHMETIC: Native = _arithmetic(BF16, BF16_CONVERSIONS)
"""With subnormal numbers, which not every processor with bf16 keeps."""

CAPABILITIES: Mapping[str, Native] = {
    "bf16-arithmetic": BF16_ARITHMETIC,
    "bf16-conversions": BF16_CONVERSIONS,
    "bit-counts": BIT_COUNTS,
    "carry-less": CARRY_LESS,
    "copysign": COPYSIGN,
    "f16-arithmetic": F16_ARITHMETIC,
    "f16-conversions": F16_CONVERSIONS,
    "fma": FUSED_MULTIPLY_ADD,
    "minimum": MINIMUM,
    "rotations": ROTATIONS,
    "saturating": SATURATING,
    "saturating-conversions": SATURATING_CONVERSIONS,
    "unsigned-conversions": UNSIGNED_CONVERSIONS,
}
"""By name, for people who ask what a machine would be given."""

"""Native operations on scalars as instructions (see ``operands`` for how scalars are held)."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kera_hw.cpu_gpu.amdgcn import quotients, wide
from kera_hw.cpu_gpu.amdgcn.code import MOVE, VCC, Code, high, low
from kera_hw.cpu_gpu.amdgcn.operands import (
    argument,
    is_bool,
    is_narrow,
    is_signed,
    is_wide,
    letter,
    lower,
    pair,
    source,
    wide_argument,
    widened,
    word,
)
from kera_hw.cpu_gpu.gpu.writer import Held, Scalar
from kera_hw.cpu_gpu.machine.code import VReg
from kera_hw.legal.native import Signature
from kera_hw.types import FloatType

Args = Sequence[Scalar[VReg]]
Rule = Callable[[Code, Args, Signature], Held[VReg]]
"""Writes an operation, and says where the result is."""
_SIGN = 0x8000_0000


def _swapped(code: Code, a: Scalar[VReg], b: Scalar[VReg], loose: bool) -> tuple[VReg | int, VReg]:
    """Of what may change places: a constant comes first."""
    if isinstance(b.held, Held):
        return source(code, a, loose), word(code, b, loose)
    return source(code, b, loose), word(code, a, loose)


def _sum(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(wide.add(code, *(pair(code, one) for one in args)))
    return Held(code.give("v_add_u32", *_swapped(code, *args, loose=True)), is_narrow(op.result))


def _difference(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(wide.subtract(code, *(pair(code, one) for one in args)))
    a, b = source(code, args[0], loose=True), word(code, args[1], loose=True)
    return Held(code.give("v_sub_u32", a, b), is_narrow(op.result))


def _product(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(wide.multiply(code, *(pair(code, one) for one in args)))
    operands = [argument(code, one, loose=True) for one in args]
    return Held(code.give("v_mul_lo_u32", *operands), is_narrow(op.result))


def _negative(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(wide.negate(code, pair(code, args[0])))
    return Held(code.give("v_sub_u32", 0, word(code, args[0], loose=True)), is_narrow(op.result))


def _absolute(code: Code, args: Args, op: Signature) -> Held[VReg]:
    """The least stays what it is."""
    if is_wide(op.result):
        value = pair(code, args[0])
        return Held(wide.turned(code, value, wide.sign_of(code, value)))
    value = word(code, args[0])
    found = code.give("v_max_i32", value, code.give("v_sub_u32", 0, value))
    return Held(found, is_narrow(op.result))


def _divided(which: int) -> Rule:
    """The quotient or the remainder; of signed numbers by magnitudes, truncated."""

    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        take = _divided_wide if is_wide(op.result) else _divided_words
        return Held(take(code, args, is_signed(op.result))[which])

    return rule


def _divided_words(code: Code, args: Args, signed: bool) -> tuple[VReg, VReg]:
    a, b = (word(code, one) for one in args)
    if not signed:
        return wide.divide_u32(code, a, b)
    magnitudes = [code.give("v_max_i32", one, code.give("v_sub_u32", 0, one)) for one in (a, b)]
    found = wide.divide_u32(code, magnitudes[0], magnitudes[1])
    signs = wide.signs(code, code.give("v_xor_b32", a, b)), wide.signs(code, a)
    quotient, rest = (
        code.give("v_sub_u32", code.give("v_xor_b32", one, sign), sign) for one, sign in zip(found, signs)
    )
    return quotient, rest


def _divided_wide(code: Code, args: Args, signed: bool) -> tuple[VReg, VReg]:
    a, b = (pair(code, one) for one in args)
    if not signed:
        return wide.divide_u64(code, a, b)
    signs = [wide.sign_of(code, one) for one in (a, b)]
    found = wide.divide_u64(code, *(wide.turned(code, one, sign) for one, sign in zip((a, b), signs)))
    quotient = wide.turned(code, found[0], code.give("v_xor_b32", *signs))
    return quotient, wide.turned(code, found[1], signs[0])


def _logic(verb: str) -> Rule:
    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        if is_wide(op.result):
            return Held(code.halves(f"v_{verb}_b32", *(pair(code, one) for one in args)))
        return Held(code.give(f"v_{verb}_b32", *_swapped(code, *args, loose=True)), is_narrow(op.result))

    return rule


def _not(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(code.halves("v_not_b32", pair(code, args[0])))
    value = word(code, args[0], loose=True)
    if is_bool(op.result):
        return Held(code.give("v_xor_b32", 1, value))
    return Held(code.give("v_not_b32", value), is_narrow(op.result))


def _shift(left: bool) -> Rule:
    """By an amount below the width."""

    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        kind = op.result
        verb = "lshlrev" if left else "ashrrev" if is_signed(kind) else "lshrrev"
        if is_wide(kind):
            letters = "i" if verb == "ashrrev" else "b"
            return Held(code.give(f"v_{verb}_{letters}64", lower(code, args[1]), pair(code, args[0])))
        letters = "i" if verb == "ashrrev" else "b"
        value = word(code, args[0], loose=left)
        found = code.give(f"v_{verb}_{letters}32", source(code, args[1]), value)
        return Held(found, left and is_narrow(kind))

    return rule


def _ones(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.operands[0]):
        value = pair(code, args[0])
        return Held(code.give("v_bcnt_u32_b32", high(value), code.give("v_bcnt_u32_b32", low(value), 0)))
    return Held(code.give("v_bcnt_u32_b32", word(code, args[0]), 0))


def _zeros(verb: str) -> Rule:
    """Before the first digit, or behind the last. Of no digit the instruction gives -1."""

    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        if not is_wide(op.operands[0]):
            return Held(code.give("v_min_u32", 32, code.give(verb, word(code, args[0]))))
        value = pair(code, args[0])
        near, far = (high, low) if verb == "v_ffbh_u32" else (low, high)
        behind = code.give("v_min_u32", 32, code.give(verb, far(value)))
        behind = code.give("v_add_u32", 32, behind)
        return Held(code.give("v_min_u32", behind, code.give(verb, near(value))))

    return rule


def _rotate(left: bool) -> Rule:
    """Amounts count modulo the width, as those of shifts and of ``alignbit`` do."""

    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        amount = lower(code, args[1])
        back = code.give("v_sub_u32", 0, amount)
        if is_wide(op.result):
            value = pair(code, args[0])
            up, down = (amount, back) if left else (back, amount)
            parts = code.give("v_lshlrev_b64", up, value), code.give("v_lshrrev_b64", down, value)
            return Held(code.halves("v_or_b32", *parts))
        value = word(code, args[0])
        return Held(code.give("v_alignbit_b32", value, value, back if left else amount))

    return rule


# Floats


def _floating(verb: str) -> Rule:
    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        if not is_wide(op.result):
            return Held(code.give(f"v_{verb}_f32", *_swapped(code, *args, loose=False)))
        return Held(code.give(f"v_{verb}_f64", *(wide_argument(code, one) for one in args)))

    return rule


def _float_difference(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if not is_wide(op.result):
        return Held(code.give("v_sub_f32", source(code, args[0]), word(code, args[1])))
    subtracted = quotients.minus(pair(code, args[1]))
    return Held(code.give("v_add_f64", wide_argument(code, args[0]), subtracted))


def _fma(code: Code, args: Args, op: Signature) -> Held[VReg]:
    take = wide_argument if is_wide(op.result) else argument
    return Held(code.give(f"v_fma_{letter(op.result)}", *(take(code, one) for one in args)))


def _quotient(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(quotients.divide_f64(code, *(pair(code, one) for one in args)))
    return Held(quotients.divide_f32(code, *(word(code, one) for one in args)))


def _root(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(quotients.root_f64(code, pair(code, args[0])))
    return Held(quotients.root_f32(code, word(code, args[0])))


def _signed(verb: str, mask: int) -> Rule:
    """Its sign's bit changed, of the word that has it."""

    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        if not is_wide(op.result):
            return Held(code.give(verb, mask, word(code, args[0])))
        value = pair(code, args[0])
        return Held(code.both(low(value), code.give(verb, mask, high(value))))

    return rule


def _copysign(code: Code, args: Args, op: Signature) -> Held[VReg]:
    magnitude = code.give(MOVE, _SIGN - 1)
    if not is_wide(op.result):
        return Held(code.give("v_bfi_b32", magnitude, *(word(code, one) for one in args)))
    a, b = (pair(code, one) for one in args)
    return Held(code.both(low(a), code.give("v_bfi_b32", magnitude, high(a), high(b))))


def _integral(verb: str) -> Rule:
    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        value = pair(code, args[0]) if is_wide(op.result) else source(code, args[0])
        return Held(code.give(f"v_{verb}_{letter(op.result)}", value))

    return rule


def _extreme(verb: str) -> Rule:
    """Of floats the instruction takes the number where one is a NaN, so that it is put in place after."""

    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        kind = op.result
        if isinstance(kind, FloatType):
            return _extreme_float(verb, code, args, kind)
        if not is_wide(kind):
            return Held(code.give(f"v_{verb}_{letter(kind)}", *_swapped(code, *args, loose=False)))
        a, b = (pair(code, one) for one in args)
        code.op(f"v_cmp_{'lt' if verb == 'min' else 'gt'}_{letter(kind)}", VCC, a, b)
        return Held(quotients.choose(code, a, b))

    return rule


def _extreme_float(verb: str, code: Code, args: Args, kind: FloatType) -> Held[VReg]:
    nan = kind.canonical_nan
    if is_wide(kind):
        a, b = (pair(code, one) for one in args)
        found = code.give(f"v_{verb}_f64", a, b)
        unordered = code.both(nan & 0xFFFF_FFFF, nan >> 32)
        code.op("v_cmp_u_f64", VCC, a, b)
        return Held(quotients.choose(code, unordered, found))
    a, b = (word(code, one) for one in args)
    found, unordered = code.give(f"v_{verb}_f32", a, b), code.give(MOVE, nan)
    code.op("v_cmp_u_f32", VCC, a, b)
    return Held(code.give("v_cndmask_b32", found, unordered, VCC))


# Comparisons and choices


def _compare(verb: str) -> Rule:
    """Quiet; a NaN is different from all, which is `neq`."""

    def rule(code: Code, args: Args, op: Signature) -> Held[VReg]:
        kind = op.operands[0]
        called = "neq" if verb == "ne" and isinstance(kind, FloatType) else verb
        if is_wide(kind):
            operands = wide_argument(code, args[0]), pair(code, args[1])
        else:
            operands = source(code, args[0]), word(code, args[1])
        code.op(f"v_cmp_{called}_{letter(kind)}", VCC, *operands)
        return Held(code.flag())

    return rule


def _select(code: Code, args: Args, op: Signature) -> Held[VReg]:
    condition = word(code, args[0])
    if is_wide(op.result):
        then, otherwise = (pair(code, one) for one in args[1:])
        code.mask(condition)
        return Held(quotients.choose(code, then, otherwise))
    then, otherwise = (argument(code, one, loose=True) for one in args[1:])
    code.mask(condition)
    return Held(code.give("v_cndmask_b32", otherwise, then, VCC), is_narrow(op.result))


# Conversions


def _cast(code: Code, args: Args, op: Signature) -> Held[VReg]:
    """A conversion that keeps the number where the result can hold it."""
    kind, target, value = op.operands[0], op.result, args[0]
    if isinstance(kind, FloatType):
        return Held(_from_float(code, value, op))
    if isinstance(target, FloatType):
        return Held(_to_float(code, value, op))
    if is_wide(target):
        return Held(widened(code, value))
    if is_wide(kind):
        return Held(code.give(MOVE, lower(code, value)), is_narrow(target))
    # A narrower integer has the lower bits; a wider one is extended by what it was.
    narrower = is_narrow(target) and _width(kind) >= _width(target)
    return Held(word(code, value, loose=narrower), is_narrow(target) and not is_bool(kind))


def _width(kind: object) -> int:
    return getattr(kind, "width_bits", 1)


def _from_float(code: Code, value: Scalar[VReg], op: Signature) -> VReg:
    """Saturating where the result is a word; of 64 bits for what they hold."""
    kind, target = letter(op.operands[0]), letter(op.result)
    if isinstance(op.result, FloatType):
        held = pair(code, value) if kind == "f64" else word(code, value)
        return code.give(f"v_cvt_{target}_{kind}", held)
    if not is_wide(op.result):
        held = pair(code, value) if kind == "f64" else word(code, value)
        return code.give(f"v_cvt_{target}_{kind}", held)
    held = pair(code, value) if kind == "f64" else code.give("v_cvt_f64_f32", word(code, value))
    return wide.whole_i64(code, held)


def _to_float(code: Code, value: Scalar[VReg], op: Signature) -> VReg:
    kind, target = op.operands[0], letter(op.result)
    if not is_wide(kind):
        return code.give(f"v_cvt_{target}_{letter(kind)}", word(code, value))
    held = pair(code, value)
    if target == "f64":
        return (wide.float_i64 if is_signed(kind) else wide.float_u64)(code, held)
    return (wide.float32_i64 if is_signed(kind) else wide.float32_u64)(code, held)


def _bitcast(code: Code, args: Args, op: Signature) -> Held[VReg]:
    if is_wide(op.result):
        return Held(pair(code, args[0]))
    return Held(word(code, args[0], loose=True), is_narrow(op.result))


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ROUNDINGS = {"floor": "floor", "ceil": "ceil", "round": "rndne", "trunc": "trunc"}

RULES: Mapping[str, Rule] = {
    "integer.add": _sum, "integer.sub": _difference, "integer.mul": _product, "integer.neg": _negative,
    "integer.abs": _absolute, "integer.div": _divided(0), "integer.rem": _divided(1),
    "integer.min": _extreme("min"), "integer.max": _extreme("max"),
    **{f"bits.{verb}": _logic(verb) for verb in ("and", "or", "xor")}, "bits.not": _not,
    "bits.shl": _shift(left=True), "bits.shr": _shift(left=False), "bits.popcount": _ones,
    "bits.clz": _zeros("v_ffbh_u32"), "bits.ctz": _zeros("v_ffbl_b32"),
    "bits.rotl": _rotate(left=True), "bits.rotr": _rotate(left=False),
    "floating.add": _floating("add"), "floating.mul": _floating("mul"), "floating.sub": _float_difference,
    "floating.fma": _fma, "floating.div": _quotient, "floating.sqrt": _root,
    "floating.neg": _signed("v_xor_b32", _SIGN), "floating.abs": _signed("v_and_b32", _SIGN - 1),
    "floating.copysign": _copysign, "floating.min": _extreme("min"), "floating.max": _extreme("max"),
    **{f"floating.{verb}": _integral(called) for verb, called in _ROUNDINGS.items()},
    **{f"compare.{verb}": _compare(verb) for verb in _COMPARISONS},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry."""

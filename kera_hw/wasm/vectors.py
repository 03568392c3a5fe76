"""Native operations on lanes as instructions: a scalar of each of n rounds, side by side in 128 bits.

With n rounds at once every type lies in the low n lanes of its own width, whatever stands above: i16 in
i16x8, f32 in f32x4. A bool is a mask of the width of what it was computed from. Where WebAssembly has no
instruction for a type, the scalar one runs lane by lane.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type
from kera_hw.wasm.code import Code, value_type
from kera_hw.wasm.instructions import instructions
from kera_hw.wasm.module import ValueType
from kera_hw.wasm.scalars import RULES as SCALARS
from kera_hw.wasm.scalars import Local, sign

VECTOR_BITS = 128


class LaneSource(Protocol):
    """An operand: pushes its lanes, or where it is ``uniform`` the scalar that all of them are.

    ``mask_bits``: of a bool, how wide a lane of its mask is; 0 where it can be made of any width. ``bits``:
    of a constant.
    """

    @property
    def type(self) -> Type: ...
    @property
    def uniform(self) -> bool: ...
    @property
    def mask_bits(self) -> int: ...
    @property
    def bits(self) -> int | None: ...
    def push(self) -> None: ...
    def push_scalar(self) -> None: ...
    def push_mask(self, width_bits: int) -> None: ...


def bits_of_type(kind: Type) -> int:
    """Of a native number."""
    assert isinstance(kind, IntType | FloatType)
    return kind.width_bits


def shape_of_lanes(kind: Type) -> str:
    """``i16x8`` and the like."""
    width = bits_of_type(kind)
    return f"{'f' if isinstance(kind, FloatType) else 'i'}{width}x{VECTOR_BITS // width}"


def splat(code: Code, kind: Type) -> None:
    """The scalar on the stack in all lanes."""
    code.op(f"{shape_of_lanes(kind)}.splat")


def extract(code: Code, kind: Type, lane: int) -> None:
    """A lane of the vector on the stack as a scalar, extended to its width."""
    shape = shape_of_lanes(kind)
    code.op(f"{shape}.extract_lane" + (f"_{sign(kind)}" if bits_of_type(kind) < 32 else ""), lane)


def integer_shape(width_bits: int) -> str:
    return f"i{width_bits}x{VECTOR_BITS // width_bits}"


def resize(code: Code, before: int, after: int, how: str) -> None:
    """Low lanes of one width as lanes of another: widened by sign ("s") or zeros ("u"), or cut off."""
    while before < after:
        code.op(f"{integer_shape(2 * before)}.extend_low_{integer_shape(before)}_{how}")
        before *= 2
    while before > after:
        if before == 64:
            _even_words(code)
        else:
            _lower_halves(code, before)
        before //= 2


def _even_words(code: Code) -> None:
    copy = code.new_local(ValueType.V128)
    code.set(copy)
    code.get(copy)
    code.get(copy)
    code.op("i8x16.shuffle", *range(4), *range(8, 12), *range(4), *range(8, 12))
    code.release(copy)


def _lower_halves(code: Code, before: int) -> None:
    """Narrowing saturates, so what is above the half goes first."""
    code.op("v128.const", sum(((1 << before // 2) - 1) << k for k in range(0, VECTOR_BITS, before)))
    code.op("v128.and")
    copy = code.new_local(ValueType.V128)
    code.set(copy)
    code.get(copy)
    code.get(copy)
    code.op(f"{integer_shape(before // 2)}.narrow_{integer_shape(before)}_u")
    code.release(copy)


def resize_mask(code: Code, before: int, after: int) -> None:
    """All ones or none stay so."""
    while before < after:
        code.op(f"{integer_shape(2 * before)}.extend_low_{integer_shape(before)}_s")
        before *= 2
    while before > after:
        if before == 64:
            _even_words(code)
        else:
            copy = code.new_local(ValueType.V128)
            code.set(copy)
            code.get(copy)
            code.get(copy)
            code.op(f"{integer_shape(before // 2)}.narrow_{integer_shape(before)}_s")
            code.release(copy)
        before //= 2


@dataclass(frozen=True, slots=True)
class Lanes:
    """What a rule is given: how many lanes there are, and the operation."""

    code: Code
    count: int
    op: Signature
    args: Sequence[LaneSource]

    @property
    def shape(self) -> str:
        return shape_of_lanes(self.op.operands[0])


Rule = Callable[[Lanes], int | None]
"""Pushes the result; the width of its mask, 0 for none; None, and nothing pushed, where it has no form."""


def _direct(at: Lanes, name: str) -> int | None:
    """One instruction on all operands, where there is one of that name."""
    if name not in instructions():
        return None
    for arg in at.args:
        arg.push()
    at.code.op(name)
    return 0


def _named(verb: str) -> Rule:
    return lambda at: _direct(at, f"{at.shape}.{verb}")


def _by_sign(verb: str) -> Rule:
    return lambda at: _direct(at, f"{at.shape}.{verb}_{sign(at.op.result)}")


def _bitwise(verb: str) -> Rule:
    def rule(at: Lanes) -> int | None:
        width = 0
        if isinstance(at.op.result, BoolType):
            width = max(arg.mask_bits for arg in at.args)
            for arg in at.args:
                arg.push_mask(width)
        else:
            for arg in at.args:
                arg.push()
        at.code.op(f"v128.{verb}")
        return width

    return rule


def _shift(verb: str) -> Rule:
    """By the same amount in all lanes: another amount in each has no instruction."""

    def rule(at: Lanes) -> int | None:
        value, amount = at.args
        if not amount.uniform:
            return None
        value.push()
        amount.push_scalar()
        if amount.type == IntType(64, False):
            at.code.op("i32.wrap_i64")
        at.code.op(f"{at.shape}.{verb}" + ("" if verb == "shl" else f"_{sign(at.op.result)}"))
        return 0

    return rule


def _compare(verb: str) -> Rule:
    def rule(at: Lanes) -> int | None:
        kind = at.op.operands[0]
        width = bits_of_type(kind)
        flip = isinstance(kind, IntType) and not kind.signed and width == 64 and verb not in ("eq", "ne")
        for arg in at.args:
            arg.push()
            if flip:  # there are only signed ones: with the top bit turned over they order words
                at.code.op("v128.const", (1 << 63) | (1 << 127))
                at.code.op("v128.xor")
        signless = verb in ("eq", "ne") or isinstance(kind, FloatType)
        at.code.op(f"{at.shape}.{verb}" + ("" if signless else f"_{'s' if flip else sign(kind)}"))
        return width

    return rule


def _select(at: Lanes) -> int | None:
    condition, then, otherwise = at.args
    if isinstance(at.op.result, BoolType):
        width = max(arg.mask_bits for arg in at.args)
        then.push_mask(width)
        otherwise.push_mask(width)
    else:
        width = 0
        lane_bits = bits_of_type(at.op.result)
        if otherwise.bits == 0:  # what the mask leaves, and the mask itself of all ones
            condition.push_mask(lane_bits)
            if then.bits != (1 << lane_bits) - 1:
                then.push()
                at.code.op("v128.and")
            return 0
        then.push()
        otherwise.push()
    condition.push_mask(width or bits_of_type(at.op.result))
    at.code.op("v128.bitselect")
    return width


def _cast(at: Lanes) -> int | None:
    (arg,), code = at.args, at.code
    source, target = at.op.operands[0], at.op.result
    if isinstance(source, BoolType):
        width = bits_of_type(target)
        arg.push_mask(width)
        code.op(f"{integer_shape(width)}.neg" if width != 64 else "i64x2.neg")
        return 0
    if isinstance(source, IntType) and isinstance(target, IntType):
        arg.push()
        resize(code, source.width_bits, target.width_bits, sign(source))
        return 0
    name = _conversion(source, target)
    if name is None:
        return None
    arg.push()
    code.op(name)
    return 0


def _conversion(source: Type, target: Type) -> str | None:
    """The instruction that converts low lanes of one type to another."""
    before, after = bits_of_type(source), bits_of_type(target)
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        return "f64x2.promote_low_f32x4" if after == 64 else "f32x4.demote_f64x2_zero"
    if isinstance(target, FloatType):
        if before != 32:
            return None
        return f"{'f32x4.convert' if after == 32 else 'f64x2.convert_low'}_i32x4_{sign(source)}"
    if after != 32:
        return None
    how = sign(target)
    return f"i32x4.trunc_sat_f32x4_{how}" if before == 32 else f"i32x4.trunc_sat_f64x2_{how}_zero"


def _bitcast(at: Lanes) -> int | None:
    at.args[0].push()
    return 0


def _chosen_extreme(verb: str) -> Rule:
    """Of words of 64 bits, which have comparisons alone."""
    direct = _by_sign(verb)
    compare = _compare("lt" if verb == "min" else "gt")

    def rule(at: Lanes) -> int | None:
        if direct(at) is not None:
            return 0
        for arg in at.args:
            arg.push()
        compare(at)
        at.code.op("v128.bitselect")
        return 0

    return rule


def _product(at: Lanes) -> int | None:
    """Bytes have no product: they are multiplied as 16-bit lanes and cut off."""
    if bits_of_type(at.op.result) != 8:
        return _named("mul")(at)
    code = at.code
    for half in ("low", "high"):
        for arg in at.args:
            arg.push()
            code.op(f"i16x8.extend_{half}_i8x16_u")
        code.op("i16x8.mul")
        code.op("v128.const", sum(0xFF << k for k in range(0, VECTOR_BITS, 16)))
        code.op("v128.and")
    code.op("i8x16.narrow_i16x8_u")
    return 0


def _inverse(at: Lanes) -> int | None:
    (arg,) = at.args
    width = 0
    if isinstance(at.op.result, BoolType):
        width = arg.mask_bits
        arg.push_mask(width)
    else:
        arg.push()
    at.code.op("v128.not")
    return width


_FLOATING = ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor", "ceil", "trunc", "min", "max")

RULES: Mapping[str, Rule] = {
    **{f"integer.{verb}": _named(verb) for verb in ("add", "sub", "neg", "abs")},
    "integer.mul": _product,
    "integer.min": _chosen_extreme("min"), "integer.max": _chosen_extreme("max"),
    **{f"bits.{verb}": _bitwise(verb) for verb in ("and", "or", "xor")},
    "bits.not": _inverse, "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    **{f"floating.{verb}": _named(verb) for verb in _FLOATING},
    "floating.round": _named("nearest"),
    **{f"compare.{verb}": _compare(verb) for verb in ("eq", "ne", "lt", "le", "gt", "ge")},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry; for all others, and where a rule has no form, lane by lane."""


def write(at: Lanes) -> int:
    """Pushes an operation's lanes; the width of the mask that they are, 0 for none."""
    rule = RULES.get(at.op.opcode)
    found = rule(at) if rule is not None else None
    return _lane_by_lane(at) if found is None else found


def _lane_by_lane(at: Lanes) -> int:
    """The scalar instructions for one lane after another."""
    code, result = at.code, at.op.result
    mask_bits = bits_of_type(at.op.operands[0]) if isinstance(result, BoolType) else 0
    kind = IntType(mask_bits, True) if mask_bits else result
    vectors = [None if arg.uniform else code.new_local(ValueType.V128) for arg in at.args]
    for arg, local in zip(at.args, vectors):
        if local is not None:
            if isinstance(arg.type, BoolType):
                arg.push_mask(VECTOR_BITS // at.count)
            else:
                arg.push()
            code.set(local)
    scalars = [code.new_local(value_type(arg.type)) for arg in at.args]
    for arg, local in zip(at.args, scalars):
        if arg.uniform:
            arg.push_scalar()
            code.set(local)
    whole = code.new_local(ValueType.V128)
    code.op("v128.const", 0)
    code.set(whole)
    for lane in range(at.count):
        code.get(whole)
        for arg, vector, scalar in zip(at.args, vectors, scalars):
            if vector is None:
                continue
            code.get(vector)
            if isinstance(arg.type, BoolType):
                _truth(code, VECTOR_BITS // at.count, lane)
            else:
                extract(code, arg.type, lane)
            code.set(scalar)
        SCALARS[at.op.opcode](code, [Local(code, s, a.type) for a, s in zip(at.args, scalars)], at.op)
        if mask_bits:
            _as_mask(code, mask_bits)
        code.op(f"{shape_of_lanes(kind)}.replace_lane", lane)
        code.set(whole)
    code.get(whole)
    for local in (*(v for v in vectors if v is not None), *scalars, whole):
        code.release(local)
    return mask_bits


def _as_mask(code: Code, width_bits: int) -> None:
    """0 or 1 on the stack as no bits or all bits of a lane."""
    if width_bits == 64:
        code.op("i64.extend_i32_u")
    where = "i64" if width_bits == 64 else "i32"
    code.op(f"{where}.const", (1 << int(where[1:])) - 1)
    code.op(f"{where}.mul")


def _truth(code: Code, width_bits: int, lane: int) -> None:
    """A lane of the mask on the stack as 0 or 1."""
    extract(code, IntType(width_bits, True), lane)
    if width_bits == 64:
        code.op("i32.wrap_i64")
    code.number(1)
    code.op("i32.and")

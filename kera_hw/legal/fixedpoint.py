"""Fixed point as integers: arithmetic on raw numbers, conversions between formats by shifts."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal.integers import to_integer
from kera_hw.legal.native import unsigned
from kera_hw.legal.values import Call, Value, raw
from kera_hw.legal.writer import Rule, Writer
from kera_hw.types import FixType, IntType, Type

_AMOUNT = unsigned(8)


def fraction_bits(kind: Type) -> int:
    return kind.fraction_bits if isinstance(kind, FixType) else 0


def as_raw(to: Writer, value: Value) -> Value:
    """The raw integer of a fixed-point number; anything else as it is."""
    return to.retyped(value, raw(value.type)) if isinstance(value.type, FixType) else value


def on_raw(to: Writer, call: Call) -> Sequence[Value]:
    """The operation of that name on the raw integers."""
    found = to.outputs(f"integer.{call.verb}", [as_raw(to, value) for value in call.args], {})
    return [to.retyped(value, kind) for value, kind in zip(found, call.types)]


def product(to: Writer, call: Call) -> Sequence[Value]:
    """Both raw integers in the product's type, where nothing wraps."""
    kind = raw(call.type)
    a, b = (to.op("convert.cast", as_raw(to, value), type=kind) for value in call.args)
    return (to.retyped(to.op("integer.mul", a, b), call.type),)


def sign(to: Writer, call: Call) -> Sequence[Value]:
    """-1, 0 or 1 as far as the format has them."""
    (a,) = call.args
    kind = raw(a.type)
    one = 1 << fraction_bits(a.type)
    x = to.settled(a)
    found = to.emit.choose(to.emit.is_greater(x, 0), min(one, kind.max), x)
    if kind.signed:
        found = to.emit.choose(to.emit.is_less(x, 0), max(-one, kind.min), found)
    return (Value(call.type, found, call.span, True),)


# ---------------------------------------------------------------- between formats


def _shifted(to: Writer, value: Value, shift_bits: int) -> Value:
    """An integer times 2^shift in its own type: modulo 2^W, or floored."""
    if shift_bits == 0:
        return value
    verb, amount = ("shl", shift_bits) if shift_bits > 0 else ("shr", -shift_bits)
    return to.op(f"bits.{verb}", value, to.number(_AMOUNT, amount))


def rescaled(to: Writer, value: Value, target: Type, call: Call) -> Value:
    """Between integers, fixed-point formats and bools: floored, then modulo 2^W of the target."""
    shift_bits = fraction_bits(target) - fraction_bits(value.type)
    value = as_raw(to, value)
    if shift_bits <= 0:
        return to_integer(to, _shifted(to, value, shift_bits), target, call.span)
    kind = raw(target)
    return to.retyped(_shifted(to, to.op("convert.cast", value, type=kind), shift_bits), target)


def round_to(to: Writer, call: Call) -> Sequence[Value]:
    """Rounded by the mode where bits are dropped, then held within the format where it saturates."""
    value, target = as_raw(to, call.args[0]), raw(call.type)
    dropped_bits = fraction_bits(call.args[0].type) - fraction_bits(call.type)
    if dropped_bits > 0:
        value = _rounded(to, value, dropped_bits, call.attrs["mode"])
        if call.attrs["overflow"] == "saturate":
            value = _held(to, value, target.min, target.max)
        return (to_integer(to, value, call.type, call.span),)
    if call.attrs["overflow"] != "saturate":
        return (rescaled(to, call.args[0], call.type, call),)
    return (_saturating_shift(to, value, -dropped_bits, call),)


def _rounded(to: Writer, value: Value, dropped_bits: int, mode: str) -> Value:
    """The integer nearest to value / 2^dropped_bits, in a type that holds it."""
    kind = raw(value.type)
    if kind.max == 0:  # half of an i1 may become 1, which an i1 has not
        kind = IntType(2, True)
        value = to.op("convert.cast", value, type=kind)
    floor = _shifted(to, value, -dropped_bits)
    if mode == "floor" or (mode == "trunc" and not kind.signed):
        return floor
    word = unsigned(kind.width_bits)
    pattern = value if value.type == word else to.op("convert.bitcast", value, type=word)
    rest = to.op("bits.and", pattern, to.number(word, (1 << dropped_bits) - 1))
    half = to.number(word, 1 << (dropped_bits - 1))
    match mode:
        case "trunc":
            inexact = to.op("compare.ne", rest, to.number(word, 0))
            up = to.op("bits.and", inexact, to.op("compare.lt", value, to.number(kind, 0)))
        case "half_up":
            up = to.op("compare.ge", rest, half)
        case _:
            # The rest and the floor's last bit pass a half together: above it, or at it from an odd floor.
            odd = to.op("bits.test", floor, index=0)
            above, at = to.op("compare.gt", rest, half), to.op("compare.eq", rest, half)
            up = to.op("bits.or", above, to.op("bits.and", at, odd))
    return to.op("integer.add", floor, to.op("convert.cast", up, type=kind))


def _held(to: Writer, value: Value, low: int, high: int) -> Value:
    """Held within bounds, of which those that the type has no number beyond are left out."""
    kind = raw(value.type)
    if high < kind.max:
        value = to.op("integer.min", value, to.number(kind, high))
    if low > kind.min:
        value = to.op("integer.max", value, to.number(kind, low))
    return value


def _saturating_shift(to: Writer, value: Value, shift_bits: int, call: Call) -> Value:
    """To the left, with the format's ends beyond what it holds."""
    kind, target = raw(value.type), raw(call.type)
    high, low = target.max >> shift_bits, -(-target.min >> shift_bits)
    x = to.settled(value)
    cut = to.op("convert.cast", value, type=target)
    found = to.settled(_shifted(to, cut, shift_bits))
    if high < kind.max:
        found = to.emit.choose(to.emit.is_greater(x, high), target.max, found)
    if low > kind.min:
        found = to.emit.choose(to.emit.is_less(x, low), target.min, found)
    return Value(call.type, found, call.span, True)


RULES: dict[str, Rule] = {
    **{
        f"fixed.{verb}": on_raw for verb in (
            "add", "sub", "neg", "abs", "min", "max", "saturating_add", "saturating_sub", "saturating_mul",
        )
    },
    "fixed.mul": product,
    "fixed.sign": sign,
    "convert.round_to": round_to,
}

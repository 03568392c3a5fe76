"""Rotations, counts, carry-less products and fields where a native form is shorter than the expansion."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal.integers import to_integer
from kera_hw.legal.native import unsigned
from kera_hw.legal.values import Call, Value, container, is_odd, raw
from kera_hw.legal.writer import Rule, Writer
from kera_hw.ops.intervals import type_interval


def rotate(to: Writer, call: Call) -> Sequence[Value]:
    """Left by n and right by -n, both modulo W: amounts count modulo a power of two in any wider type."""
    emit, (a, amount) = to.emit, call.args
    kind = raw(a.type)
    if is_odd(kind):
        return to.expanded(call)
    word = unsigned(kind.width_bits)
    x, by = emit.as_type(to.loose(a), word), emit.cast(to.settled(amount), word)
    if emit.is_total(call.opcode, (word, word), word):
        turned = emit.op(call.opcode, x, by)
    else:
        there, back = (emit.both(n, word.width_bits - 1) for n in (by, emit.neg(by)))
        up, down = (there, back) if call.verb == "rotl" else (back, there)
        turned = emit.either(emit.shl(x, up), emit.shr(x, down))
    return (to.integer(call.type, emit.as_type(turned, kind), call, True),)


def count(to: Writer, call: Call) -> Sequence[Value]:
    """popcount, clz and ctz by the machine's in 32 or 64 bits, where it has them.

    Zero-extended, a number has more leading zeros; a bit above its width holds the trailing ones at W.
    """
    emit, (a,) = to.emit, call.args
    kind = raw(a.type)
    word = unsigned(32 if kind.width_bits <= 32 else 64)
    if not emit.is_total(call.opcode, (word,), call.type):
        return to.expanded(call)
    pattern = to.op("convert.bitcast", a, type=unsigned(kind.width_bits))
    x = to.settled(to.op("convert.cast", pattern, type=word))
    spare_bits = word.width_bits - kind.width_bits
    if call.verb == "ctz" and spare_bits:
        x = emit.either(x, 1 << kind.width_bits)
    found = emit.op(call.opcode, x)
    if call.verb == "clz" and spare_bits:
        found = emit.sub(found, spare_bits)
    return (Value(call.type, found, call.span, True),)


def clmul(to: Writer, call: Call) -> Sequence[Value]:
    """In 64 bits where the machine has that: they hold the product of narrower operands whole."""
    word = unsigned(64)
    if not to.emit.is_total(call.opcode, (word, word), word):
        return to.expanded(call)
    a, b = (to.settled(to.op("convert.cast", x, type=word)) for x in call.args)
    product = Value(word, to.emit.op(call.opcode, a, b), call.span, True)
    return (to_integer(to, product, call.type, call.span),)


def extract(to: Writer, call: Call) -> Sequence[Value]:
    """Shifted down; what stood above the width is cut off with the rest."""
    emit, (a,) = to.emit, call.args
    kind, high, low = raw(a.type), call.attrs["high"], call.attrs["low"]
    native = container(unsigned(kind.width_bits))
    x = emit.as_type(to.loose(a), native)
    whole = high == kind.width_bits - 1 and a.settled and not kind.signed
    known = type_interval(call.type) if whole else None
    field = Value(native, emit.shr(x, low) if low else x, known, True)
    return (to_integer(to, field, call.type, call.span),)


def test(to: Writer, call: Call) -> Sequence[Value]:
    masked = to.emit.both(to.loose(call.args[0]), 1 << call.attrs["index"])
    return (Value(call.type, to.emit.is_other(masked, 0), call.span, True),)


RULES: dict[str, Rule] = {
    **{f"bits.{verb}": rotate for verb in ("rotl", "rotr")},
    **{f"bits.{verb}": count for verb in ("popcount", "clz", "ctz")},
    "bits.clmul": clmul,
    "bits.extract": extract,
    "bits.test": test,
}

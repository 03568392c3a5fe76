"""Scalar operations other than sums and products, as words."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from kera_hw.graph.node import Node
from kera_hw.ops.intervals import raw_interval
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.techmap import carryless, counting, division, truth, words
from kera_hw.rtl.techmap.net import Net, known
from kera_hw.rtl.techmap.words import Word, trimmed
from kera_hw.schedule.fpga.bits import Bits, concat, const_bits, slice_bits
from kera_hw.types import BoolType, FixType, IntType, Type

Rule = Callable[[Net, Node, list[Word], int], Word]
"""Net, node, operands, and how many low bits are wanted."""


def is_signed(kind: Type) -> bool:
    """Whether raw values of the type are two's complement."""
    return isinstance(kind, (IntType, FixType)) and kind.signed


def _bit(bits: Bits) -> Word:
    return trimmed(bits, False)


def _gate(table: int) -> Rule:
    def rule(net: Net, _node: Node, args: list[Word], wanted: int) -> Word:
        full = words.joint_width(args)
        width = min(full, wanted)
        signed = any(word.signed for word in args) and width == full
        return trimmed(net.logic(table, [word.extend(width) for word in args], width), signed)

    return rule


def _not(net: Net, node: Node, args: list[Word], wanted: int) -> Word:
    kind = node.types[0]
    width = min(wanted, width_of(kind))
    if is_signed(kind):
        width = min(width, args[0].width + (not args[0].signed))
    return trimmed(net.invert(args[0].extend(width)), is_signed(kind))


def _select(net: Net, _node: Node, args: list[Word], wanted: int) -> Word:
    return limit(words.choose(net, args[0].bit(0), limit(args[1], wanted), limit(args[2], wanted)), wanted)


def limit(word: Word, wanted: int) -> Word:
    """The word without bits nobody looks at."""
    return Word(slice_bits(word.bits, 0, wanted), False) if word.width > wanted else word


def _extreme(want_low: bool) -> Rule:
    def rule(net: Net, _node: Node, args: list[Word], _wanted: int) -> Word:
        a, b = args
        if words.is_cheap_less(b, a) and not words.is_cheap_less(a, b):
            a, b = b, a
        first = words.less(net, a, b)
        return words.choose(net, first, a, b) if want_low else words.choose(net, first, b, a)

    return rule


def _less(net: Net, _node: Node, args: list[Word], _wanted: int) -> Word:
    return _bit(words.less(net, args[0], args[1]))


def _swapped(net: Net, _node: Node, args: list[Word], _wanted: int) -> Word:
    return _bit(words.less(net, args[1], args[0]))


def _at_most(net: Net, _node: Node, args: list[Word], _wanted: int) -> Word:
    return _bit(net.invert(words.less(net, args[1], args[0])))


def _at_least(net: Net, _node: Node, args: list[Word], _wanted: int) -> Word:
    return _bit(net.invert(words.less(net, args[0], args[1])))


def _sign(net: Net, _node: Node, args: list[Word], _wanted: int) -> Word:
    return trimmed(concat((net.any(args[0].bits), args[0].sign)), args[0].signed)


def _abs(net: Net, node: Node, args: list[Word], wanted: int) -> Word:
    word = args[0]
    if not word.signed:
        return word
    width = min(wanted, max(-word.range[0], word.range[1]).bit_length(), width_of(node.types[0]))
    return Word(words.negate_if(net, word, word.sign, width), False)


def saturate(net: Net, exact: Word, kind: Type) -> Word:
    """The nearest value of the type: the top bits of the exact result say whether it fits."""
    low, high = raw_interval(kind)
    own_low, own_high = exact.range
    if low <= own_low and own_high <= high:
        return exact
    width = width_of(kind)
    if is_signed(kind):
        wide = max(exact.width + (not exact.signed), width + 1)
        bits = exact.extend(wide)
        sign = slice_bits(bits, wide - 1, 1)
        tops = [slice_bits(bits, i, 1) for i in range(width - 1, wide - 1)]
        over = net.reduce("or", [net.differ(top, sign) for top in tops])
        body = net.choose(over, words.spread(net.invert(sign), width - 1), slice_bits(bits, 0, width - 1))
        return trimmed(concat((body, sign)), True)
    over = net.any(slice_bits(exact.bits, width, exact.width - width - exact.signed))
    body = net.either(exact.extend(width), over)
    return trimmed(net.both(body, net.invert(exact.sign)), False)


def _saturating(method: Callable[[Net, Word, Word], Word]) -> Rule:
    def rule(net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
        return saturate(net, method(net, args[0], args[1]), node.types[0])

    return rule


def _divide(want_remainder: bool) -> Rule:
    def rule(net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
        word = division.divide(net, args[0], args[1], width_of(node.types[0]), want_remainder)
        return word if want_remainder or not word.signed else Word(word.bits, is_signed(node.types[0]))

    return rule


def _shift(left: bool) -> Rule:
    def rule(net: Net, node: Node, args: list[Word], wanted: int) -> Word:
        word, amount = args
        width, signed = width_of(node.types[0]), is_signed(node.types[0])
        fixed = amount.value
        if fixed is not None and left:
            if fixed >= width:
                return words.constant(0)
            return limit(words.shifted(word, fixed), min(width, wanted))
        if fixed is not None:
            if fixed >= word.width:
                return trimmed(word.sign, word.signed)
            return trimmed(slice_bits(word.bits, fixed, word.width - fixed), word.signed)
        if not left:
            span = max(1, word.width)
            return trimmed(counting.shift(net, word, amount, span, False), word.signed)
        span = min(width, wanted)
        return trimmed(counting.shift(net, word, amount, span, True), signed and span == width)

    return rule


def _rotate(left: bool) -> Rule:
    def rule(net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
        width = width_of(node.types[0])
        amount = args[1]
        if amount.range[1] >= width:
            if width & (width - 1) == 0:
                amount = trimmed(slice_bits(amount.bits, 0, width.bit_length() - 1), False)
            else:
                amount = division.divide(net, amount, words.constant(width), amount.width, True)
        bits = counting.rotate(net, args[0], amount.bits, width, left)
        return trimmed(bits, is_signed(node.types[0]))

    return rule


def _full(node: Node, word: Word) -> Bits:
    return word.extend(width_of(node.inputs[0].type))


def _reverse_bits(net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
    return trimmed(concat(reversed(net.bits_of(_full(node, args[0])))), is_signed(node.types[0]))


def _reverse_bytes(_net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
    bits, width = _full(node, args[0]), width_of(node.types[0])
    parts = [slice_bits(bits, low, 8) for low in range(0, width, 8)]
    return trimmed(concat(reversed(parts)), is_signed(node.types[0]))


def _clmul(net: Net, node: Node, args: list[Word], wanted: int) -> Word:
    return trimmed(carryless.multiply(net, args[0], args[1], min(wanted, width_of(node.types[0]))), False)


def _popcount(net: Net, node: Node, args: list[Word], wanted: int) -> Word:
    return counting.popcount(net, _full(node, args[0]), wanted)


def _clz(net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
    return counting.leading_zeros(net, _full(node, args[0]))


def _ctz(net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
    return counting.trailing_zeros(net, _full(node, args[0]))


def _extract(_net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
    low, high = cast(int, node.attr("low")), cast(int, node.attr("high"))
    return trimmed(slice_bits(args[0].extend(high + 1), low, high + 1 - low), False)


def _test(_net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
    return _bit(args[0].bit(cast(int, node.attr("index"))))


def _cat(_net: Net, node: Node, args: list[Word], _wanted: int) -> Word:
    parts = [word.extend(width_of(ref.type)) for word, ref in zip(args, node.inputs)]
    return trimmed(concat(reversed(parts)), False)


def _cast(_net: Net, node: Node, args: list[Word], wanted: int) -> Word:
    """Truncation or extension: the same integer where it fits."""
    word, target = args[0], node.types[0]
    low, high = raw_interval(target)
    if low <= word.range[0] and word.range[1] <= high:
        return word
    width = width_of(target)
    if isinstance(target, BoolType):
        width = 1
    return trimmed(word.extend(width), is_signed(target)) if wanted >= width else limit(word, wanted)


def add_carry(net: Net, node: Node, args: list[Word]) -> tuple[Word, Word]:
    """Sum of the bit patterns with carry in, and the carry out."""
    width = width_of(node.types[0])
    a, b = (concat((word.extend(width), const_bits(0, 1))) for word in args[:2])
    total = net.add(a, b, width + 1, args[2].bit(0))
    return trimmed(slice_bits(total, 0, width), is_signed(node.types[0])), _bit(slice_bits(total, width, 1))


def select_tree(net: Net, conditions: Sequence[Bits], choices: Sequence[Word], wanted: int) -> Word:
    """``choices`` indexed by condition bits, lowest first."""
    limited = [limit(choice, wanted) for choice in choices]
    width = words.joint_width(limited)
    signed = any(choice.signed for choice in limited)
    bits = net.mux(concat(conditions), [choice.extend(width) for choice in limited], width)
    return limit(trimmed(bits, signed), wanted)


def is_known(word: Word) -> bool:
    """Whether the word is a constant."""
    return known(word.bits) is not None


RULES: dict[str, Rule] = {
    "bits.and": _gate(truth.AND),
    "bits.or": _gate(truth.OR),
    "bits.xor": _gate(truth.XOR),
    "bits.not": _not,
    "bits.shl": _shift(True),
    "bits.shr": _shift(False),
    "bits.rotl": _rotate(True),
    "bits.rotr": _rotate(False),
    "bits.reverse_bits": _reverse_bits,
    "bits.reverse_bytes": _reverse_bytes,
    "bits.clmul": _clmul,
    "bits.popcount": _popcount,
    "bits.clz": _clz,
    "bits.ctz": _ctz,
    "bits.extract": _extract,
    "bits.test": _test,
    "bits.cat": _cat,
    "compare.lt": _less,
    "compare.gt": _swapped,
    "compare.le": _at_most,
    "compare.ge": _at_least,
    "control.select": _select,
    "convert.cast": _cast,
    "convert.bitcast": _cast,
    "integer.abs": _abs,
    "integer.sign": _sign,
    "integer.min": _extreme(True),
    "integer.max": _extreme(False),
    "integer.div": _divide(False),
    "integer.rem": _divide(True),
    "integer.saturating_add": _saturating(words.add),
    "integer.saturating_sub": _saturating(words.subtract),
}

"""Forward value ranges of scalar integer operations: the interval every result is proved to lie in."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.types import BoolType, FixType, IntType, Type

Range = tuple[int, int]


def type_range(kind: Type) -> Range:
    """All values of a type, as raw integers (bool: 0 and 1; a float: its bits)."""
    if isinstance(kind, BoolType):
        return (0, 1)
    if isinstance(kind, FixType):
        kind = kind.raw
    if isinstance(kind, IntType):
        return (kind.min, kind.max)
    return (0, (1 << getattr(kind, "width_bits", 1)) - 1)


def fit(found: Range, kind: Type) -> Range:
    """The range if no value wraps in the type, the type's own range otherwise."""
    low, high = type_range(kind)
    return found if low <= found[0] and found[1] <= high else (low, high)


def _mul(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return (min(corners), max(corners))


def _shl(a: Range, b: Range) -> Range:
    if b[1] > 128:
        return (-(1 << 200), 1 << 200)
    return _mul(a, (1 << b[0], 1 << b[1]))


def _shr(a: Range, b: Range) -> Range:
    near, far = min(b[0], 64), min(b[1], 64)
    return (min(a[0] >> near, a[0] >> far), max(a[1] >> near, a[1] >> far))


def _and(a: Range, b: Range) -> Range:
    if a[0] >= 0 or b[0] >= 0:
        return (0, min(r[1] for r in (a, b) if r[0] >= 0))
    return (-(1 << 200), 1 << 200)


def _or(a: Range, b: Range) -> Range:
    if a[0] < 0 or b[0] < 0:
        return (-(1 << 200), 1 << 200)
    return (max(a[0], b[0]), (1 << max(a[1].bit_length(), b[1].bit_length())) - 1)


def _xor(a: Range, b: Range) -> Range:
    return (0, _or(a, b)[1]) if a[0] >= 0 and b[0] >= 0 else (-(1 << 200), 1 << 200)


def _abs(a: Range) -> Range:
    low = 0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return (low, max(abs(a[0]), abs(a[1])))


def _rem(a: Range, b: Range) -> Range:
    if b[0] > 0 and a[0] >= 0:
        return (0, min(a[1], b[1] - 1))
    return (min(a[0], 0), max(a[1], 0))


def _div(a: Range, b: Range) -> Range:
    if b[0] > 0 and a[0] >= 0:
        return (a[0] // b[1], a[1] // b[0])
    return (-(1 << 200), 1 << 200)


def _add(a: Range, b: Range) -> Range:
    return (a[0] + b[0], a[1] + b[1])


def _sub(a: Range, b: Range) -> Range:
    return (a[0] - b[1], a[1] - b[0])


def _neg(a: Range) -> Range:
    return (-a[1], -a[0])


def _sign(a: Range) -> Range:
    return (-1 if a[0] < 0 else 0, 1)


def _min(a: Range, b: Range) -> Range:
    return (min(a[0], b[0]), min(a[1], b[1]))


def _max(a: Range, b: Range) -> Range:
    return (max(a[0], b[0]), max(a[1], b[1]))


def _same(a: Range, *_others: Range) -> Range:
    return a


def _select(_c: Range, a: Range, b: Range) -> Range:
    return (min(a[0], b[0]), max(a[1], b[1]))


_RULES: dict[str, Callable[..., Range]] = {
    "integer.add": _add,
    "integer.sub": _sub,
    "integer.mul": _mul,
    "integer.mul_wide": _mul,
    "integer.neg": _neg,
    "integer.abs": _abs,
    "integer.div": _div,
    "integer.rem": _rem,
    "integer.sign": _sign,
    "integer.min": _min,
    "integer.max": _max,
    "bits.and": _and,
    "bits.or": _or,
    "bits.xor": _xor,
    "bits.shl": _shl,
    "bits.shr": _shr,
    "convert.cast": _same,
    "convert.bitcast": _same,
    "control.select": _select,
    "tensor.index": _same,  # a scalar out of a table of constants
}


def result_range(opcode: str, kind: Type, operands: Sequence[Range], width_bits: int) -> Range:
    """Range of a single-result operation's value; ``width_bits`` is the first operand's width."""
    if opcode in ("bits.popcount", "bits.clz", "bits.ctz"):
        return (0, width_bits)
    rule = _RULES.get(opcode)
    return type_range(kind) if rule is None else fit(rule(*operands), kind)

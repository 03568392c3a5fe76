"""Division of integers in little space, a digit a cycle, where an item comes only now and then.

One register holds what is left of the dividend above the quotient's digits so far: a digit enters below as a
bit of the dividend leaves above. The rows are those of the array that mapping makes (``techmap.division``),
non-restoring, one carry chain of the divisor's width; one addition behind the loop makes the last remainder
positive. Quotient and remainder of the same operands are one loop.

Ercegovac and Lang, "Digital Arithmetic", 2004, chapter 5.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from kera_hw.graph.node import Ref, Region
from kera_hw.graph.store import Store
from kera_hw.ops.intervals import Interval
from kera_hw.ops.spec import AttrValue
from kera_hw.rtl.lower.budget import DIVISIONS, Meter, weight
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.rtl.lower.floats.wires import Wires, uint
from kera_hw.rtl.lower.iterating import cycles_of, iterate
from kera_hw.types import IntType

_ROWS_A_SITE = 4
"""An array has a LUT for each bit of the divisor in each row, a loop about so many for each bit of either."""


@dataclass(frozen=True, slots=True)
class _Divided:
    """What a loop leaves: the digits, the last partial remainder, whether that is positive, and the signs."""

    digits: Ref
    rest: Ref
    positive: Ref
    divisor: Ref
    is_zero: Ref
    """Whether the divisor is 0."""
    above: Ref
    """Whether the dividend is negative."""
    differ: Ref
    """Whether the operands' signs are not the same."""


class PatientBuilder(Builder):
    """Divides in a loop where the initiation interval leaves it the time and an array would be larger."""

    def __init__(
        self, store: Store, initiation_interval: int = 1, carry_logic: bool = False,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(store, initiation_interval, carry_logic, meter)
        self._loops: dict[tuple[Ref, Ref], _Divided] = {}

    def _make(self, opcode: str, inputs: tuple[Ref, ...], attrs: dict[str, AttrValue]) -> Ref:
        if opcode not in DIVISIONS or not self._has_time(*inputs):
            return super()._make(opcode, inputs, attrs)
        found = self._loops.get((inputs[0], inputs[1]))
        if found is None:
            found = self._loops[inputs[0], inputs[1]] = _divide(self, *inputs)
        result = _quotient if opcode == "integer.div" else _remainder
        made = result(self, cast(IntType, inputs[0].type), found)
        self.assume(made, self._interval(opcode, inputs, made.type, attrs))
        return made

    def _has_time(self, a: Ref, b: Ref) -> bool:
        rows, width = _magnitude_bits(self.range(a)), _magnitude_bits(self.range(b))
        pays = self.value(b) is None and rows * width >= _ROWS_A_SITE * (rows + width)
        return pays and self.initiation_interval >= cycles_of(rows)


def patience(region: Region) -> int:
    """The interval from which every division of a region, made for an item a cycle, would be a loop."""
    rows = max((weight(node) for node in region.nodes() if node.opcode in DIVISIONS), default=1)
    return cycles_of(rows) if rows > 1 else 1


def _magnitude_bits(span: Interval) -> int:
    return max(-span[0], span[1]).bit_length()


def _divide(builder: Builder, a: Ref, b: Ref) -> _Divided:
    wires = Wires(builder)
    rows, width = _magnitude_bits(builder.range(a)), _magnitude_bits(builder.range(b))
    if builder.range(b)[0] <= 0 <= builder.range(b)[1]:
        width = max(width, rows)  # what is left is the dividend, where the divisor is 0
    divisor, above, below = _magnitude(wires, b, width), _sign(wires, a), _sign(wires, b)
    kept = [divisor, wires.none(divisor), above, wires.differ(above, below)]
    held = [ref for ref in kept if builder.value(ref) is None]  # the divisor is the first
    rest, digits, positive, *found = iterate(
        builder, [wires.const(0, width), _magnitude(wires, a, rows), wires.flag(True), *held], rows, _row
    )
    late = dict(zip(held, found))
    return _Divided(digits, rest, positive, *(late.get(ref, ref) for ref in kept))


def _magnitude(wires: Wires, value: Ref, width: int) -> Ref:
    return wires.resize(wires.cast(wires.builder.op("integer.abs", value), uint(width_of(value.type))), width)


def _sign(wires: Wires, value: Ref) -> Ref:
    return wires.builder.op("compare.lt", value, wires.builder.const(value.type, 0))


def _row(builder: Builder, state: list[Ref]) -> list[Ref]:
    """Another digit. A divisor of 0 takes nothing away: all digits are 1, the dividend is what is left."""
    wires = Wires(builder)
    rest, digits, positive, divisor, *kept = state
    width, rows = wires.width(rest), wires.width(digits)
    twice = wires.cat(rest, wires.bit(digits, rows - 1))
    operand = wires.flip_if(positive, wires.cat(wires.const(1, 1), divisor))
    total = wires.add(twice, operand, wires.cast(positive, twice.type))
    digit = wires.bit(total, width)
    digits = wires.cat(wires.low_bits(digits, rows - 1), digit)
    return [wires.low_bits(total, width), digits, digit, divisor, *kept]


def _quotient(builder: Builder, kind: IntType, found: _Divided) -> Ref:
    """Toward zero; all ones for a divisor of 0."""
    wires, width = Wires(builder), width_of(kind)
    digits, more = found.digits, width - wires.width(found.digits)
    if more > 0:
        digits = wires.cat(wires.spread(found.is_zero, more), digits)
    return _signed(wires, kind, digits, wires.unless(found.differ, found.is_zero))


def _remainder(builder: Builder, kind: IntType, found: _Divided) -> Ref:
    """With the dividend's sign; the dividend for a divisor of 0."""
    wires = Wires(builder)
    width = wires.width(found.rest)
    more = wires.both(found.divisor, wires.spread(wires.invert(found.positive), width))
    return _signed(wires, kind, wires.resize(wires.add(found.rest, more), width_of(kind)), found.above)


def _signed(wires: Wires, kind: IntType, bits: Ref, negative: Ref) -> Ref:
    flipped = wires.flip_if(negative, bits)
    return wires.cast(wires.add(flipped, wires.cast(negative, bits.type)), kind)

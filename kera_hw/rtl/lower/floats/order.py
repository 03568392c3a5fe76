"""``a < b`` and ``a <= b`` in one carry chain, NaN and zeros included.

Where carry cells hold logic of their own, the chain that compares magnitudes can as well be asked whether one
fraction, or either, has a bit set: both operands of the comparison are masked by two signals. Signs and "the
exponent field is all ones" of both numbers decide what is asked and how the answer reads. Nothing else is
needed: a number beside one with the top exponent is related to it as to an infinity, unless that is a NaN.
"""
from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import WORD_BITS, FloatType


@dataclass(frozen=True, slots=True)
class _Question:
    """What the chain is asked, and how its answer reads.

    It tells whether left < right (or equal, see ``_or_equal``); left is y, or 0 when ``masks_y``; right is x,
    or with ``widens`` either ``x | y`` (when ``masks_y``) or 0. Exponents take part with ``whole``, else they
    are equal. The answer is taken as yes when ``settled``, and turned by ``turned``.
    """

    masks_y: bool = False
    widens: bool = False
    whole: bool = False
    settled: bool = False
    turned: bool = False

    @property
    def crosses(self) -> bool:
        """The control of the exponents' bits that suits the cells: whole when y is masked, else not."""
        return self.whole == self.masks_y


def _question(or_equal: bool, x_minus: bool, y_minus: bool, x_top: bool, y_top: bool) -> _Question:
    """What to ask for x < y, or x <= y with ``or_equal``, of numbers of these signs and top exponents."""
    if x_top and y_top:  # infinities, unless a fraction has a bit set
        holds = x_minus >= y_minus if or_equal else x_minus > y_minus
        return _Question(masks_y=True, widens=True, settled=not holds, turned=True)
    if x_top and x_minus:  # all but a NaN is above
        return _Question(masks_y=True, turned=True)
    if y_top and not y_minus:
        return _Question(widens=True)
    if x_top or y_top:  # it has the larger magnitude, but lies on the wrong side: no, as magnitudes say
        return _Question(whole=True, turned=x_top)
    if x_minus == y_minus:  # y < x or y <= x for negatives, else its contrary
        return _Question(whole=True, turned=not x_minus)
    # Signs differ: whether there is a bit that makes one of them more than a zero.
    settled = x_minus == or_equal
    return _Question(masks_y=True, widens=True, whole=True, settled=settled, turned=or_equal != settled)


def _or_equal(or_equal: bool, x_minus: bool, _y_minus: bool, x_top: bool, y_top: bool) -> bool:
    """Whether the chain's relation is <= for x < y, or for x <= y; where both give one answer, what is less.

    It is where fractions are asked for zero on the left, and for finite numbers of one sign as the relation
    and its turning want it.
    """
    if or_equal:
        return not x_top and (y_top or x_minus)
    return not x_minus or (y_top and not x_top)


def relation(builder: Builder, kind: FloatType, a: Ref, b: Ref, or_equal: bool) -> Ref:
    """``a < b``, or ``a <= b``: false where a NaN takes part, and zeros are equal."""
    wires, form = Wires(builder), Format(kind)
    x, y = Fields(wires, form, a), Fields(wires, form, b)
    case = wires.cat(x.sign, y.sign, x.is_top, y.is_top)
    rows = list(product((False, True), repeat=4))
    asked = [_question(or_equal, *row) for row in rows]

    def control(values: list[bool]) -> Ref:
        return wires.bit(Wires(builder).lookup(case, [int(value) for value in values]), 0)

    masks_y = control([row.masks_y for row in asked])
    left, right = _fractions(wires, x.fraction, y.fraction, masks_y, control([row.widens for row in asked]))
    crosses = control([row.crosses for row in asked])
    high_left, high_right = _exponents(wires, x.exponent, y.exponent, masks_y, crosses)
    settled, turned = control([row.settled for row in asked]), control([row.turned for row in asked])
    # A borrow of right - left means no. A bit below decides about equal ones.
    lowest = wires.invert(control([_or_equal(or_equal, *row) for row in rows]))
    left, right = wires.cat(high_left, left, lowest), wires.cat(high_right, right, wires.flag(False))
    if wires.width(left) + 2 > WORD_BITS:  # no chain longer than a word
        return wires.differ(turned, wires.either(wires.invert(wires.less(right, left)), settled))
    # A bit above makes up for a borrow, and the highest one is turned by it.
    left = wires.cat(wires.const(0, 2), left)
    total = wires.subtract(wires.cat(wires.invert(turned), settled, right), left)
    return wires.bit(total, wires.width(total) - 1)


def _fractions(wires: Wires, x: Ref, y: Ref, masks_y: Ref, widens: Ref) -> tuple[Ref, Ref]:
    """Left and right of the fractions' bits."""
    width = wires.width(x)
    masked, wide = wires.spread(masks_y, width), wires.spread(widens, width)
    either = wires.both(wires.either(x, y), masked, wide)
    return wires.both(y, wires.invert(masked)), wires.either(wires.both(x, wires.invert(wide)), either)


def _exponents(wires: Wires, x: Ref, y: Ref, masks_y: Ref, crosses: Ref) -> tuple[Ref, Ref]:
    """Left and right of the exponents' bits: equal where they take no part."""
    width = wires.width(x)
    masked, crossed = wires.spread(masks_y, width), wires.spread(crosses, width)
    there = wires.both(crossed, wires.either(y, wires.both(x, masked)))
    right = wires.either(there, wires.both(x, wires.invert(masked), wires.invert(crossed)))
    return wires.both(y, wires.invert(masked)), right

"""Constant multiples in multipliers, where that saves more logic than a multiplier is worth.

Atoms with one coefficient are added first (the symmetric taps of a filter), then multiplied once.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kera_hw.graph.node import Origin, join_origins
from kera_hw.rtl.techmap import linear
from kera_hw.rtl.techmap.linear import Target, signed_digits
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.product import DspKind, multiply
from kera_hw.rtl.techmap.words import Word, constant, range_width

DSP_PRICE_LUTS = 16
"""Logic a multiplier must save to be used for a constant."""
_FEWEST_DIGITS = (2, 3, 4, 5)
"""Signed digits of a coefficient from which it goes to a multiplier: each is tried."""

_PAIRS_A_BLOCK = 25_000
_TRIES = 64
"""Random restarts, shared among the blocks."""
_MUCH_WORK = 400
"""Digits from which only one way to use multipliers is tried."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Product:
    """``odd`` times the sum of ``terms`` (variable, coefficient)."""

    odd: int
    terms: tuple[tuple[int, int], ...]


@dataclass
class _Candidate:
    """Products to make first, and the targets over variables and products."""

    products: list[_Product]
    targets: list[Target]
    product_ranges: list[Range]


def realise(
    net: Net, variables: Sequence[Word], targets: Sequence[Target], dsp: DspKind | None, available: int
) -> tuple[list[Word], int]:
    """Words of all targets, and how many of the ``available`` multipliers they took."""
    results: list[Word] = []
    taken = 0
    blocks = _blocks(targets)
    tries = max(2, _TRIES // len(blocks)) if blocks else 0
    for block in blocks:
        made, used = _realise_block(net, variables, block, dsp, available - taken, tries)
        results.extend(made)
        taken += used
    return results, taken


def _blocks(targets: Sequence[Target]) -> list[list[Target]]:
    """Targets in runs small enough for the search over pairs of digits, which grows with their square."""
    blocks: list[list[Target]] = []
    room = 0
    for target in targets:
        digits = sum(len(signed_digits(value)) for value in target.terms.values())
        room -= digits * digits
        if room < 0 or not blocks:
            blocks.append([])
            room = _PAIRS_A_BLOCK - digits * digits
        blocks[-1].append(target)
    return blocks


def _realise_block(
    net: Net, variables: Sequence[Word], targets: Sequence[Target], dsp: DspKind | None, available: int,
    tries: int,
) -> tuple[list[Word], int]:
    ranges = [variable.range for variable in variables]
    best = None if dsp is None else _choose(ranges, targets, dsp, available)
    if best is None:
        return linear.realise(net, variables, targets, tries), 0
    assert dsp is not None
    width = max(target.width for target in targets)
    sums = [
        Target(dict(product.terms), 0, width, _users(best, len(variables) + k))
        for k, product in enumerate(best.products)
    ]
    factors = linear.realise(net, variables, sums)
    made, outer = list[Word](), net.origin
    for factor, product, target in zip(factors, best.products, sums):
        net.origin = target.origin or outer
        made.append(multiply(net, factor, constant(product.odd), width, dsp))
    net.origin = outer
    values = [*variables, *made]
    return linear.realise(net, values, best.targets, tries), len(made)


def _users(candidate: _Candidate, value: int) -> Origin | None:
    """What the targets are for that take a value."""
    return join_origins(target.origin for target in candidate.targets if value in target.terms)


def _choose(
    ranges: list[Range], targets: Sequence[Target], dsp: DspKind, available: int
) -> _Candidate | None:
    """The cheapest use of multipliers; None where shifts and additions are cheaper."""
    if not any(len(signed_digits(c)) >= _FEWEST_DIGITS[0] for t in targets for c in t.terms.values()):
        return None
    best: _Candidate | None = None
    best_cost = float(linear.estimate(ranges, targets))
    work = sum(len(signed_digits(c)) for t in targets for c in t.terms.values())
    for digits in _FEWEST_DIGITS if work < _MUCH_WORK else _FEWEST_DIGITS[1:2]:
        found = _candidate(ranges, targets, dsp, digits)
        if not found.products or len(found.products) > available:
            continue
        sums = [Target(dict(product.terms), 0, 64) for product in found.products]
        cost = DSP_PRICE_LUTS * len(found.products) + linear.estimate(ranges, sums)
        cost += linear.estimate([*ranges, *found.product_ranges], found.targets)
        if cost < best_cost:
            best, best_cost = found, cost
    return best


def _candidate(ranges: list[Range], targets: Sequence[Target], dsp: DspKind, digits: int) -> _Candidate:
    """Every coefficient of at least ``digits`` signed digits in a multiplier, if it fits one."""
    products: dict[_Product, int] = {}
    spans: list[Range] = []
    changed: list[Target] = []
    for target in targets:
        groups: dict[int, list[tuple[int, int]]] = {}
        rest: dict[int, int] = {}
        for variable, value in target.terms.items():
            shift = (value & -value).bit_length() - 1
            odd = abs(value) >> shift
            if len(signed_digits(odd)) >= digits:
                groups.setdefault(odd, []).append((variable, (1 if value > 0 else -1) << shift))
            else:
                rest[variable] = value
        for odd, members in groups.items():
            low = min(abs(c) for _, c in members)
            sign = 1 if members[0][1] > 0 else -1
            product = _Product(odd, tuple((variable, sign * c // low) for variable, c in members))
            span = _span(ranges, product)
            if not _fits(span, odd, dsp):
                rest.update({variable: odd * c for variable, c in members})
                continue
            index = products.get(product)
            if index is None:
                index = len(products)
                products[product] = index
                spans.append((span[0] * odd, span[1] * odd))
            place = len(ranges) + index
            rest[place] = rest.get(place, 0) + sign * low
        changed.append(replace(target, terms=rest))
    return _Candidate(list(products), changed, spans)


def _span(ranges: list[Range], product: _Product) -> Range:
    corners = [(ranges[a][0] * c, ranges[a][1] * c) for a, c in product.terms]
    return (sum(min(pair) for pair in corners), sum(max(pair) for pair in corners))


def _fits(span: Range, odd: int, dsp: DspKind) -> bool:
    width, signed = range_width(span)
    factor = odd.bit_length()
    if dsp.signed_only:
        width, factor = width + (not signed), factor + 1
    wide, narrow = max(dsp.a_bits, dsp.b_bits), min(dsp.a_bits, dsp.b_bits)
    return (width <= wide and factor <= narrow) or (width <= narrow and factor <= wide)

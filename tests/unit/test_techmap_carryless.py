"""Carry-less products in cells: as many LUTs as networks of XORs written by hand, and no more."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kera_hw.graph import Export, Ref, Store
from kera_hw.interp import run_region
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import map_design
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.resource_model import netlist_luts
from kera_hw.types import IntType
from tests.unit.ops_oracle import polynomial_product

DEVICE = "ecp5-85k"
CRC32, CRC32C, CCITT = 0x04C11DB7, 0x1EDC6F41, 0x1021
SLACK = 1.02  # sharing is found by a heuristic, which begins from what is written
GCM64 = 0b11011  # x^64 + x^4 + x^3 + x + 1, without its highest power


def _unsigned(width: int) -> IntType:
    return IntType(width, False)


def _luts(kinds: Sequence[IntType], build: Callable[..., Ref]) -> int:
    store = Store()
    params = [store.param(k, kind) for k, kind in enumerate(kinds)]
    result = build(store, *params)
    named = tuple((f"p{k}", kind) for k, kind in enumerate(kinds))
    flat = flatten_export(Export("f", "fn", named, result.type, store.region(kinds, [result])), store)
    assert isinstance(flat, FlatDesign)
    part = find_device(DEVICE)
    assert part is not None
    return netlist_luts(map_design(flat, DEVICE, 10_000), part)


def _by_hand(store: Store, x: Ref, images: Sequence[int], width: int) -> Ref:
    """A linear map, given by the image of each bit of x: an XOR of those bits for each bit of the result."""
    bits: list[Ref] = []
    for row in range(width):
        terms = [
            store.op("bits.extract", x, high=k, low=k) for k, image in enumerate(images) if image >> row & 1
        ]
        total = terms[0] if terms else store.constant(_unsigned(1), 0)
        for term in terms[1:]:
            total = store.op("bits.xor", total, term)
        bits.append(total)
    return store.op("bits.cat", *reversed(bits))


@pytest.mark.parametrize(("width", "constant"), [
    (32, CRC32), (32, CRC32C), (16, CCITT), (8, 0x1B), (32, 0xFFFF_FFFF), (32, 0xDEAD_BEEF), (16, 0x8001),
    (8, 1),
])
def test_by_a_constant_it_is_a_network_written_by_hand(width: int, constant: int) -> None:
    kind = _unsigned(width)
    images = [polynomial_product(1 << k, constant) for k in range(width)]
    written = _luts([kind], lambda store, x: _by_hand(store, x, images, 2 * width))
    for swapped in (False, True):
        def product(store: Store, x: Ref, swapped: bool = swapped) -> Ref:
            pair = (x, store.constant(kind, constant))
            return store.op("bits.clmul", *(reversed(pair) if swapped else pair))

        assert _luts([kind], product) <= SLACK * written


def _reduced(value: int) -> int:
    """Modulo the polynomial of degree 64."""
    while value >> 64:
        value = value % 2**64 ^ polynomial_product(value >> 64, GCM64)
    return value


def test_a_field_product_by_a_constant_is_one_network() -> None:
    """Product and reduction as GHASH has them, over 2^64 elements: many products, one linear map."""
    key, half = 0x66E9_4BD4_EF8A_2C3B, _unsigned(32)

    def product(store: Store, x: Ref) -> Ref:
        parts = [store.op("bits.extract", x, high=32 * k + 31, low=32 * k) for k in (0, 1)]
        total = store.constant(_unsigned(64), 0)
        for j, part in enumerate(parts):
            for k in (0, 1):
                piece = store.op("bits.clmul", part, store.constant(half, key >> 32 * k & 0xFFFF_FFFF))
                total = store.op("bits.xor", total, _placed(store, piece, 32 * (j + k)))
        return total

    images = [_reduced(polynomial_product(1 << k, key)) for k in range(64)]
    store = Store()
    x = store.param(0, _unsigned(64))
    both = store.region([_unsigned(64)], [product(store, x), _by_hand(store, x, images, 64)])
    values = np.array([1 << k for k in range(64)] + [0x0123_4567_89AB_CDEF], np.uint64)
    found, wanted = run_region(both, [values], len(values))
    assert found.tolist() == wanted.tolist()
    written = _luts([_unsigned(64)], lambda store, x: _by_hand(store, x, images, 64))
    assert _luts([_unsigned(64)], product) <= SLACK * written


def _placed(store: Store, piece: Ref, place: int) -> Ref:
    """x^place times a product of 64 coefficients, modulo the polynomial."""
    fold = store.constant(_unsigned(64), GCM64)
    if place == 0:
        return piece
    amount = store.constant(_unsigned(7), place % 64)
    if place == 64:
        return _times(store, piece, fold)
    low = store.op("bits.shl", piece, amount)
    high = store.op("bits.shr", piece, store.constant(_unsigned(7), 64 - place))
    return store.op("bits.xor", low, store.op("bits.clmul", high, fold))


def _times(store: Store, piece: Ref, fold: Ref) -> Ref:
    """x^64 times a product: what passes the top of the folded one is folded again."""
    high = store.op("bits.shr", piece, store.constant(_unsigned(7), 60))
    once = store.op("bits.clmul", piece, fold)
    return store.op("bits.xor", once, store.op("bits.clmul", _beyond(store, piece, high), fold))


def _beyond(store: Store, piece: Ref, high: Ref) -> Ref:
    """The coefficients from 64 on of a product with x^4 + x^3 + x + 1."""
    total = high
    for degree in (3, 1):
        part = store.op("bits.shr", piece, store.constant(_unsigned(7), 64 - degree))
        total = store.op("bits.xor", total, part)
    return total


@pytest.mark.parametrize(("width", "most"), [(2, 3), (4, 11), (8, 43), (16, 173), (32, 687), (64, 1395)])
def test_two_products_take_one_lut(width: int, most: int) -> None:
    """Less than an AND for each pair of bits, of which 64-bit words keep the low half."""
    kind = _unsigned(width)
    found = _luts([kind, kind], lambda store, a, b: store.op("bits.clmul", a, b))
    assert found <= most < width * (width + 1) // (2 if width == 64 else 1)

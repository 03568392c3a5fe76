"""Vector gates cut where operands repeat, turn constant or into each other's complement."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

from kera_hw.rtl.techmap import runs, truth
from kera_hw.rtl.techmap.items import Gate, Parameter
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, Segment, concat, const_bits, slice_bits

from .control_support import planned


def test_bits_of_a_vector() -> None:
    vector = concat((const_bits(0b10, 2), (Segment(4, 7, 2),)))
    constants = [Segment(None, 0, 1), Segment(None, 1, 1)]
    assert list(runs.bits(vector)) == [*constants, Segment(4, 7, 1), Segment(4, 8, 1)]


def test_equal_arms_are_wires_and_complementary_ones_exclusive_ors() -> None:
    net = Net()
    x, c = net.bits(Parameter(8, (), "x", 0)), net.bits(Parameter(1, (), "c", 0))
    changed = net.differ(x, const_bits(0b00110000, 8))
    made = net.choose(c, changed, x)
    assert slice_bits(made, 0, 4) == slice_bits(x, 0, 4)
    assert slice_bits(made, 6, 2) == slice_bits(x, 6, 2)
    assert slice_bits(made, 4, 2) == net.differ(slice_bits(x, 4, 2), c)


def test_a_vector_stays_whole_where_one_bit_in_many_would_gain() -> None:
    net = Net()
    x, y = net.bits(Parameter(16, (), "x", 0)), net.bits(Parameter(16, (), "y", 0))
    c = net.bits(Parameter(1, (), "c", 0))
    mixed = concat((slice_bits(y, 0, 15), slice_bits(x, 15, 1)))
    assert len(net.choose(c, mixed, x)) == 1


def _value(net: Net, bits: Bits, given: dict[int, int]) -> int:
    """A vector's value for the sources' values, gate by gate and bit by bit."""
    values: dict[tuple[int, int], int] = {}

    def bit(s: Segment, k: int) -> int:
        return s.low >> k & 1 if s.cell is None else values[s.cell, s.low + k]

    def row(vector: Bits, width: int) -> list[int]:
        found = [bit(s, k) for s in vector for k in range(s.width)]
        return found * width if len(found) == 1 else found

    for index, item in enumerate(net.items):
        for k in range(item.width):
            if isinstance(item, Parameter):
                values[index, k] = given[index] >> k & 1
            else:
                place = sum(row(vector, item.width)[k] << i for i, vector in enumerate(item.ins))
                assert isinstance(item, Gate)
                values[index, k] = item.table >> place & 1
    return sum(v << k for k, v in enumerate(row(bits, 1)))


@pytest.mark.parametrize("seed", range(80))
def test_any_gate_keeps_its_meaning(seed: int) -> None:
    rng = random.Random(seed)
    net, plain = Net(), Net()
    width = rng.randrange(2, 9)
    sources = [net.bits(Parameter(width, (), name, 0)) for name in "abc"]
    for name in "abc":
        plain.bits(Parameter(width, (), name, 0))
    pool = list(sources)
    for bits in sources:
        pool.append(net.invert(bits))
        low = rng.randrange(width)
        upper = slice_bits(rng.choice(sources), low, width - low)
        pool.append(concat((slice_bits(net.invert(bits), 0, low), upper)))
    pool.append(const_bits(rng.getrandbits(width), width))
    pool += [net.logic(rng.choice([0b0001, 0b0111]), rng.sample(sources, 2), width)]
    pool += [net.logic(1, [pool[-1], rng.choice(sources)], width)]
    bit = slice_bits(sources[0], rng.randrange(width), 1)
    pool += [bit, net.invert(bit), concat([bit] * width), concat([net.invert(bit)] * width)]
    pool.append(concat(rng.choice([bit, net.invert(bit), const_bits(1, 1)]) for _ in range(width)))
    operands = [rng.choice(pool) for _ in range(rng.randrange(1, 5))]
    table = rng.choice([rng.getrandbits(1 << len(operands)), truth.MUX & truth.mask(len(operands))])
    made = net.logic(table, operands, width)
    for _ in range(20):
        given = {k: rng.getrandbits(width) for k in range(3)}
        want = 0
        rows = [_value(net, bits, given) for bits in operands]
        single = [len(bits) == 1 and bits[0].width == 1 for bits in operands]
        for k in range(width):
            shown = [v & 1 if one else v >> k & 1 for v, one in zip(rows, single)]
            want |= (table >> sum(v << i for i, v in enumerate(shown)) & 1) << k
        assert _value(net, made, given) == want


def test_an_inverted_operand_is_read_plain() -> None:
    assert truth.flip(truth.AND, 2, 0) == 0b0100
    assert truth.flip(truth.XOR, 2, 1) == truth.XNOR
    assert truth.flip(truth.flip(0b10110001, 3, 2), 3, 2) == 0b10110001


@pytest.mark.parametrize("step", [
    "if c.bit(15) { (c << 1) ^ 0x1021 } else { c << 1 }",
    "(c << 1) ^ (if c.bit(15) { 0x1021 } else { 0 })",
    "if !c.bit(15) { c << 1 } else { 0x1021 ^ (c << 1) }",
])
def test_a_byte_of_a_crc_costs_the_same_in_every_form(tmp_path: Path, step: str) -> None:
    source = (
        "pub stream f(d: u8) -> u16 {\n    state c: u16 = 0xffff;\n    c ^= (d as u16) << 8;\n"
        f"    for _ in 0..8 {{ c = {step}; }}\n    c\n}}\n"
    )
    plan = planned(tmp_path, source, 200.0)
    assert plan.initiation_interval == 1
    assert plan.estimate.lut <= 20


def test_a_conditional_mask_costs_its_own_bits(tmp_path: Path) -> None:
    """Three bits change, in either form."""
    for body in ("if c { x ^ 0x0421 } else { x }", "x ^ (if c { 0x0421 } else { 0 })"):
        plan = planned(tmp_path, f"pub fn f(x: u16, c: bool) -> u16 {{ {body} }}\n", 150.0)
        assert plan.estimate.lut == 3

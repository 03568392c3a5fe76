"""Logic bit by bit: shapes of tables, passes over gates, LUTs, and netlists with their logic exchanged."""
from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise, product

import pytest

from kera_hw.rtl.techmap.bitwise import lutmap
from kera_hw.rtl.techmap.bitwise.aig import AND, Aig
from kera_hw.rtl.techmap.bitwise.extract import Choice, extract
from kera_hw.rtl.techmap.bitwise.refine import Settling, Subnetwork, refined
from kera_hw.rtl.techmap.bitwise.restructure import balanced, restructured
from kera_hw.rtl.techmap.bitwise.shapes import masks, shape
from kera_hw.schedule.fpga.bits import cell_bits, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import Add, Input, Lut, Mux, Rom
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist, Output
from kera_hw.schedule.fpga.simulate import simulate_netlist

PATTERNS = 256
FULL = (1 << PATTERNS) - 1


@pytest.mark.parametrize("count", range(1, 7))
def test_a_shape_is_its_table(count: int) -> None:
    rng = random.Random(count)
    full = (1 << (1 << count)) - 1
    drawn = [rng.getrandbits(1 << count) for _ in range(300)]
    sparse = [one & other for one, other in pairwise(drawn)]
    for table in range(full + 1) if count <= 3 else [*drawn[:100], *sparse[:100]]:
        made = shape(table, count)
        values = [0, *masks(count)]
        for kind, a, b in made.gates:
            x, y = (values[s >> 1] ^ (full if s & 1 else 0) for s in (a, b))
            values.append(x & y if kind == AND else x ^ y)
        assert values[made.output >> 1] ^ (full if made.output & 1 else 0) == table


def test_shapes_are_small() -> None:
    xor4 = 0b0110_1001_1001_0110
    assert len(shape(xor4, 4).gates) == 3
    assert len(shape(0b11001010, 3).gates) == 3  # a choice
    assert len(shape(0b11101000, 3).gates) == 4  # a majority
    assert len(shape(1 << 15, 4).gates) == 3


def network(rng: random.Random, leaves: int, count: int) -> tuple[Aig, list[int]]:
    """Random functions of two to four earlier signals, the last dozen of them outputs."""
    aig = Aig()
    signals = [aig.leaf() for _ in range(leaves)]
    for _ in range(count):
        size = rng.randrange(2, 5)
        pool = signals[-20:] if rng.random() < 0.7 else signals
        signals.append(aig.function(rng.getrandbits(1 << size), rng.sample(pool, size)))
    outputs = [signal ^ rng.getrandbits(1) for signal in signals[-12:]]
    return aig, outputs


def simulated(aig: Aig, outputs: Sequence[int], leaves: Sequence[int]) -> list[int]:
    values = [0] * len(aig)
    values[1 : len(leaves) + 1] = leaves
    for node in range(len(leaves) + 1, len(aig)):
        x, y = (values[s >> 1] ^ (FULL if s & 1 else 0) for s in (aig.left[node], aig.right[node]))
        values[node] = x & y if aig.kind[node] == AND else x ^ y
    return [values[s >> 1] ^ (FULL if s & 1 else 0) for s in outputs]


@pytest.mark.parametrize("seed", range(12))
def test_passes_keep_every_output(seed: int) -> None:
    rng = random.Random(seed)
    leaves = rng.randrange(4, 12)
    aig, outputs = network(rng, leaves, 60)
    shown = [rng.getrandbits(PATTERNS) for _ in range(leaves)]
    want = simulated(aig, outputs, shown)
    aig, outputs = aig.swept(outputs, leaves)
    gates = aig.gates()
    for even in (False, True, False):
        aig, outputs = restructured(aig, outputs, leaves, even)
        assert simulated(aig, outputs, shown) == want
    assert aig.gates() <= gates
    late = [float(rng.randrange(4)) for _ in range(leaves)]
    aig, outputs = balanced(aig, outputs, leaves, late)
    assert simulated(aig, outputs, shown) == want
    for required, wide_ps in product((0.0, 1e6), ((), (1.3, 1.5))):
        timing = lutmap.Timing(late, [required] * len(outputs), 1.0, wide_ps)
        (luts,) = lutmap.map_gates(aig, outputs, [timing], 4)
        values = {0: 0, **{k + 1: value for k, value in enumerate(shown)}}
        for node, lut in luts.items():
            assert len(lut.leaves) <= 4 + len(wide_ps)
            values[node] = 0
            for row in range(1 << len(lut.leaves)):
                if lut.table >> row & 1:
                    term = FULL
                    for k, leaf in enumerate(lut.leaves):
                        term &= values[leaf] if row >> k & 1 else values[leaf] ^ FULL
                    values[node] |= term
        assert [values[s >> 1] ^ (FULL if s & 1 else 0) for s in outputs] == want


def test_long_chains_take_no_recursion() -> None:
    """Alternating gates, so that no tree of one kind can be balanced."""
    aig = Aig()
    signals = [aig.leaf() for _ in range(40)]
    chain = signals[0]
    for k in range(4000):
        signal = signals[k * 7 % 40]
        chain = aig.both(chain, signal) ^ 1 if k % 2 else aig.differ(chain, signal)
    made, outputs = restructured(aig, [chain], 40, even=True)
    (luts,) = lutmap.map_gates(made, outputs, [lutmap.Timing([0.0] * 40, [1e9], 1.0)], 4)
    shown = [random.Random(k).getrandbits(PATTERNS) for k in range(40)]
    assert simulated(made, outputs, shown) == simulated(aig, [chain], shown)
    assert len(luts) <= made.gates()


def test_a_wide_function_stands_for_several_luts_where_that_is_sooner_or_smaller() -> None:
    aig = Aig()
    signals = [aig.leaf() for _ in range(6)]
    rng = random.Random(1)
    five = aig.function(rng.getrandbits(32), signals[:5])  # irregular: three LUTs one behind the other
    conjunction = signals[0]
    for signal in signals[1:]:
        conjunction = aig.both(conjunction, signal)
    outputs, wide_ps = [five, conjunction], (1400.0, 1600.0)

    def mapped(required_ps: float, wide_ps: tuple[float, ...]) -> list[dict[int, lutmap.Lut]]:
        timing = lutmap.Timing([0.0] * 6, [required_ps] * 2, 1000.0, wide_ps)
        return lutmap.map_gates(aig, outputs, [timing], 4)

    (plain,), (relaxed,), (hurried,) = mapped(1e9, ()), mapped(1e9, wide_ps), mapped(0.0, wide_ps)
    assert max(len(lut.leaves) for lut in plain.values()) == 4 and len(plain) >= 3 + 2
    assert len(relaxed[five >> 1].leaves) == 5
    assert len(relaxed[conjunction >> 1].leaves) <= 4  # two LUTs, where a wide function takes four
    assert sorted(len(lut.leaves) for lut in hurried.values()) == [5, 6]


def test_balancing_puts_the_latest_last() -> None:
    aig = Aig()
    signals = [aig.leaf() for _ in range(8)]
    chain = signals[0]
    for signal in signals[1:]:
        chain = aig.both(chain, signal)
    made, outputs = balanced(aig, [chain], 8, [0.0] * 8)
    depth = [0] * len(made)
    for node in range(9, len(made)):
        depth[node] = 1 + max(depth[made.left[node] >> 1], depth[made.right[node] >> 1])
    assert depth[outputs[0] >> 1] == 3


def mixed() -> Netlist:
    """LUTs, a multiplexer, a table and two adders, one of them short."""
    a, b = cell_bits(0, 8), cell_bits(1, 8)
    four = slice_bits(a, 0, 4)
    cells = (
        Input(width=8, bus="a"), Input(width=8, bus="b"),
        Add(width=9, a=a, inputs=(b,), carry_out=True),
        Add(
            width=4, a=four, inputs=(slice_bits(b, 4, 4), slice_bits(b, 0, 1)),
            expr=("xor", ("in", 0), ("in", 1)), carry_in=slice_bits(a, 7, 1),
        ),
        Lut(
            width=8, inputs=(cell_bits(2, 8), a, slice_bits(b, 3, 1)),
            expr=("mux", ("in", 2), ("in", 0), ("not", ("in", 1))),
        ),
        Mux(width=8, select=slice_bits(a, 0, 2), choices=(cell_bits(4, 8), b, cell_bits(2, 8))),
        Rom(
            width=3, address=concat((four, slice_bits(cell_bits(2, 9), 8, 1))),
            contents=tuple(k * 5 % 7 for k in range(29)),
        ),
        Lut(
            width=4, inputs=(cell_bits(5, 4), cell_bits(3, 4), slice_bits(cell_bits(6, 3), 1, 1)),
            expr=("xor", ("in", 0), ("and", ("in", 1), ("not", ("in", 2)))),
        ),
    )
    outputs = (
        Output("x", concat((cell_bits(7, 4), slice_bits(cell_bits(5, 8), 4, 4), const_bits(0b10, 2)))),
        Output("y", concat((cell_bits(6, 3), cell_bits(3, 4), slice_bits(cell_bits(2, 9), 8, 1)))),
    )
    return Netlist("mixed", (("a", 8), ("b", 8)), cells, outputs, (), "ecp5-85k")


@pytest.mark.parametrize("choice", [Choice(False, 0), Choice(True, 0), Choice(True, 5), Choice(True, 20)])
def test_an_exchanged_netlist_computes_the_same(choice: Choice) -> None:
    netlist = mixed()
    part = find_device("ecp5-85k")
    assert part is not None
    settle = Settling(netlist, DelayModel(part), 6000)
    rng = random.Random(1)
    given = {bus: [rng.getrandbits(8) for _ in range(400)] for bus in "ab"}
    want = simulate_netlist(netlist, given)
    found = Subnetwork(netlist, extract(netlist, choice), settle)
    for one in (found.best(), found.soonest()):
        assert simulate_netlist(one, given) == want
    found.search()
    for one in (found.best(), found.soonest()):
        assert simulate_netlist(one, given) == want
        widths = [cell.width for cell in one.cells if isinstance(cell, Add)]
        assert widths == [width for width in (9, 4) if width > choice.adder_bits]


def test_equal_tables_of_unlike_many_operands_stay_apart() -> None:
    """`a & !b` and `a & !b & !c` are both table 2, and their first operands lie side by side."""
    part = find_device("ecp5-85k")
    assert part is not None
    a, b, c, d = (cell_bits(0, 1, k) for k in range(4))
    cells = (
        Input(width=4, bus="a"),
        Lut(width=1, inputs=(a, b, c, d), expr=("xor", ("in", 0), ("in", 1), ("in", 2), ("in", 3))),
        Lut(width=1, inputs=(a, c), expr=("and", ("in", 0), ("not", ("in", 1)))),
        Lut(width=1, inputs=(b, c, d), expr=("and", ("in", 0), ("not", ("in", 1)), ("not", ("in", 2)))),
    )
    outputs = (Output("x", concat(cell_bits(k, 1) for k in (1, 2, 3))),)
    netlist = Netlist("two", (("a", 4),), cells, outputs, (), "ecp5-85k")
    made = Subnetwork(netlist, extract(netlist, Choice(True, 0)), Settling(netlist, DelayModel(part), 5000))
    given = {"a": list(range(16))}
    assert simulate_netlist(made.best(), given) == simulate_netlist(netlist, given)


def test_nothing_is_offered_where_nothing_is_gained() -> None:
    part = find_device("ecp5-85k")
    assert part is not None
    inputs = tuple(cell_bits(0, 1, k) for k in range(4))
    conjunction = ("and", *(("in", k) for k in range(4)))
    cells = (Input(width=4, bus="a"), Lut(width=1, inputs=inputs, expr=conjunction))
    netlist = Netlist("and4", (("a", 4),), cells, (Output("x", cell_bits(1, 1)),), (), "ecp5-85k")
    assert refined(netlist, DelayModel(part), 5000) == []


def test_luts_of_other_sizes_are_no_vector() -> None:
    """The NOR of two and that of three have one table, 1, and operands side by side: still two cells."""
    x = cell_bits(0, 5)
    pair, three = (
        Lut(
            width=1, inputs=tuple(slice_bits(x, low + k, 1) for k in range(count)),
            expr=("and", *(("not", ("in", k)) for k in range(count))),
        )
        for low, count in ((0, 2), (1, 3))
    )
    outputs = (Output("two", cell_bits(1, 1)), Output("three", cell_bits(2, 1)))
    netlist = Netlist("nors", (("x", 5),), (Input(width=5, bus="x"), pair, three), outputs)
    device = find_device("ecp5-85k")
    assert device is not None
    settling = Settling(netlist, DelayModel(device), 10_000)
    part = Subnetwork(netlist, extract(netlist, Choice(False, 0)), settling)
    items = {"x": list(range(32))}
    assert simulate_netlist(part.best(), items) == simulate_netlist(netlist, items)

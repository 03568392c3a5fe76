"""What a flat design takes of a device at the least, known before it is mapped: its products.

A bound that holds for every way to map and schedule, so that a design above a device's capacity can be
refused at once and none that fits ever is. It counts products of values that come from the ports or the
state as they are, or but for a constant added: no bit of such a product is constant, and each pair of values
counts once. A product is in multiplier blocks, or it is one row of masked bits for each bit of its narrower
operand, and all rows but one are added by carry cells, a LUT for each bit of a row. Products that cancel
in the sums they belong to do not count, nor do sums of which something may be asked that mapping finds to be
constant: a sum counts where it is a result or a next state, or is one once cast, shifted or held within
constants.

How many items' worth of units an initiation interval needs (the resource-constrained minimum II: Rau,
"Iterative modulo scheduling", 1994) follows from the same needs.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kera_hw.graph.node import Node, Ref
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.design import FlatDesign
from kera_hw.rtl.techmap import gating
from kera_hw.rtl.techmap.combinations import LinearCombination
from kera_hw.rtl.techmap.mapper import Mapper
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import MapOptions, capabilities
from kera_hw.rtl.techmap.product import SMALL_BITS
from kera_hw.rtl.techmap.source import Source
from kera_hw.rtl.techmap.wide import narrowed
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.types import FloatType, Type

_PRODUCTS = frozenset({"integer.mul", "integer.mul_wide"})
_UNARY = frozenset({"convert.cast", "convert.bitcast", "integer.neg", "bits.not", "bits.extract"})
_WITH_CONSTANT = frozenset({"integer.add", "integer.sub", "bits.xor"})
_BOUNDS = frozenset({"integer.min", "integer.max"})
_ANY_CLOCK_PS = 10_000  # what a multiplier block holds does not depend on the clock
_MOST_INTERVAL = 1 << 40


@dataclass(frozen=True, slots=True)
class Product:
    """A product of operands of ``wide`` and ``narrow`` bits, of whose result ``kept`` bits are needed."""

    wide: int
    narrow: int
    kept: int

    @property
    def luts(self) -> int:
        """The least in logic: all rows but the longest are added."""
        return sum(max(0, min(self.wide, self.kept - row)) for row in range(1, self.narrow))


def product_of(bits: tuple[int, int], kept: int) -> Product:
    return Product(max(bits), min(bits), kept)


@dataclass(frozen=True, slots=True)
class Needs:
    """Products by kind, and LUTs that are needed beside them."""

    products: Counter[Product] = field(default_factory=Counter[Product])
    luts: int = 0

    def __add__(self, other: Needs) -> Needs:
        return Needs(self.products + other.products, self.luts + other.luts)

    def least_luts(self, device: Device, dsp: int | None = None, initiation_interval: int = 1) -> float:
        """LUTs where all that the device has, but at most ``dsp`` blocks, works for every item.

        With an ``initiation_interval`` above 1 each block serves as many products, and each LUT as many
        operations.
        """
        able = capabilities(device, _ANY_CLOCK_PS, MapOptions(dsp))
        total, spare = float(self.luts), able.dsp_count * initiation_interval
        worth: list[tuple[float, int, Product]] = []
        for product, count in self.products.items():
            total += count * product.luts
            if able.dsp is not None and product.narrow > SMALL_BITS:
                tiles = -(-product.wide // able.dsp.a_bits) * -(-product.narrow // able.dsp.b_bits)
                worth.append((product.luts / tiles, tiles * count, product))
        # As if a block could do part of a product: what saves the most LUTs comes first.
        for luts, tiles, _ in sorted(worth, key=lambda item: -item[0]):
            used = min(tiles, spare)
            spare -= used
            total -= luts * used
        return total / initiation_interval

    def least_initiation_interval(self, device: Device, dsp: int | None = None) -> int:
        """The smallest initiation interval at which the units of the device would do, if all were shared."""
        high = 1
        while self.least_luts(device, dsp, high) > device.lut and high < _MOST_INTERVAL:
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            if self.least_luts(device, dsp, middle) > device.lut:
                low = middle
            else:
                high = middle
        return high


def needs_of(opcode: str, kind: Type, bits: Sequence[int], times: int) -> Needs:
    """What an operation of a program takes, written ``times`` times: products and the bits of sums.

    ``bits``: what its operands need, constants 0. Other operations are not counted.
    """
    verb = opcode.partition(".")[2]
    if verb in ("mul", "mul_wide", "saturating_mul", "fma"):
        a, b = bits[:2]
        if isinstance(kind, FloatType):
            a, b = (min(item, kind.fraction_bits + 1) for item in (a, b))
        return Needs(Counter({product_of((a, b), a + b): times})) if a and b else Needs()
    sums = verb in ("add", "sub", "saturating_add", "saturating_sub") and all(bits)
    return Needs(luts=min(bits) * times) if sums else Needs()


def might_exceed(flat: FlatDesign, device: Device, dsp: int | None = None) -> bool:
    """Whether ``least_needs`` is worth its time: all products together, as they are written, are too many."""
    products: Counter[Product] = Counter()
    for node in flat.region.nodes():
        if node.opcode in _PRODUCTS:
            a, b = (_leaf_bits(ref) for ref in node.inputs)
            if a and b:
                products[product_of((a[1], b[1]), width_of(node.types[0]))] += 1
    return Needs(products).least_luts(device, dsp) > device.lut


def least_needs(flat: FlatDesign, device: Device) -> Needs:
    """What every circuit of the design needs."""
    combinations = _Combinations(narrowed(flat), device)
    pairs: dict[frozenset[Ref], Product] = {}
    for node in combinations.kept_products():
        a, b = (_leaf_bits(ref) for ref in node.inputs)
        if not a or not b:
            continue
        pair = frozenset((a[0], b[0]))
        found = product_of((a[1], b[1]), min(combinations.wanted[Ref(node, 0)], width_of(node.types[0])))
        known = pairs.get(pair)
        if known is None or found.luts < known.luts:
            pairs[pair] = found
    return Needs(Counter(pairs.values()))


def _leaf_bits(ref: Ref) -> tuple[Ref, int] | None:
    """The parameter or state that a value is, but for a constant, and how many of its bits vary with it."""
    bits = width_of(ref.type)
    while True:
        node = ref.node
        bits = min(bits, width_of(ref.type))
        if node.opcode == "core.param":
            return ref, bits
        if node.opcode == "bits.extract":
            high, low = node.attr("high"), node.attr("low")
            assert isinstance(high, int) and isinstance(low, int)
            bits = min(bits, min(high + 1, width_of(node.inputs[0].type)) - low)
        if node.opcode in _UNARY:
            ref = node.inputs[0]
        elif node.opcode in _WITH_CONSTANT:
            others = [item for item in node.inputs if item.node.opcode != "core.constant"]
            if len(others) != 1:
                return None
            (ref,) = others
        else:
            return None


class _Combinations(Mapper):
    """The sums of a design as mapping sees them, without making a cell: which products are left in them."""

    def __init__(self, flat: FlatDesign, device: Device) -> None:
        able = capabilities(device, _ANY_CLOCK_PS, MapOptions())
        super().__init__(Source(flat), Net(fusing=able.fuses_logic), able, flat.origins, _no_step)
        self._kept: dict[Node, None] = {}
        self._shown = {ref.node for ref in self.source.results}

    def kept_products(self) -> list[Node]:
        """Products of two values that some result or next state depends on for certain."""
        for node in reversed(self.source.nodes):
            if node not in self._shown:
                continue
            if node in self._roots:
                self._keep(self._combination(Ref(node, 0)), node)
            elif self._shows(node):
                self._shown.update(ref.node for ref in node.inputs)
        return list(self._kept)

    def _shows(self, node: Node) -> bool:
        """Whether a value that is shown is constant only if its operands are."""
        constant = any(self.source.constant(ref) is not None for ref in node.inputs)
        return node.opcode in ("convert.cast", "convert.bitcast", "bits.not") or (
            constant and (node.opcode in _BOUNDS or node.opcode == "bits.shr")
        )

    def _keep(self, combination: LinearCombination, root: Node) -> None:
        """What is left in a sum: products, and sums that are realised by themselves."""
        width = min(self.wanted[Ref(root, 0)], width_of(root.types[0]))
        for (ref, tile), value in combination.terms.items():
            if value & ((1 << width) - 1):
                if tile == 0:
                    self._kept[ref.node] = None
                elif tile == -1:
                    self._shown.add(ref.node)

    def _product_combination(self, node: Node) -> LinearCombination:
        if self._constant_factor(node) is not None:
            return super()._product_combination(node)
        return LinearCombination({(Ref(node, 0), 0): 1}, 0)

    def _gated_combination(self, node: Node) -> LinearCombination:
        then, otherwise = (self._operand(item) for item in node.inputs[1:])
        common, *_ = gating.split(then, otherwise)
        return LinearCombination({**common.terms, (Ref(node, 0), -2): 1}, common.constant)


def _no_step(_step: FlatDesign) -> Netlist:
    raise AssertionError("nothing is mapped for a bound")

"""Integers wider than a word, cut into limbs before anything is mapped: the one place that knows they exist.

A flat region holds a wide sum or product as one operation. Here each becomes operations on words
(``limbs``); all others are made again as they are, so that what is constant beside a limb is found again.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kera_hw.graph.analysis import Ranges
from kera_hw.graph.node import Node, Ref
from kera_hw.graph.store import Store
from kera_hw.ops.core import decode_constant
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.rtl.lower.design import FlatDesign
from kera_hw.rtl.techmap import limbs
from kera_hw.rtl.techmap.limbs import Wide
from kera_hw.types import BOOL, IntType, TensorType, is_wide


def narrowed(flat: FlatDesign) -> FlatDesign:
    """The design with no operand and no result wider than a word; itself where it has none."""
    nodes = flat.region.nodes()
    if not any(is_wide(kind) for node in nodes for kind in node.types):
        return flat
    return _Narrower(flat).design(nodes)


class _Narrower:
    """Makes a region anew: words by their operations, wide integers as limbs."""

    def __init__(self, flat: FlatDesign) -> None:
        self.flat = flat
        self.builder = Builder(Store())
        self.words: dict[Ref, Ref] = {}
        self.numbers: dict[Ref, Wide] = {}
        self.ranges = Ranges()

    def design(self, nodes: list[Node]) -> FlatDesign:
        store = self.builder.store
        for node in nodes:
            store.origin = self.flat.origins.get(node)
            if any(is_wide(kind) for kind in (*node.types, *(ref.type for ref in node.inputs))):
                self._cut(node)
            else:
                self._again(node)
        store.origin = None
        region = store.region(self.flat.region.params, [self.words[ref] for ref in self.flat.region.results])
        return replace(self.flat, region=region, origins=store.origins)

    def _again(self, node: Node) -> None:
        inputs = [self.words[ref] for ref in node.inputs]
        special = OPS[node.opcode].traits & {Trait.SOURCE, Trait.CONTROL}
        tables = any(isinstance(ref.type, TensorType) for ref in inputs)
        if len(node.types) == 1 and not tables and (not special or node.opcode == "control.select"):
            self.words[Ref(node, 0)] = self.builder.op(node.opcode, *inputs, **dict(node.attrs))
            return
        made = self.builder.store.node(node.opcode, inputs, dict(node.attrs))
        self.words.update({Ref(node, i): Ref(made, i) for i in range(len(node.types))})

    def _cut(self, node: Node) -> None:
        ref = Ref(node, 0)
        result = RULES[node.opcode](self, node)
        assert result.width_bits == width_of(ref.type), f"{node.opcode} of {ref.type} gave another width"
        if is_wide(ref.type):
            self.numbers[ref] = result
        else:
            self.words[ref] = self.builder.cast(result.word, ref.type) if ref.type != BOOL else result.word

    def number(self, ref: Ref) -> Wide:
        """The bits of a value as a number."""
        if is_wide(ref.type):
            return self.numbers[ref]
        return limbs.of(self.builder, self.words[ref])

    def signed(self, ref: Ref) -> bool:
        return isinstance(ref.type, IntType) and ref.type.signed

    def extended(self, number: Wide, width: int, signed: bool) -> Wide:
        """Cut off, or with zeros or copies of the sign above."""
        missing = width - number.width_bits
        if not signed or missing <= 0:
            return limbs.resize(self.builder, number, width)
        sign = limbs.bit(self.builder, number, number.width_bits - 1)
        return limbs.join(self.builder, limbs.spread(self.builder, sign, missing), number)


def _flag(ref: Ref) -> Wide:
    """A bool as it is: the one result of a comparison."""
    return Wide((ref,))


def _constant(cut: _Narrower, node: Node) -> Wide:
    data = node.attr("value")
    assert isinstance(data, bytes)
    kind = node.types[0]
    return limbs.constant(cut.builder, int(decode_constant(kind, data)), width_of(kind))


def _bitwise(cut: _Narrower, node: Node) -> Wide:
    return limbs.bitwise(cut.builder, node.opcode, *map(cut.number, node.inputs))


def _add(cut: _Narrower, node: Node) -> Wide:
    """A bit that is added to a sum is its carry."""
    a, b = node.inputs
    for total, bit in ((a, b), (b, a)):
        carry, inner = _carried(cut, bit), total.node
        if carry is not None:
            x, y = inner.inputs if inner.opcode == "integer.add" else (total, None)
            zero = limbs.constant(cut.builder, 0, width_of(total.type))
            return limbs.add(cut.builder, cut.number(x), zero if y is None else cut.number(y), carry)
    return limbs.add(cut.builder, cut.number(a), cut.number(b))


def _carried(cut: _Narrower, ref: Ref) -> Ref | None:
    """The bool that a value is, extended."""
    node = ref.node
    source = node.inputs[0] if node.opcode == "convert.cast" else None
    return cut.words[source] if source is not None and source.type == BOOL else None


def _subtract(cut: _Narrower, node: Node) -> Wide:
    return limbs.subtract(cut.builder, *map(cut.number, node.inputs))


def _multiply(cut: _Narrower, node: Node) -> Wide:
    """Of unsigned operands as narrow as their values; a signed product has the same low bits as theirs."""
    factors: list[Wide] = []
    width = width_of(node.types[0])
    for ref in node.inputs:
        found = cut.ranges.of(ref)
        assert found is not None
        needed = max(1, found.high.bit_length()) if found.low >= 0 else width
        factors.append(limbs.resize(cut.builder, cut.number(ref), needed))
    return limbs.resize(cut.builder, limbs.multiply(cut.builder, *factors), width)


def _select(cut: _Narrower, node: Node) -> Wide:
    condition, then, otherwise = node.inputs
    return limbs.select(cut.builder, cut.words[condition], cut.number(then), cut.number(otherwise))


def _cast(cut: _Narrower, node: Node) -> Wide:
    (ref,) = node.inputs
    return cut.extended(cut.number(ref), width_of(node.types[0]), cut.signed(ref))


def _cat(cut: _Narrower, node: Node) -> Wide:
    return limbs.join(cut.builder, *map(cut.number, node.inputs))


def _extract(cut: _Narrower, node: Node) -> Wide:
    high, low = node.attr("high"), node.attr("low")
    assert isinstance(high, int) and isinstance(low, int)
    return limbs.extract(cut.builder, cut.number(node.inputs[0]), high, low)


def _test(cut: _Narrower, node: Node) -> Wide:
    index = node.attr("index")
    assert isinstance(index, int)
    return _flag(limbs.bit(cut.builder, cut.number(node.inputs[0]), index))


def _equal(cut: _Narrower, node: Node) -> Wide:
    a, b = map(cut.number, node.inputs)
    differs = limbs.any_set(cut.builder, limbs.bitwise(cut.builder, "bits.xor", a, b))
    return _flag(cut.builder.op("bits.not", differs))


def _less(cut: _Narrower, node: Node) -> Wide:
    numbers = [cut.number(ref) for ref in node.inputs]
    if cut.signed(node.inputs[0]):  # the sign turned over, the order is that of unsigned numbers
        width = numbers[0].width_bits
        sign = limbs.constant(cut.builder, 1 << (width - 1), width)
        numbers = [limbs.bitwise(cut.builder, "bits.xor", number, sign) for number in numbers]
    return _flag(limbs.less(cut.builder, *numbers))


def _leading_zeros(cut: _Narrower, node: Node) -> Wide:
    count = limbs.leading_zeros(cut.builder, cut.number(node.inputs[0]))
    return limbs.of(cut.builder, cut.builder.cast(count, node.types[0]))


def _shift(cut: _Narrower, node: Node) -> Wide:
    """By powers of two, one for each bit of the amount; an amount past the width moves everything out."""
    value, amount = node.inputs
    builder, width = cut.builder, width_of(value.type)
    number, left = cut.number(value), node.opcode == "bits.shl"
    signed = cut.signed(value) and not left
    sign = limbs.bit(builder, number, width - 1) if signed else builder.const(BOOL, 0)
    known = builder.value(cut.words[amount]) if not is_wide(amount.type) else None
    if known is not None:
        return _moved(cut, number, min(known, width), left, sign)
    by = cut.number(amount)
    far = builder.const(BOOL, 0)
    for k in range(by.width_bits):
        flag = limbs.bit(builder, by, k)
        if 1 << k < width:
            number = limbs.select(builder, flag, _moved(cut, number, 1 << k, left, sign), number)
        else:
            far = builder.op("bits.or", far, flag)
    return limbs.select(builder, far, limbs.spread(builder, sign, width), number)


def _moved(cut: _Narrower, number: Wide, places: int, left: bool, fill: Ref) -> Wide:
    builder, width = cut.builder, number.width_bits
    if places == 0:
        return number
    if places >= width:
        return limbs.spread(builder, fill, width)
    if left:
        return limbs.scale(builder, limbs.extract(builder, number, width - places - 1, 0), places)
    kept = limbs.extract(builder, number, width - 1, places)
    return limbs.join(builder, limbs.spread(builder, fill, places), kept)


RULES: Mapping[str, Callable[[_Narrower, Node], Wide]] = {
    "core.constant": _constant,
    "integer.add": _add,
    "integer.sub": _subtract,
    "integer.mul": _multiply,
    "bits.and": _bitwise,
    "bits.or": _bitwise,
    "bits.xor": _bitwise,
    "bits.not": _bitwise,
    "bits.shl": _shift,
    "bits.shr": _shift,
    "bits.clz": _leading_zeros,
    "bits.cat": _cat,
    "bits.extract": _extract,
    "bits.test": _test,
    "compare.eq": _equal,
    "compare.lt": _less,
    "control.select": _select,
    "convert.cast": _cast,
    "convert.bitcast": _cast,
}
"""How operations with wide operands or results become operations on words: those of ``ops.wide``."""

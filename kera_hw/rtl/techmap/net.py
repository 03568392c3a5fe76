"""The netlist under construction: hashed items over ``Bits``, folding constants while it grows.

Logic is kept as small truth tables per bit; covering (``cover``) later packs them into LUTs.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kera_hw.graph.node import Origin
from kera_hw.rtl.techmap import fuse, muxes, runs, truth
from kera_hw.rtl.techmap.items import Choice, Gate, Item, Sum, Table
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, cell_bits, concat, const_bits, slice_bits

_FEW_SIGNALS = 4


class Net:
    """Items so far, for each the place in the source and the rough time (0.1 ns) when it is there.

    ``origin`` is recorded on items made while it is set, beside that for which they were made before.
    """

    def __init__(self, fusing: bool = False) -> None:
        self.items: list[Item] = []
        self.origins: list[Origin | None] = []
        self.fusing = fusing
        self._levels: list[int] = []
        self._memo: dict[Item, int] = {}
        self.origin: Origin | None = None

    def fork(self) -> Net:
        """A net that begins as this one and grows by itself."""
        other = Net(self.fusing)
        other.items, other.origins = list(self.items), list(self.origins)
        other._levels, other._memo = list(self._levels), dict(self._memo)
        other.origin = self.origin
        return other

    def make(self, item: Item) -> int:
        """The number of the item, which there is once."""
        found = self._memo.get(item)
        if found is None:
            found = len(self.items)
            self.items.append(item)
            self.origins.append(self.origin)
            self._levels.append(max((self.level(bits) for bits in item.ins), default=0) + item.delay)
            self._memo[item] = found
        elif self.origin is not None and item.ins:
            known = self.origins[found]
            self.origins[found] = self.origin if known is None else known.joined(self.origin)
        return found

    def level(self, bits: Bits) -> int:
        """Rough arrival time of a vector in units of 0.1 ns."""
        return max((self._levels[s.cell] for s in bits if s.cell is not None), default=0)

    def bits(self, item: Item) -> Bits:
        """The whole output of an item."""
        return cell_bits(self.make(item), item.width)

    # Logic

    def logic(self, table: int, operands: Sequence[Bits], width: int) -> Bits:
        """Bitwise function of vectors of ``width`` bits or one bit (broadcast)."""
        if width == 0 or not all(operands):
            return ()  # an empty vector stays empty, whatever bit it meets
        edges = runs.edges(operands, width, self.complement_of)
        if len(edges) == 2:
            return self._gate(table, operands, width)
        parts: list[Bits] = []
        for low, high in pairwise(edges):
            span = high - low
            pieces = [
                bits if len(bits) == 1 and bits[0].width == 1 else slice_bits(bits, low, span)
                for bits in operands
            ]
            parts.append(self._gate(table, pieces, span))
        return concat(parts)

    def _gate(self, table: int, operands: Sequence[Bits], width: int) -> Bits:
        """One run: every operand is all one constant, all another operand or its complement, or neither."""
        kept = [bits[:1] if _repeats(bits) else bits for bits in operands]
        table = self._plain_complements(table, kept)
        k = 0
        while k < len(kept):
            bits, count = kept[k], len(kept)
            if bits[0].cell is None:
                table = truth.cofactor(table, count, k, bits[0].low & 1)
                del kept[k]
            elif bits in kept[:k]:
                table = truth.merge(table, count, k, kept.index(bits))
                del kept[k]
            elif not truth.depends(table, count, k):
                table = truth.cofactor(table, count, k, 0)
                del kept[k]
            else:
                k += 1
        if any(not truth.depends(table, len(kept), k) for k in range(len(kept))):
            return self._gate(table, kept, width)
        if not kept:
            return const_bits(-(table & 1), width)
        if table == 0b10 and len(kept) == 1:
            bits = kept[0]
            return bits * width if len(bits) == 1 and bits[0].width == 1 and width > 1 else bits
        if all(bits_width(bits) == 1 for bits in kept) and width > 1:
            return self._gate(table, kept, 1) * width
        return self.bits(Gate(width, tuple(kept), table))

    def complement_of(self, bit: Segment) -> Segment | None:
        """What a bit is the complement of, where it comes from an inverter."""
        assert bit.cell is not None
        item = self.items[bit.cell]
        if not isinstance(item, Gate) or len(item.ins) != 1:
            return None  # of one operand, a gate can only be an inverter
        source = item.ins[0]
        return source[0] if bits_width(source) == 1 else slice_bits(source, bit.low, 1)[0]

    def _plain_complements(self, table: int, operands: list[Bits]) -> int:
        """Operands that are another one's complement become that one; the table that makes up for it."""
        count = len(operands)
        for k, bits in enumerate(operands):
            plain = self._inverted(bits)
            if plain is not None and plain in operands:
                table = truth.flip(table, count, k)
                operands[k] = plain
        return table

    def _inverted(self, bits: Bits) -> Bits | None:
        """The vector whose complement this one is, bit by bit, as inverters give it."""
        if any(s.cell is None or self.complement_of(s) is None for s in bits):
            return None
        found = [self.complement_of(s) for s in runs.bits(bits)]
        return None if None in found else concat((s,) for s in found if s is not None)

    def invert(self, bits: Bits) -> Bits:
        return self.logic(truth.NOT, (bits,), bits_width(bits))

    def both(self, a: Bits, b: Bits) -> Bits:
        return self.logic(truth.AND, (a, b), max(bits_width(a), bits_width(b)))

    def either(self, a: Bits, b: Bits) -> Bits:
        return self.logic(truth.OR, (a, b), max(bits_width(a), bits_width(b)))

    def differ(self, a: Bits, b: Bits) -> Bits:
        return self.logic(truth.XOR, (a, b), max(bits_width(a), bits_width(b)))

    def choose(self, condition: Bits, then: Bits, otherwise: Bits) -> Bits:
        """``condition ? then : otherwise``, per bit."""
        return self.logic(truth.MUX, (otherwise, then, condition), bits_width(then))

    def reduce(self, table_of: str, bits: Sequence[Bits]) -> Bits:
        """AND, OR or XOR of single bits as a tree of up to four a gate, earliest bits first."""
        pending = sorted(bits, key=self.level)
        identity = {"and": 1, "or": 0, "xor": 0}[table_of]
        if not pending:
            return const_bits(identity, 1)
        while len(pending) > 1:
            take = min(4, len(pending))
            if len(pending) > 4:
                first = self.level(pending[0])
                ready = sum(1 for b in pending if self.level(b) <= first)
                take = max(2, min(4, ready))
            group, pending = pending[:take], pending[take:]
            pending.append(self.logic(_wide(table_of, take), group, 1))
            pending.sort(key=self.level)
        return pending[0]

    def bits_of(self, bits: Bits) -> list[Bits]:
        """Each bit as a vector of one."""
        return [slice_bits(bits, i, 1) for i in range(bits_width(bits))]

    def any(self, bits: Bits) -> Bits:
        """Whether any bit is set."""
        return self.reduce("or", self.bits_of(bits))

    def equal(self, a: Bits, b: Bits) -> Bits:
        """Whether vectors of one width are equal, two bits a gate."""
        pairs = list(zip(self.bits_of(a), self.bits_of(b)))
        plain = [pair for pair in pairs if all(bit[0].cell is not None for bit in pair)]
        same = [self.logic(truth.XNOR, pair, 1) for pair in pairs if pair not in plain]
        same += [
            self.logic(truth.XNOR, plain[k], 1) if k + 1 == len(plain)
            else self.logic(truth.BOTH_SAME, (*plain[k], *plain[k + 1]), 1)
            for k in range(0, len(plain), 2)
        ]
        return self.reduce("and", same)

    # Arithmetic

    def add(self, a: Bits, b: Bits, width: int, carry: Bits = (), table: int = 0b10) -> Bits:
        """``a + f(b) + carry`` modulo 2^width, f being ``table``: identity or NOT. Idle low bits pass."""
        skip = self._passing(a, b, width, carry, table)
        low: Bits = ()
        if skip:
            low = self._passed(a, b, skip, carry, table)
            a, b = slice_bits(a, skip, width - skip), slice_bits(b, skip, width - skip)
            width -= skip
        if width == 0:
            return low
        if _is_const(b) and not any(s.cell is not None for s in a) and (not carry or carry[0].cell is None):
            value = _value(a) + _value(self.logic(table, (b,), width)) + (_value(carry) if carry else 0)
            return concat((low, const_bits(value, width)))
        if carry and carry[0].cell is None and carry[0].low == 0:
            carry = ()
        if not carry and _is_const(b) and _value(self.logic(table, (b,), width)) == 0:
            return concat((low, a))
        if not carry and table == 0b10 and _is_const(a) and _value(a) == 0:
            return concat((low, b))
        few = self._few_bits(a, b, width, carry, table)
        if few is not None:
            return concat((low, few))
        if width == 1:
            f = self.logic(table, (b,), 1)
            return concat((low, self.logic(truth.XOR3, (a, f, carry or const_bits(0, 1)), 1)))
        return concat((low, self.bits(Sum(width, (a, b, carry), table))))

    def _few_bits(self, a: Bits, b: Bits, width: int, carry: Bits, table: int) -> Bits | None:
        """A sum with a constant of at most four signals: a LUT for each bit."""
        if table == 0b10 and _is_const(a):
            a, b = b, a
        if not _is_const(b) or (carry and carry[0].cell is not None):
            return None
        bits = self.bits_of(a)
        places = [k for k, bit in enumerate(bits) if bit[0].cell is not None]
        if not 1 < len(places) <= _FEW_SIGNALS or width < 2:
            return None
        base = _value(b) if table == 0b10 else ~_value(b)
        base += (_value(carry) if carry else 0)
        base += sum(bit[0].low << k for k, bit in enumerate(bits) if bit[0].cell is None)
        sums = [
            base + sum((row >> i & 1) << k for i, k in enumerate(places)) for row in range(1 << len(places))
        ]
        signals = [bits[k] for k in places]
        tables = [sum((total >> k & 1) << row for row, total in enumerate(sums)) for k in range(width)]
        return concat(self.logic(one, signals, 1) for one in tables)

    def _passing(self, a: Bits, b: Bits, width: int, carry: Bits, table: int) -> int:
        """How many low bits need no adder: the carry into the next bit stays what it was."""
        if carry and carry[0].cell is not None:
            return 0
        value = carry[0].low & 1 if carry else 0
        count = 0
        quiet = _low_run(b, value if table == 0b10 else 1 - value)
        while count < width:
            count = max(count, quiet)
            if table != 0b10:
                break
            more = _low_run(slice_bits(a, count, width - count), value)
            if more == 0:
                break
            count += more
            quiet = count + _low_run(slice_bits(b, count, width - count), value)
            if quiet == count:
                continue
        return min(count, width)

    def _passed(self, a: Bits, b: Bits, count: int, carry: Bits, table: int) -> Bits:
        value = carry[0].low & 1 if carry else 0
        low_a, low_b = slice_bits(a, 0, count), self.logic(table, (slice_bits(b, 0, count),), count)
        return self.logic(truth.XNOR if value else truth.XOR, (low_a, low_b), count)

    def fused(self, a: Bits, table: int, operands: Sequence[Bits], width: int, carry: Bits) -> Bits:
        """``a + f(operands) + carry`` with f inside the carry cell where the device's can hold it."""
        count = len(operands)
        order = fuse.legal_order(table, count, known(a) == 0) if self.fusing else None
        if order is None or width < 2:
            return self.add(a, self.logic(table, operands, width), width, carry)
        for k, bits in enumerate(operands):
            single = len(bits) == 1 and bits[0].width == 1 and bits[0].cell is None
            if single or not truth.depends(table, count, k):
                rest = [*operands[:k], *operands[k + 1 :]]
                smaller = truth.cofactor(table, count, k, bits[0].low & 1 if single else 0)
                return self.fused(a, smaller, rest, width, carry)
        if count == 0:
            return self.add(a, const_bits(-(table & 1), width), width, carry)
        if count == 1:  # the operand or its complement
            return self.add(a, operands[0], width, carry, table)
        if carry and carry[0].cell is None and carry[0].low == 0:
            carry = ()
        ordered = tuple(operands[k] for k in order)
        return self.bits(Sum(width, (a, *ordered, carry), fuse.reorder(table, order)))

    def subtract(self, a: Bits, b: Bits, width: int) -> Bits:
        """``a - b`` modulo 2^width."""
        if _is_const(b):
            return self.add(a, const_bits(-_value(b), width), width)
        return self.add(a, b, width, const_bits(1, 1), truth.NOT)

    def mux(self, select: Bits, choices: Sequence[Bits], width: int) -> Bits:
        """``choices[select]``, a select past the end taking the last."""
        if len(choices) == 1:
            return choices[0]
        if _is_const(select):
            return choices[min(_value(select), len(choices) - 1)]
        if len(choices) == 2 and bits_width(select) == 1:
            return self.choose(select, choices[1], choices[0])
        if all(_is_const(choice) for choice in choices):
            return self.rom(select, [_value(choice) for choice in choices], width, last=True)
        if len(choices) in (3, 4) and bits_width(select) == 2 and all(s.cell is not None for s in select):
            return muxes.four_way(self, select, choices, width)
        return self.bits(Choice(width, (select, *choices)))

    def rom(self, address: Bits, contents: Sequence[int], width: int, last: bool = False) -> Bits:
        """``contents[address]``; past the end 0, or the last word when ``last``."""
        size = 1 << bits_width(address)
        words = [*contents, *[contents[-1] if last else 0] * (size - len(contents))][:size]
        count = bits_width(address)
        if count <= 4:
            bits = self.bits_of(address)
            tables = [sum((word >> i & 1) << k for k, word in enumerate(words)) for i in range(width)]
            return concat(self.logic(table, bits, 1) for table in tables)
        return self.bits(Table(width, (address,), tuple(words)))


def _repeats(bits: Bits) -> bool:
    """Whether a vector is one bit over and over."""
    first = bits[0]
    return len(bits) > 1 and first.width == 1 and all(segment == first for segment in bits)


def _wide(name: str, count: int) -> int:
    full = truth.mask(count)
    if name == "and":
        return 1 << ((1 << count) - 1)
    if name == "or":
        return full ^ 1
    table = 0
    for k in range(count):
        table ^= truth.variable(k, count)
    return table


def _is_const(bits: Bits) -> bool:
    return all(s.cell is None for s in bits)


def _value(bits: Bits) -> int:
    value = position = 0
    for segment in bits:
        value |= segment.low << position
        position += segment.width
    return value


def _low_run(bits: Bits, value: int) -> int:
    """How many low bits are the constant ``value``."""
    count = 0
    for segment in bits:
        if segment.cell is not None:
            return count
        for i in range(segment.width):
            if segment.low >> i & 1 != value:
                return count
            count += 1
    return count


def known(bits: Bits) -> int | None:
    """The value of a constant vector."""
    return _value(bits) if _is_const(bits) else None


def repeat(bit: Bits, count: int) -> Bits:
    """One bit, ``count`` times."""
    segment = bit[0]
    if segment.cell is None:
        return const_bits(-(segment.low & 1), count)
    return (Segment(segment.cell, segment.low, 1),) * count

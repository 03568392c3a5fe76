"""Buffers while a program is walked: elements side by side, or memories that are reached by address."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from kera_hw.graph.node import Origin, Ref
from kera_hw.loops.program import Affine, Buffer
from kera_hw.loops.program import Index as ProgramIndex
from kera_hw.rtl.lower.builder import Builder, carrier, width_of
from kera_hw.rtl.lower.design import FlatMemory
from kera_hw.rtl.lower.floats.canonical import canonical, mark
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.rtl.lower.places import Choice, Held, Sum, choice_of, exact
from kera_hw.types import BOOL, FloatType, IntType, Type

Index = Sequence[Sum]


def strides(shape: Sequence[int]) -> list[int]:
    """Row-major: how far apart neighbours along each axis are."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


class Elements:
    """A buffer of scalars side by side; what has not been written yet is None.

    A position that data decides is a tree of selects when read, and a choice at every element when written.
    """

    def __init__(self, builder: Builder, buffer: Buffer, items: Sequence[Ref | None] | None = None) -> None:
        self.builder = builder
        self.buffer = buffer
        self.items: list[Ref | None] = [None] * buffer.size if items is None else list(items)
        self._strides = strides(buffer.shape)

    def place(self, index: ProgramIndex) -> Affine:
        """Which element an access names, in the program's own terms."""
        total = Affine()
        for part, stride in zip(index, self._strides):
            total = total + part * stride
        return total

    def load(self, index: Index) -> Ref:
        return self._picked(self._parts(index), 0, 0)

    def _parts(self, index: Index) -> list[int | Choice]:
        return [
            part.constant if not part.terms else choice_of(self.builder, part, extent)
            for part, extent in zip(index, self.buffer.shape)
        ]

    def _picked(self, parts: Sequence[int | Choice], axis: int, start: int) -> Ref:
        if axis == len(parts):
            return self.item(start)
        part, stride = parts[axis], self._strides[axis]
        if isinstance(part, int):
            return self._picked(parts, axis + 1, start + part * stride)
        column = [self._picked(parts, axis + 1, start + place * stride) for place in part.places]
        return part.pick(self.builder, column)

    def item(self, position: int) -> Ref:
        """An element; anything for one that was never written, which nobody reads."""
        found = self.items[position]
        return self.builder.const(carrier(self.buffer.element), 0) if found is None else found

    def store(self, index: Index, value: Ref) -> None:
        """Whether it happens is for the walker, which takes both versions of what a branch writes."""
        places, conditions = [0], [self.builder.const(BOOL, 1)]
        for part, stride in zip(self._parts(index), self._strides):
            if isinstance(part, int):
                places = [place + part * stride for place in places]
                continue
            hits = part.hits(self.builder)
            conditions = [self.builder.op("bits.and", outer, hit) for outer in conditions for hit in hits]
            places = [outer + place * stride for outer in places for place in part.places]
        if len(places) == 1:
            self.items[places[0]] = value
            return
        for place, hit in zip(places, conditions):
            self.items[place] = self.builder.select(hit, value, self.item(place))


class Table:
    """A constant that is read by address: mapping makes block RAM or logic of it."""

    def __init__(self, builder: Builder, buffer: Buffer, contents: Sequence[int]) -> None:
        self.builder = builder
        self.buffer = buffer
        self.contents = contents
        self._strides = strides(buffer.shape)

    def load(self, index: Index) -> Ref:
        place = _reached(self.builder, _address(index, self._strides), len(self.contents))
        word = Wires(self.builder).lookup(place, list(self.contents))
        bits = self.builder.cast(word, IntType(width_of(self.buffer.element), False))
        return element_of(self.builder, self.buffer.element, bits)


@dataclass(frozen=True, slots=True)
class Condition:
    """That a branch is taken: ``number`` of those that ``selector`` chooses from, where ``holds``."""

    selector: Ref
    number: int
    holds: Ref


Conditions = Sequence[Condition]


def on_condition(holds: Ref) -> Condition:
    """That a bool holds."""
    return Condition(holds, 1, holds)


@dataclass(frozen=True, slots=True)
class _Written:
    """The write that gave a version: on which one, what, where, and under which conditions."""

    before: Ref
    word: Ref
    address: Ref
    conditions: tuple[Condition, ...]
    holds: Ref | None


class Memory:
    """One memory of the flat region: a chain of versions.

    Of branches one alone is taken: what is read in one is read as if the others had written nothing, and
    writes in two of them are one write, of what the branch taken chooses, unless a read between them tells
    them apart.
    """

    def __init__(self, builder: Builder, memory: FlatMemory, version: Ref) -> None:
        self.memory = memory
        self.head = version
        self.reads: set[Ref] = set()
        self.writes = 0
        self._builder = builder
        self._written: dict[Ref, _Written] = {}
        self._seen: set[Ref] = set()

    def read(self, address: Ref, conditions: Conditions) -> Ref:
        version = self.head
        while (made := self._written.get(version)) is not None and _is_elsewhere(made, conditions):
            version = made.before
        self._seen.add(version)
        word = self._builder.op("tensor.index", version, address)
        self.reads.add(word)
        return word

    def write(self, address: Ref, word: Ref, conditions: Conditions) -> None:
        builder, before, kept = self._builder, self.head, tuple(conditions)
        holds = self._all(kept)
        if holds is not None and builder.value(holds) == 0:
            return
        other = self._written.get(before)
        if other is not None and before not in self._seen and _is_elsewhere(other, conditions):
            assert holds is not None and other.holds is not None
            word = builder.select(holds, word, other.word)
            address = builder.select(holds, address, other.address)
            kept = tuple(one for one in kept if one in other.conditions)
            holds, before = builder.op("bits.or", holds, other.holds), other.before
        else:
            self.writes += 1
        self.head = builder.op("tensor.update", before, word, address)
        if holds is not None and builder.value(holds) is None:
            self.head = builder.select(holds, self.head, before)
        self._written[self.head] = _Written(before, word, address, kept, holds)

    def _all(self, conditions: Conditions) -> Ref | None:
        """That all of them hold; None for no condition."""
        found: Ref | None = None
        for one in conditions:
            found = one.holds if found is None else self._builder.op("bits.and", found, one.holds)
        return found


def _is_elsewhere(made: _Written, conditions: Conditions) -> bool:
    """Whether a write was made in a branch that is not taken where these conditions hold."""
    return any(
        one.selector == own.selector and one.number != own.number
        for one in made.conditions for own in conditions
    )


class Unkept(Exception):
    """A buffer can't be in the memories that it was meant to be in: why, and which axis is none of banks."""

    def __init__(self, buffer: str, reason: str, axis: int | None = None) -> None:
        super().__init__(f"{buffer}: {reason}")
        self.buffer, self.reason, self.axis = buffer, reason, axis


class Kept:
    """A buffer in memory, a memory for each bank.

    ``exact``: which bank is meant has to be known, and accesses are counted: Unkept is raised for others, and
    beyond ``MOST_ACCESSES``.
    """

    def __init__(
        self, builder: Builder, buffer: Buffer, banks: Sequence[Memory], exact: bool = False
    ) -> None:
        self.builder = builder
        self.buffer = buffer
        self.banks = list(banks)
        self.moves = False
        """Whether data decides which element an access is to."""
        self._exact = exact
        self._accesses = 0
        self._strides = strides(bank_shape(buffer))

    def load(self, index: Index, conditions: Conditions) -> Ref:
        parts, inside = self._split(index)
        address = self._within(inside)
        words = [bank.read(address, conditions) for bank in self._among(parts)]
        for part in reversed([part for part in parts if isinstance(part, Choice)]):
            count = len(part.places)
            words = [part.pick(self.builder, words[k : k + count]) for k in range(0, len(words), count)]
        kind = self.buffer.element
        if isinstance(kind, FloatType) and self.buffer.kind in _SEEN:
            return mark(self.builder, kind, words[0])
        return element_of(self.builder, kind, words[0])

    def store(self, index: Index, value: Ref, conditions: Conditions) -> None:
        parts, inside = self._split(index)
        address, word = self._within(inside), self._word(value)
        hits = [part.hits(self.builder) for part in parts if isinstance(part, Choice)]
        for bank, here in zip(self._among(parts), product(*hits)):
            bank.write(address, word, [*conditions, *map(on_condition, here)])

    def _within(self, inside: Index) -> Ref:
        """The address within a bank."""
        return _reached(self.builder, _address(inside, self._strides), self.banks[0].memory.entries)

    def _split(self, index: Index) -> tuple[list[int | Choice], list[Sum]]:
        """By banked axis, which bank; by axis, where in it."""
        self._accesses += 1
        self.moves = self.moves or any(part.terms for part in index)
        if self._exact and self._accesses > MOST_ACCESSES:
            raise Unkept(self.buffer.name, f"an item reads and writes more than {MOST_ACCESSES:,} elements")
        inside, parts = list(index), list[int | Choice]()
        for bank in self.buffer.storage.banks:
            axis, extent = bank.axis, self.buffer.shape[bank.axis]
            length = -(-extent // bank.count)
            number, inside[axis] = (
                self._cyclic(index[axis], bank.count, extent) if bank.spread == "cyclic"
                else self._stretch(index[axis], length, extent)
            )
            if self._exact and number.terms:
                raise Unkept(self.buffer.name, "an axis of banks has an index that is not constant", axis)
            parts.append(
                number.constant if not number.terms else choice_of(self.builder, number, bank.count)
            )
        return parts, inside

    def _cyclic(self, part: Sum, count: int, extent: int) -> tuple[Sum, Sum]:
        """The remainder, and the quotient: known apart where coefficients are multiples."""
        if all(step % count == 0 for _, step in part.terms):
            number = part.constant % count
            terms = tuple((value, step // count) for value, step in part.terms)
            return Sum(number), Sum((part.constant - number) // count, terms)
        return self._divided(part, count, extent)

    def _stretch(self, part: Sum, length: int, extent: int) -> tuple[Sum, Sum]:
        low, high = part.range(self.builder)
        if low // length == high // length:
            return Sum(low // length), part + Sum(-(low // length) * length)
        within, number = self._divided(part, length, extent)
        return number, within

    def _divided(self, part: Sum, by: int, extent: int) -> tuple[Sum, Sum]:
        """Remainder and quotient."""
        whole = exact(self.builder, part, max(extent, by + 1))
        limit = self.builder.const(whole.type, by)
        remainder, quotient = (self.builder.op(f"integer.{verb}", whole, limit) for verb in ("rem", "div"))
        return Sum(0, ((remainder, 1),)), Sum(0, ((quotient, 1),))

    def _among(self, parts: Sequence[int | Choice]) -> list[Memory]:
        """The banks that may be meant, the last banked axis fastest."""
        counts = [bank.count for bank in self.buffer.storage.banks]
        numbers = [0]
        for part, count in zip(parts, counts):
            places = [part] if isinstance(part, int) else part.places
            numbers = [outer * count + place for outer in numbers for place in places]
        return [self.banks[number] for number in numbers]

    def _word(self, value: Ref) -> Ref:
        """The bits of an element; of one that can be seen outside, with the canonical NaN."""
        kind = self.buffer.element
        if isinstance(kind, FloatType):
            return canonical(self.builder, kind, value) if self.buffer.kind in _SEEN else value
        return self.builder.op("convert.bitcast", value, type=IntType(width_of(kind), False))


def element_of(builder: Builder, kind: Type, bits: Ref) -> Ref:
    """The element that a word holds, as a flat region carries it."""
    return builder.op("convert.bitcast", bits, type=carrier(kind))


class Served:
    """A buffer that somebody else serves: it is read alone."""

    def __init__(self, buffer: Buffer, load: Callable[[Index], Ref]) -> None:
        self.buffer = buffer
        self.load = load


Storage = Elements | Table | Kept | Served

MOST_ACCESSES = 1024
"""Beyond so many accesses an item to a buffer no memory serves it."""

_SEEN = ("result", "state")
"""Kinds of buffers of which NaNs can be seen."""


def _reached(builder: Builder, address: Sum, entries: int) -> Ref:
    """An address as an operation on a tensor takes it, which itself holds one that is past the end."""
    match address:
        case Sum(constant=0, terms=((Held(source=source, low=None, high=high), 1),)):
            if high == entries - 1 and builder.range(source).low >= 0:
                return source
        case _:
            pass
    return exact(builder, address, entries)


def _address(index: Index, steps: Sequence[int]) -> Sum:
    total = Sum(0)
    for part, step in zip(index, steps):
        total = total + part * step
    return total


def bank_shape(buffer: Buffer) -> tuple[int, ...]:
    """The shape of what one bank holds."""
    shape = list(buffer.shape)
    for bank in buffer.storage.banks:
        shape[bank.axis] = -(-shape[bank.axis] // bank.count)
    return tuple(shape)


def words_of(buffer: Buffer) -> list[int]:
    """The contents of a constant or a state, row-major, as the unsigned bits of each element."""
    size = len(buffer.data) // max(buffer.size, 1)
    mask = (1 << width_of(buffer.element)) - 1
    return [
        int.from_bytes(buffer.data[k : k + size], "little") & mask
        for k in range(0, len(buffer.data), max(size, 1))
    ]


def memories_of(buffer: Buffer, origin: Origin | None = None) -> list[FlatMemory]:
    """The memories of a buffer, one a bank, with what each holds at reset."""
    assert buffer.kind != "const", "constants are tables"
    shape, counts = bank_shape(buffer), [bank.count for bank in buffer.storage.banks]
    words = words_of(buffer) if buffer.kind == "state" else None
    found: list[FlatMemory] = []
    for numbers in product(*map(range, counts)):
        name = ".".join((buffer.name, *map(str, numbers)))
        initial = None if words is None else _share(buffer, shape, numbers, words) or (0,)
        found.append(FlatMemory(
            name, max(prod(shape), 1), width_of(buffer.element), initial, buffer.kind, origin,
        ))
    return found


def _share(
    buffer: Buffer, shape: tuple[int, ...], numbers: tuple[int, ...], words: Sequence[int]
) -> tuple[int, ...]:
    """What a bank holds; 0 where the last one is not full."""
    found: list[int] = []
    for inside in product(*map(range, shape)):
        place = list(inside)
        for bank, number in zip(buffer.storage.banks, numbers):
            at = place[bank.axis]
            cyclic = bank.spread == "cyclic"
            place[bank.axis] = at * bank.count + number if cyclic else number * shape[bank.axis] + at
        there = all(at < extent for at, extent in zip(place, buffer.shape))
        found.append(words[sum(at * step for at, step in zip(place, strides(buffer.shape)))] if there else 0)
    return tuple(found)

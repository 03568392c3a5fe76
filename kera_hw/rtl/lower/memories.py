"""State that is kept as memories: a tensor of which elements alone are read and written.

Every version of a memory is a value, and all of them form one chain: a write is made on the latest version,
under the conditions of the branches around it. Leading axes that constants alone index are banks, each a
memory of its own. What a memory cannot serve (an operation on the whole tensor, a write on a version that is
past) makes it elements again: flattening begins anew without it.

Of branches one alone is taken: what is read in one is read as if the others had written nothing, and writes
in two of them are one write, of what the branch taken chooses, unless something between reads them apart.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Export, Ref, StateVar
from kera_hw.rtl.lower import scalars
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.rtl.lower.design import FlatMemory
from kera_hw.rtl.lower.floats.canonical import canonical, mark
from kera_hw.rtl.lower.values import Stored, Unkept, Value
from kera_hw.types import (
    BOOL,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    element_type,
    shape_of,
)

LEAST_ENTRIES, LEAST_BITS = 16, 512
"""State below either is registers: a memory's ports and its initialisation after a reset take more."""
MOST_BANKS = 16
_MOST_READS, _MOST_WRITES = 8, 4
"""Accesses an item to one memory beyond which registers are better, if there may be so many."""


@dataclass(frozen=True, slots=True)
class Condition:
    """That a branch is taken: ``number`` of those that ``selector`` chooses from, where ``holds``."""

    selector: Ref
    number: int
    holds: Ref


@dataclass(frozen=True, slots=True)
class _Written:
    """The write that gave a version: on which one, what, where, and under which conditions."""

    before: Ref
    value: Ref
    address: Ref
    conditions: tuple[Condition, ...]
    holds: Ref | None


def candidates(export: Export) -> dict[str, int]:
    """State that may be memories, each with how many leading axes may be banks."""
    found: dict[str, int] = {}
    for var in export.state:
        kind = var.initial.type
        if not isinstance(kind, TensorType) or kind.size < LEAST_ENTRIES:
            continue
        if kind.size * width_of(kind.element) >= LEAST_BITS:
            found[var.name] = _bank_axes(kind.shape, len(kind.shape) - 1)
    return found


def _bank_axes(shape: Sequence[int], most: int) -> int:
    """How many leading axes give no more banks than are allowed."""
    return max(k for k in range(most + 1) if math.prod(shape[:k]) <= MOST_BANKS)


class Memories:
    """The memories of one design while it is flattened: their latest versions, and conditions around."""

    def __init__(self, builder: Builder, kept: dict[str, int]) -> None:
        self._builder = builder
        self.kept = kept
        self._latest: dict[str, list[Ref]] = {}
        self._conditions: list[Condition] = []
        self._written: dict[Ref, _Written] = {}
        self._seen: set[Ref] = set()
        self._reads: dict[str, set[Ref]] = {}
        self._writes: dict[str, int] = {}
        self._moving: set[str] = set()
        self.made: list[FlatMemory] = []

    def declare(self, var: StateVar, words: Sequence[int], first: int) -> Stored:
        """The memories of a state with its initial words; ``first`` is the first one's parameter."""
        kind = var.initial.type
        shape, element = shape_of(kind), element_type(kind)
        axes = self.kept[var.name]
        banks, entries = math.prod(shape[:axes]), math.prod(shape[axes:])
        versions: list[Ref] = []
        for bank in range(banks):
            name = var.name if banks == 1 else f"{var.name}_{bank}"
            own = tuple(words[bank * entries : (bank + 1) * entries])
            made = FlatMemory(name, entries, width_of(element), own, "state", var.origin)
            versions.append(self._builder.store.param(first + len(self.made), made.type))
            self.made.append(made)
        self._latest[var.name] = versions
        self._reads[var.name], self._writes[var.name] = set(), 0
        return Stored(var.name, shape, element, axes, tuple(versions))

    def results(self) -> list[Ref]:
        """The last versions, in order of the parameters."""
        return [ref for versions in self._latest.values() for ref in versions]

    # Conditions

    def enter(self, condition: Condition) -> None:
        """Writes from now on happen where this holds too."""
        self._conditions.append(condition)

    def leave(self) -> None:
        self._conditions.pop()

    def current(self, value: Value, entered: dict[str, tuple[Ref, ...]]) -> Value:
        """A memory at the beginning of a further branch: as those before have left it."""
        if isinstance(value, Stored) and value.versions == entered.get(value.name):
            return self._version(value)
        return value

    def present(self) -> dict[str, tuple[Ref, ...]]:
        """The latest versions of all memories."""
        return {name: tuple(versions) for name, versions in self._latest.items()}

    def check_latest(self, value: Stored) -> None:
        """Raise Unkept for a version that writes were made behind of."""
        if value.versions != tuple(self._latest[value.name]):
            raise Unkept(value.name, "what is written into it is given up")

    def _version(self, memory: Stored) -> Stored:
        return memory.at(tuple(self._latest[memory.name]))

    def joined(self, then: Stored, otherwise: Stored) -> Stored:
        """The memory behind branches: writes were made conditional, so the latest version is the one."""
        if then.name != otherwise.name:
            raise Unkept(then.name, "a branch exchanges it for another")
        return self._version(then)

    # Accesses

    def read(self, memory: Stored, indices: Sequence[Ref]) -> Ref:
        """An element as flattening carries it."""
        bank, address = self._place(memory, indices)
        builder, element = self._builder, memory.element
        version = memory.versions[bank]
        while (made := self._written.get(version)) is not None and self._is_elsewhere(made):
            version = made.before
        self._seen.add(version)
        word = builder.op("tensor.index", version, address)
        self._reads[memory.name].add(word)
        if isinstance(element, FloatType):
            mark(builder, element, word)
            return word
        if isinstance(element, BoolType):
            return builder.op("bits.test", word, index=0)
        if isinstance(element, FixType):
            return scalars.of_raw(builder, builder.cast(word, element.raw), element)
        return builder.cast(word, element)

    def write(self, memory: Stored, value: Ref, indices: Sequence[Ref]) -> Stored:
        """The memory with one element replaced, where the conditions around hold."""
        if memory.versions != tuple(self._latest[memory.name]):
            raise Unkept(memory.name, "it is written as it was before another write")
        bank, address = self._place(memory, indices)
        builder, before = self._builder, memory.versions[bank]
        conditions, holds = tuple(self._conditions), self._all([one.holds for one in self._conditions])
        word = self._word(value, memory.element)
        other = self._written.get(before)
        if other is not None and before not in self._seen and self._is_elsewhere(other):
            # One of two branches: the write is that of the one taken.
            assert holds is not None and other.holds is not None
            word = builder.select(holds, word, other.value)
            address = builder.select(holds, *_alike(builder, address, other.address))
            conditions = tuple(one for one in conditions if one in other.conditions)
            holds, before = builder.op("bits.or", holds, other.holds), other.before
        else:
            self._writes[memory.name] += 1
        if holds is not None and builder.value(holds) == 0:
            return memory
        version = builder.op("tensor.update", before, word, address)
        if holds is not None and builder.value(holds) is None:
            version = builder.select(holds, version, before)
        self._written[version] = _Written(before, word, address, conditions, holds)
        self._latest[memory.name][bank] = version
        return self._version(memory)

    def _is_elsewhere(self, made: _Written) -> bool:
        """Whether a write was made in a branch that is not taken where this one is."""
        return any(
            one.selector == own.selector and one.number != own.number
            for one in made.conditions for own in self._conditions
        )

    def _all(self, conditions: Sequence[Ref]) -> Ref | None:
        """That all of them hold; None for no condition."""
        joined: Ref | None = None
        for condition in conditions:
            joined = condition if joined is None else self._builder.op("bits.and", joined, condition)
        return joined

    def _word(self, value: Ref, element: Type) -> Ref:
        word = IntType(width_of(element), False)
        if isinstance(element, FloatType):
            return canonical(self._builder, element, value)
        return self._builder.cast(scalars.raw_of(self._builder, value), word)

    def _place(self, memory: Stored, indices: Sequence[Ref]) -> tuple[int, Ref]:
        """The bank and the address of an element: row-major, every index within its axis."""
        builder, bank = self._builder, 0
        for axis in range(memory.axes):
            known = builder.value(indices[axis])
            if known is None:
                raise Unkept(memory.name, "an axis of banks has an index that is not constant", axis)
            bank = bank * memory.shape[axis] + min(max(known, 0), memory.shape[axis] - 1)
        rest, extents = indices[memory.axes :], memory.shape[memory.axes :]
        if any(builder.value(index) is None for index in rest):
            self._moving.add(memory.name)
        if len(rest) == 1:
            return bank, rest[0]
        kind = IntType(max(1, (math.prod(extents) - 1).bit_length()), False)
        address = builder.const(kind, 0)
        for index, extent in zip(rest, extents):
            held = builder.cast(self._within(index, extent), kind)
            scaled = builder.op("integer.mul", address, builder.const(kind, extent))
            address = builder.op("integer.add", scaled, held)
        return bank, address

    def _within(self, index: Ref, extent: int) -> Ref:
        """An index held within its axis, as the element that it names is."""
        builder = self._builder
        low, high = builder.range(index)
        if high > extent - 1:
            index = builder.op("integer.min", index, builder.const(index.type, extent - 1))
        if low < 0:
            index = builder.op("integer.max", index, builder.const(index.type, 0))
        return index

    def better_apart(self, registers_suffice: frozenset[str]) -> str | None:
        """State that had better be registers: never reached by a moving index, or by too many at once."""
        for name in self._latest:
            banks = len(self._latest[name])
            ports = len(self._reads[name]) > _MOST_READS * banks or self._writes[name] > _MOST_WRITES * banks
            if name in registers_suffice and (name not in self._moving or ports):
                return name
        return None


def _alike(builder: Builder, one: Ref, other: Ref) -> tuple[Ref, Ref]:
    """Two addresses in one type, as indices of any types mean them."""
    if one.type == other.type:
        return one, other
    low, high = (bound(a, b) for bound, a, b in zip((min, max), builder.range(one), builder.range(other)))
    kind = IntType.holding(low, high)
    return builder.cast(one, kind), builder.cast(other, kind)


def chosen(builder: Builder, selector: Ref, number: int, count: int) -> Ref:
    """Whether a branch is the one that its selector names, which is clamped."""
    if selector.type == BOOL:
        return selector if number else builder.op("bits.not", selector)
    low, high = builder.range(selector)
    at = builder.const(selector.type, number)
    if number == 0 and low < 0:
        return builder.op("compare.le", selector, at)
    if number == count - 1 and high > number:
        return builder.op("compare.ge", selector, at)
    if not low <= number <= high:
        return builder.const(BOOL, 0)
    return builder.op("compare.eq", selector, at)

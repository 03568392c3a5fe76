"""Which accesses that happen at once meet in a bank: lanes of a vector, rounds in a pipeline.

A cyclic bank holds every n-th element along an axis, a block bank a stretch. After the conditions under which
linear accesses are free of conflicts: Wang, Li, Zhang, Cong, "Memory partitioning for multidimensional arrays
in high-level synthesis", DAC 2013.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from kera_hw.loops.program import Alloc, Bank, Buffer, For, Index, Load, Store, Var, statements
from kera_hw.loops.spans import spans_within
from kera_hw.ops.intervals import Interval

_Residue = tuple[tuple[Var, int], ...]
_Bank = tuple[tuple[_Residue, ...], tuple[int, ...]]
"""By banked axis: what is fixed meanwhile of an index, and the rest of it as the number of a bank."""


def lane_conflict(loop: For, buffers: Mapping[str, Buffer]) -> Iterator[str]:
    """Accesses of a vector's body in which two lanes may reach different elements of one bank."""
    own = {item.buffer.name for item in statements(loop.body) if isinstance(item, Alloc)}
    varying = _scalars(loop)
    for item in statements(loop.body, that_run=True):
        if not isinstance(item, (Load, Store)) or item.buffer in own:
            continue
        banks = buffers[item.buffer].storage.banks if item.buffer in buffers else ()
        if banks and _lanes_meet(item.index, loop, banks, buffers[item.buffer], varying):
            yield f"Lanes of `{loop.var.name}` may meet in a bank of `{item.buffer}`."


def _scalars(loop: For) -> dict[Var, Interval]:
    """What may differ from lane to lane, the loop's variable aside: all but counters of inner loops."""
    counters = {item.var for item in statements(loop.body) if isinstance(item, For)}
    return {var: span for var, span in spans_within(loop.body).items() if var not in counters}


def _lanes_meet(
    index: Index, loop: For, banks: tuple[Bank, ...], buffer: Buffer, varying: Mapping[Var, Interval]
) -> bool:
    if any(var in varying for part in index for var, _ in part.terms):
        return True
    steps = [dict(part.terms).get(loop.var, 0) for part in index]
    if not any(steps):
        return False  # one element for all lanes
    return loop.count > prod(bank.count for bank in banks) or any(
        all(_same_bank(steps[bank.axis] * apart, bank, buffer.shape[bank.axis]) for bank in banks)
        for apart in range(1, loop.count)
    )


def _same_bank(apart: int, bank: Bank, extent: int) -> bool:
    """Whether elements so far apart along an axis may lie in one bank."""
    if bank.spread == "cyclic":
        return apart % bank.count == 0
    return abs(apart) < -(-extent // bank.count)


PORTS = 1
"""Loads, and stores, that a bank of a memory takes in a cycle."""


def port_conflict(loop: For, buffers: Mapping[str, Buffer]) -> Iterator[str]:
    """Memories whose banks are accessed more often in a round than an interval has cycles."""
    interval, moving = loop.schedule.initiation_interval, {*spans_within(loop.body), loop.var}
    moving |= {item.inner for item in loop.carried}
    counts: dict[tuple[str, str], list[Index]] = {}
    for item in statements(loop.body, that_run=True):
        if isinstance(item, (Load, Store)) and item.buffer in buffers:
            memory = buffers[item.buffer].storage.memory
            if memory in ("lut_ram", "block_ram"):
                kind = "stored to" if isinstance(item, Store) else "loaded from"
                counts.setdefault((item.buffer, kind), []).append(item.index)
    for (name, kind), indices in counts.items():
        most = _busiest(indices, buffers[name], moving)
        if most > PORTS * interval:
            yield (
                f"A bank of `{name}` is {kind} {most} times a round of `{loop.var.name}`, which starts one "
                f"every {interval} cycles."
            )


def _busiest(indices: list[Index], buffer: Buffer, moving: set[Var]) -> int:
    """Accesses that a bank may see in a round, at most."""
    places = [_bank_of(index, buffer, moving) for index in indices]
    if any(place is None for place in places):
        return len(places)
    rests = {rest for place in places if place is not None for rest, _ in [place]}
    if len(rests) > 1:
        return len(places)  # told apart by what is not known here
    return max(places.count(place) for place in places)


def _bank_of(index: Index, buffer: Buffer, moving: set[Var]) -> _Bank | None:
    """The bank that an access reaches in all rounds, up to what is fixed meanwhile; None if it changes."""
    rests: list[_Residue] = []
    numbers: list[int] = []
    for bank in buffer.storage.banks:
        part = index[bank.axis]
        if bank.spread == "block":
            if part.terms:
                return None
            numbers.append(part.constant // -(-buffer.shape[bank.axis] // bank.count))
            rests.append(())
            continue
        left = [(var, factor % bank.count) for var, factor in part.terms if factor % bank.count]
        if any(var in moving for var, _ in left):
            return None
        rests.append(tuple(sorted(left, key=lambda term: term[0].name)))
        numbers.append(part.constant % bank.count)
    return tuple(rests), tuple(numbers)

"""Addresses: what does not change in a loop is computed before it, what grows by a step is stepped.

An address is a base, an offset and a sum of variables times bytes. Counters of loops around are added outside
the loops within which they stay, each sum once; the innermost counter is an index where the machine scales by
its bytes, and else a pointer that the loop moves on.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kera_hw.cpu_gpu.machine.code import Item, Mem, VReg
from kera_hw.cpu_gpu.select.isa import Isa
from kera_hw.loops.program import Var

T = TypeVar("T")
_SCALES = (1, 2, 4, 8)
_FAR = 1 << 31


@dataclass(slots=True)
class Scope:
    """A loop while its body is written. ``before`` and ``inside`` are places in the code: ahead of the loop,
    and at the start of its body. ``made``: how many virtual registers there were before. ``steps``: pointers
    to be moved on at the end of each round."""

    counter: Var
    register: VReg
    step: int
    before: int
    inside: int
    made: int
    sums: dict[object, VReg] = field(default_factory=dict[object, VReg])
    pointers: dict[object, VReg] = field(default_factory=dict[object, VReg])
    lanes: dict[VReg, VReg] = field(default_factory=dict[VReg, VReg])
    constants: dict[object, VReg | None] = field(default_factory=dict[object, VReg | None])
    steps: list[tuple[VReg, int]] = field(default_factory=list[tuple[VReg, int]])


class Addresses:
    """``scopes``: the loops around, the outermost first."""

    def __init__(self, isa: Isa) -> None:
        self._isa = isa
        self.scopes: list[Scope] = []

    def of(
        self, base: VReg, offset: int, terms: Mapping[Var, int], index: Callable[[Var], VReg]
    ) -> Mem:
        """Where ``base + offset + sum of variable * bytes`` is; ``index`` gives scalars but counters."""
        depth = {scope.counter: k for k, scope in enumerate(self.scopes)}
        counters = sorted((depth[var], var) for var in terms if var in depth)
        place: Mem
        if not counters:
            place = Mem(base)
        else:
            *outer, (level, last) = counters
            start = self._sum(base, tuple((k, var, terms[var]) for k, var in outer))
            each = terms[last]
            if each in _SCALES and level == len(self.scopes) - 1:
                place = Mem(start, self.scopes[level].register, each)
            elif level == len(self.scopes) - 1:
                place = Mem(self._pointer(start, level, each))
            else:
                place = Mem(self._sum(base, tuple((k, var, terms[var]) for k, var in counters)))
        for var, each in terms.items():
            if var not in depth:
                place = self._plus(place, index(var), each)
        if not -_FAR <= offset < _FAR:
            far = self._isa.number(offset)
            return Mem(self._flat(self._plus(place, far, 1)))
        return replace(place, offset=offset)

    def _plus(self, place: Mem, register: VReg, each: int) -> Mem:
        if each not in _SCALES:
            register, each = self._isa.times(register, each), 1
        return Mem(self._flat(place), register, each)

    def _flat(self, place: Mem) -> VReg:
        assert isinstance(place.base, VReg)
        if place.index is None:
            return place.base
        return self._isa.sum_of(place.base, place.index, place.scale, 0)

    def _sum(self, base: VReg, terms: tuple[tuple[int, Var, int], ...]) -> VReg:
        """Base and counters added, at the start of the innermost counter's loop."""
        if not terms:
            return base
        *outer, (level, _, each) = terms
        scope = self.scopes[level]
        key = (base, terms)
        found = scope.sums.get(key)
        if found is None:
            start = self._sum(base, tuple(outer))
            register = scope.register

            def write() -> VReg:
                scaled = (register, each) if each in _SCALES else (self._isa.times(register, each), 1)
                return self._isa.sum_of(start, *scaled, 0)

            found = scope.sums[key] = self._written(level, False, write)
        return found

    def _pointer(self, start: VReg, level: int, each: int) -> VReg:
        """A pointer that the loop moves on by a step's bytes."""
        scope = self.scopes[level]
        found = scope.pointers.get((start, each))
        if found is None:
            def write() -> VReg:
                first = self._isa.times(scope.register, each)
                return self._isa.sum_of(start, first, 1, 0)

            found = scope.pointers[start, each] = self._written(level, True, write)
            scope.steps.append((found, each * scope.step))
        return found

    def constant(
        self, loop: Var, key: object, write: Callable[[], VReg | None]
    ) -> VReg | None:
        """What ``write`` makes ahead of the loop, once for each key; None if it makes nothing."""
        level = next(k for k, scope in enumerate(self.scopes) if scope.counter == loop)
        known = self.scopes[level].constants
        if key not in known:
            known[key] = self._written(level, True, write)
        return known[key]

    def ahead(self, loop: Var, source: VReg, write: Callable[[], VReg]) -> VReg:
        """What ``write`` makes of a register: ahead of the loop, if that is when the register is made."""
        level = next(k for k, scope in enumerate(self.scopes) if scope.counter == loop)
        scope = self.scopes[level]
        if source.number > scope.made:
            return write()
        if source not in scope.lanes:
            scope.lanes[source] = self._written(level, True, write)
        return scope.lanes[source]

    def ahead_of_all(self, loop: Var, sources: Sequence[VReg], write: Callable[[], VReg]) -> VReg:
        """What ``write`` makes of several registers: ahead of the loop, once, if all are made before it."""
        scope = next(scope for scope in self.scopes if scope.counter == loop)
        if any(source.number > scope.made for source in sources):
            return write()
        found = self.constant(loop, tuple(sources), write)
        assert found is not None
        return found

    def _written(self, level: int, before: bool, write: Callable[[], T]) -> T:
        """What ``write`` appends, moved ahead of a loop or to the start of its body."""
        code = self._isa.code
        whole, code.items = code.items, list[Item]()
        found = write()
        new, code.items = code.items, whole
        scope = self.scopes[level]
        place = scope.before if before else scope.inside
        code.items[place:place] = new
        count = len(new)
        for k, other in enumerate(self.scopes):
            if k > level or (k == level and before):
                other.before += 0 if k == level else count
                other.inside += count
        if before:
            scope.before += count
        else:
            scope.inside += count
        return found

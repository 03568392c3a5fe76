"""Assertions, cover points and prints in functions: where they stand, and the variables that hold them.

Each assertion and cover point has a hidden variable in every function that reaches it: whether it failed, or
was met. The record of what was printed is another one: how many prints, and for each which and its words.
Hidden variables go through branches and loops as others do; a call adds what the callee gives to the
caller's.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import Part, parts
from kera_hw.support import SourceFile, Span
from kera_hw.types import (
    BOOL,
    U32,
    UNIT,
    IntType,
    TensorType,
    Type,
    bit_width,
    element_type,
    shape_of,
)

SITE = IntType(16, False)
MOST_WORDS = 1 << 16  # of a record


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One assertion, cover point or print in the source."""

    part: hir.Observe | hir.Op
    file: SourceFile

    @property
    def span(self) -> Span:
        return self.part.span

    @property
    def label(self) -> str:
        return self.part.label if isinstance(self.part, hir.Observe) else str(self.part.attrs["label"])


@dataclass(frozen=True, slots=True)
class Sites:
    """What a function observes, itself and by its callees: each place once, and the size of its record."""

    checks: tuple[Site, ...] = ()
    prints: tuple[Site, ...] = ()
    entries: int = 0
    words: int = 0
    width_bits: int = 1

    @property
    def leaves(self) -> int:
        """Results of the function's region that are observations."""
        return len(self.checks) + (3 if self.entries else 0)

    @property
    def record_types(self) -> tuple[Type, ...]:
        shape = (self.entries, self.words)
        return U32, TensorType(SITE, (self.entries,)), TensorType(IntType(self.width_bits, False), shape)


class Observations:
    """The sites of functions, found once, and the hidden variables of the one being lowered."""

    def __init__(self) -> None:
        self._sites: dict[hir.Function, Sites] = {}
        self._vars: dict[int, hir.Var] = {}  # by id of the part
        self.record = hir.Var("<printed>", UNIT, True, Span(0, 0))

    def sites(self, function: hir.Function) -> Sites:
        if function not in self._sites:
            assert function.body is not None
            self._sites[function] = self.within(function.body, function.file)
        return self._sites[function]

    def within(self, root: Part, file: SourceFile) -> Sites:
        """The sites of a body and what it calls, by the order in which they stand."""
        checks: dict[int, Site] = {}
        prints: dict[int, Site] = {}
        entries, words, width_bits = 0, 1, 1
        for part, times in _counted(root, 1):
            if isinstance(part, hir.Observe):
                inner = Sites((Site(part, file),))
            elif isinstance(part, hir.Op) and part.name == "effect.print":
                kinds = [arg.type for arg in part.args]
                width_bits = max([width_bits, *(bit_width(element_type(kind)) for kind in kinds)])
                inner = Sites((), (Site(part, file),), 1, sum(map(_elements, kinds)))
            elif isinstance(part, hir.Call):
                inner = self.sites(part.function)
            elif isinstance(part, hir.StreamStep | hir.StreamApply):
                inner = self.sites(part.stream)
            else:
                continue
            checks.update((id(site.part), site) for site in inner.checks)
            prints.update((id(site.part), site) for site in inner.prints)
            entries += inner.entries * times
            words, width_bits = max(words, inner.words), max(width_bits, inner.width_bits)
        return Sites(tuple(checks.values()), tuple(prints.values()), entries, words, width_bits)

    def var(self, site: Site) -> hir.Var:
        assert isinstance(site.part, hir.Observe)
        return self.var_of(site.part)

    def var_of(self, part: hir.Observe) -> hir.Var:
        return self._vars.setdefault(id(part), hir.Var(f"<{part.kind}>", BOOL, True, part.span))

    def assigned(self, part: Part) -> Iterator[hir.Var]:
        """The hidden variables that a part of the tree itself changes."""
        if isinstance(part, hir.Observe):
            yield self.var_of(part)
        elif isinstance(part, hir.Op) and part.name == "effect.print":
            yield self.record
        elif isinstance(part, hir.Call | hir.StreamStep | hir.StreamApply):
            found = self.sites(part.function if isinstance(part, hir.Call) else part.stream)
            yield from map(self.var, found.checks)
            if found.entries:
                yield self.record


def _counted(part: Part, times: int) -> Iterator[tuple[Part, int]]:
    """All parts in order, each with how many times at most it is evaluated."""
    pending = [(part, times)]
    while pending:
        part, times = pending.pop()
        yield part, times * part.length if isinstance(part, hir.StreamApply) else times
        if isinstance(part, hir.For):
            times *= part.count
        elif isinstance(part, hir.While):
            times *= part.max_count + 1  # the condition is evaluated once more than the body
        pending += [(item, times) for item in parts(part)[::-1]]


def _elements(kind: Type) -> int:
    return int(np.prod(shape_of(kind), dtype=np.int64))

"""Values as the index proof sees them: expressions over unknowns, without any of the program's names.

Abstract execution binds variables to symbols. Equal symbols are one object and have one value, so what is
learnt about a value holds whatever it is called, wherever it was computed and whatever is assigned after:
assignment binds a variable to another symbol, and the old one still stands for the old value.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kera_hw.frontend.sema.ranges.residue import ANY, Residue
from kera_hw.ops.intervals import MaybeInterval
from kera_hw.types import BoolType, Type


@dataclass(eq=False, slots=True)
class Head:
    """A variable leaf at the head of a loop, the constants that its values were compared with, and those of
    them that were the ends of axes."""

    name: str
    thresholds: set[int] = field(default_factory=set[int])
    limits: set[int] = field(default_factory=set[int])


@dataclass(frozen=True, slots=True)
class Known:
    """What holds of a value: ``residue`` has a meaning only where there is an interval."""

    interval: MaybeInterval
    residue: Residue = ANY


@dataclass(eq=False, slots=True)
class Symbol:
    """``base`` holds wherever the symbol is used; conditions add to it (see ``State``), unless they are about
    none of its parts: ``parts`` has the bits of these, ``own`` its own. ``bare`` is what is known then, once
    that is worked out."""

    name: str
    kind: Type
    args: tuple[Symbol, ...]
    attrs: Mapping[str, Any]
    base: Known
    depth: int
    heads: frozenset[Head]
    own: int
    parts: int
    value: int | float | None = None  # of a scalar constant
    bare: Known | None = None

    @property
    def is_condition(self) -> bool:
        return isinstance(self.kind, BoolType)


Symbols = tuple[Symbol, ...]

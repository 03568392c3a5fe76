"""Regions under construction: variables as SSA leaves, and what a region captures from around it.

A region is closed, so a name from outside becomes a parameter the first time it is used; constants never
do. Variables are tracked leaf by leaf: a branch that assigns one field of a struct changes one leaf.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from kera_hw.frontend.sema.tree.hir import Var
from kera_hw.graph.node import Ref, Region
from kera_hw.graph.store import Store
from kera_hw.types import Type

VarLeaf = tuple[Var, int]


def is_constant(ref: Ref) -> bool:
    return ref.node.opcode == "core.constant"


class Captures:
    """Operands taken from ``parent``, in order of first use, shared by regions that take the same operands
    (the arms of a branch, the condition and body of a while)."""

    def __init__(self, parent: Frame, first: int) -> None:
        self.parent = parent
        self.first = first
        self.refs: list[Ref] = []
        self._params: dict[Ref, Ref] = {}

    def bring(self, ref: Ref) -> Ref:
        """What stands inside for a value of the parent."""
        if is_constant(ref):
            return ref
        found = self._params.get(ref)
        if found is None:
            found = self.parent.store.param(self.first + len(self.refs), ref.type)
            self._params[ref] = found
            self.refs.append(ref)
        return found


class Frame:
    """One region being built. ``leading`` are the types of its parameters before any capture."""

    def __init__(self, store: Store, leading: Sequence[Type] = (), captures: Captures | None = None) -> None:
        self.store = store
        self.leading = tuple(leading)
        self.captures = captures
        # A leaf that is None still has the parent's value.
        self._env: dict[Var, list[Ref | None]] = {}

    def knows(self, var: Var) -> bool:
        """Whether the variable lives here or outside (rather than not yet, or in a closed inner block)."""
        return var in self._env or (self.captures is not None and self.captures.parent.knows(var))

    def leaf_count(self, var: Var) -> int:
        if var in self._env:
            return len(self._env[var])
        assert self.captures is not None, f"variable {var.name} is used before it is bound"
        return self.captures.parent.leaf_count(var)

    def leaf(self, var: Var, index: int) -> Ref:
        entry = self._env.get(var)
        own = entry[index] if entry is not None else None
        if own is not None:
            return own
        assert self.captures is not None, f"variable {var.name} is used before it is bound"
        return self.captures.bring(self.captures.parent.leaf(var, index))

    def leaves(self, var: Var, low: int = 0, high: int | None = None) -> list[Ref]:
        stop = self.leaf_count(var) if high is None else high
        return [self.leaf(var, index) for index in range(low, stop)]

    def bind(self, var: Var, leaves: Sequence[Ref]) -> None:
        """Declare a variable in this region (or replace it whole)."""
        self._env[var] = list(leaves)

    def assign(self, var: Var, low: int, leaves: Sequence[Ref]) -> None:
        """Give the leaves from ``low`` on new values."""
        if var not in self._env:
            self._env[var] = [None] * self.leaf_count(var)
        self._env[var][low : low + len(leaves)] = leaves

    def assign_all(self, targets: Iterable[VarLeaf], values: Iterable[Ref]) -> None:
        for (var, index), value in zip(targets, values):
            self.assign(var, index, [value])

    def changed(self) -> list[VarLeaf]:
        """Outside leaves given a value in this region, in order of their variable's first assignment."""
        if self.captures is None:
            return []
        outside = self.captures.parent
        return [
            (var, index)
            for var, entry in self._env.items() if outside.knows(var)
            for index, leaf in enumerate(entry) if leaf is not None
        ]

    def region(self, results: Sequence[Ref]) -> Region:
        captured = () if self.captures is None else tuple(ref.type for ref in self.captures.refs)
        return self.store.region((*self.leading, *captured), results)

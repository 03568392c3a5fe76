"""Topological order, deterministic: ties are broken by first appearance."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class CycleError(Exception):
    """The relation has a cycle; ``cycle`` lists its members in order."""

    def __init__(self, cycle: list[object]) -> None:
        self.cycle = cycle
        super().__init__(f"cycle of {len(cycle)}")


def toposort(roots: Iterable[T], predecessors: Callable[[T], Iterable[T]]) -> list[T]:
    """All nodes reachable from ``roots``, each after its predecessors. Iterative: depth is unbounded.

    Raises CycleError when the relation is cyclic.
    """
    order: list[T] = []
    state: dict[T, bool] = {}  # False while on the current path, True when emitted
    for root in roots:
        if root in state:
            continue
        state[root] = False
        stack = [(root, iter(predecessors(root)))]
        while stack:
            node, remaining = stack[-1]
            for item in remaining:
                if item not in state:
                    state[item] = False
                    stack.append((item, iter(predecessors(item))))
                    break
                if not state[item]:
                    path = [entry[0] for entry in stack]
                    raise CycleError(list(path[path.index(item):]))
            else:
                state[node] = True
                order.append(node)
                stack.pop()
    return order

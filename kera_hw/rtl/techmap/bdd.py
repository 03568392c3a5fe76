"""Boolean functions as reduced ordered binary decision diagrams, for conditions of few signals.

Bryant, "Graph-based algorithms for Boolean function manipulation", 1986. What a function may become where
nobody asks: Coudert and Madre, "A unified framework for the formal verification of sequential circuits",
ICCAD 1990.
"""
from __future__ import annotations

from collections.abc import Sequence

FALSE, TRUE = 0, 1
_FAR = 1 << 30  # the variable of constants, behind all others


class TooLargeError(Exception):
    """More nodes than were allowed."""


class Diagrams:
    """A function is a number; equal functions are one. Variables come in the order of their numbers."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.variable = [_FAR, _FAR]
        self.low, self.high = [0, 1], [0, 1]
        self._unique: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}
        self._restricted: dict[tuple[int, int], int] = {}

    def node(self, variable: int, low: int, high: int) -> int:
        """``high`` where the variable is set, else ``low``."""
        if low == high:
            return low
        key = (variable, low, high)
        found = self._unique.get(key)
        if found is None:
            found = len(self.variable)
            if found > self.most:
                raise TooLargeError
            self.variable.append(variable)
            self.low.append(low)
            self.high.append(high)
            self._unique[key] = found
        return found

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """``condition ? then : otherwise``."""
        if condition <= TRUE:
            return then if condition else otherwise
        if then == otherwise:
            return then
        if (then, otherwise) == (TRUE, FALSE):
            return condition
        key = (condition, then, otherwise)
        found = self._choices.get(key)
        if found is None:
            top = min(self.variable[f] for f in key)
            zero, one = ([self._side(f, top, value) for f in key] for value in (0, 1))
            found = self.node(top, self.choose(*zero), self.choose(*one))
            self._choices[key] = found
        return found

    def _side(self, function: int, variable: int, value: int) -> int:
        if self.variable[function] != variable:
            return function
        return self.high[function] if value else self.low[function]

    def invert(self, function: int) -> int:
        return self.choose(function, FALSE, TRUE)

    def both(self, a: int, b: int) -> int:
        return self.choose(a, b, FALSE)

    def differ(self, a: int, b: int) -> int:
        return self.choose(a, self.invert(b), b)

    def apply(self, table: int, operands: Sequence[int]) -> int:
        """A truth table of functions: bit i is its value where they show i."""
        if not operands:
            return table & 1
        *rest, top = operands
        half = 1 << len(rest)
        return self.choose(top, self.apply(table >> half, rest), self.apply(table & (1 << half) - 1, rest))

    def within(self, bits: Sequence[int], low: int, high: int) -> int:
        """Whether the number that functions spell, lowest bit first, lies between two others."""
        above = below = TRUE  # of the bits so far: not less than ``low``'s, not more than ``high``'s
        for k, bit in enumerate(bits):
            above = self.both(bit, above) if low >> k & 1 else self.choose(bit, TRUE, above)
            below = self.choose(bit, below, TRUE) if high >> k & 1 else self.both(self.invert(bit), below)
        return self.both(above, below)

    def restricted(self, function: int, care: int) -> int:
        """A function that is the same where ``care`` is set, and no larger if that is easy to see."""
        if care <= TRUE or function <= TRUE:
            return function
        key = (function, care)
        if key not in self._restricted:
            self._restricted[key] = self._restrict(function, care)
        return self._restricted[key]

    def _restrict(self, function: int, care: int) -> int:
        top, own = self.variable[care], self.variable[function]
        if top < own:
            either = self.choose(self.low[care], TRUE, self.high[care])
            return self.restricted(function, either)
        zero, one = (self._side(care, own, value) for value in (0, 1))
        if zero == FALSE:
            return self.restricted(self.high[function], one)
        if one == FALSE:
            return self.restricted(self.low[function], zero)
        return self.node(
            own, self.restricted(self.low[function], zero), self.restricted(self.high[function], one)
        )

    def below(self, function: int) -> list[int]:
        """The nodes of a function."""
        found: dict[int, None] = {}
        pending = [function]
        while pending:
            node = pending.pop()
            if node > TRUE and node not in found:
                found[node] = None
                pending += [self.low[node], self.high[node]]
        return list(found)

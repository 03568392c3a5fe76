"""Gates of two inputs with inversions on the wires, hashed: AND and XOR over numbered leaves.

A *literal* is twice a node's number, plus one where its complement is meant. Node 0 is the constant 0.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from kera_hw.rtl.techmap.bitwise.shapes import Shape, shape

LEAF, AND, XOR = 0, 1, 2
FALSE, TRUE = 0, 1


class Aig:
    """The gates so far; a gate's inputs have smaller numbers than the gate."""

    def __init__(self) -> None:
        self.kind: list[int] = [LEAF]
        self.left: list[int] = [0]
        self.right: list[int] = [0]
        self._memo: dict[tuple[int, int, int], int] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def leaf(self) -> int:
        """A new leaf's literal."""
        return self._new(LEAF, 0, 0)

    def _new(self, kind: int, a: int, b: int) -> int:
        self.kind.append(kind)
        self.left.append(a)
        self.right.append(b)
        return 2 * (len(self.kind) - 1)

    def gates(self) -> int:
        """How many gates there are."""
        return sum(kind != LEAF for kind in self.kind)

    def both(self, a: int, b: int) -> int:
        """``a & b``."""
        found = self.find(AND, a, b)
        return self._made(AND, *sorted((a, b))) if found is None else found

    def differ(self, a: int, b: int) -> int:
        """``a ^ b``."""
        found = self.find(XOR, a, b)
        if found is not None:
            return found
        return self._made(XOR, *sorted((a & ~1, b & ~1))) ^ (a & 1) ^ (b & 1)

    def _made(self, kind: int, a: int, b: int) -> int:
        made = self._new(kind, a, b)
        self._memo[kind, a, b] = made
        return made

    def find(self, kind: int, a: int, b: int) -> int | None:
        """The literal of a gate that is there or needs no gate; None where one would have to be made."""
        if a > b:
            a, b = b, a
        if kind == XOR:
            sign = (a & 1) ^ (b & 1)
            a, b = a & ~1, b & ~1
            if a == b:
                return sign
            if a == FALSE:
                return b ^ sign
            found = self._memo.get((XOR, a, b))
            return None if found is None else found ^ sign
        if a == FALSE or a ^ 1 == b:
            return FALSE
        if a in (TRUE, b):
            return b
        found = self._memo.get((AND, a, b))
        return self._beyond(a, b) if found is None else found

    def _beyond(self, a: int, b: int) -> int | None:
        """``a & b`` where one input is an AND that already decides it."""
        for x, y in ((a, b), (b, a)):
            node = y >> 1
            if self.kind[node] != AND:
                continue
            inputs = (self.left[node], self.right[node])
            if y & 1 == 0:
                if x in inputs:
                    return y
                if x ^ 1 in inputs:
                    return FALSE
            elif x ^ 1 in inputs:
                return x
        return None

    def either(self, a: int, b: int) -> int:
        return self.both(a ^ 1, b ^ 1) ^ 1

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """``condition ? then : otherwise``."""
        if then == otherwise ^ 1:
            return self.differ(condition, otherwise)
        return self.either(self.both(condition, then), self.both(condition ^ 1, otherwise))

    def function(self, table: int, inputs: Sequence[int]) -> int:
        """The gates of a truth table over literals."""
        return self.build(shape(table, len(inputs)), inputs)

    def build(self, made: Shape, inputs: Sequence[int]) -> int:
        """The gates of a shape over literals."""
        signals = [FALSE, *inputs]
        for kind, a, b in made.gates:
            x, y = signals[a >> 1] ^ (a & 1), signals[b >> 1] ^ (b & 1)
            signals.append(self.both(x, y) if kind == AND else self.differ(x, y))
        return signals[made.output >> 1] ^ (made.output & 1)

    def live(self, outputs: Iterable[int]) -> list[bool]:
        """Which nodes the outputs need."""
        found = [False] * len(self)
        for literal in outputs:
            found[literal >> 1] = True
        for node in range(len(self) - 1, 0, -1):
            if found[node] and self.kind[node] != LEAF:
                found[self.left[node] >> 1] = True
                found[self.right[node] >> 1] = True
        return found

    def references(self, outputs: Iterable[int]) -> list[int]:
        """How many live gates and outputs read each node."""
        outputs = list(outputs)
        live = self.live(outputs)
        found = [0] * len(self)
        for literal in outputs:
            found[literal >> 1] += 1
        for node, kind in enumerate(self.kind):
            if live[node] and kind != LEAF:
                found[self.left[node] >> 1] += 1
                found[self.right[node] >> 1] += 1
        return found

    def swept(self, outputs: Sequence[int], leaves: int) -> tuple[Aig, list[int]]:
        """A copy with the first ``leaves`` leaves and what the outputs need, hashed anew."""
        new = Aig()
        literal = [FALSE] * len(self)
        for node in range(1, leaves + 1):
            literal[node] = new.leaf()
        live = self.live(outputs)
        for node in range(leaves + 1, len(self)):
            if live[node]:
                a, b = (literal[x >> 1] ^ (x & 1) for x in (self.left[node], self.right[node]))
                literal[node] = new.both(a, b) if self.kind[node] == AND else new.differ(a, b)
        return new, [literal[x >> 1] ^ (x & 1) for x in outputs]

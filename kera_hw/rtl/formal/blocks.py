"""Tensors of terms: a shape and the elements in row-major order, and how operations move them about."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from kera_hw.graph.node import Node
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, EvalCall, RegionLike
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.types import IntType, Type, element_type, shape_of


@dataclass(frozen=True, slots=True)
class Block:
    """A scalar (shape ()) or tensor."""

    shape: tuple[int, ...]
    items: tuple[Term, ...]

    @property
    def item(self) -> Term:
        """The term of a scalar."""
        assert not self.shape
        return self.items[0]

    def rows(self) -> list[Block]:
        """The blocks along axis 0."""
        size = prod(self.shape[1:])
        return [Block(self.shape[1:], self.items[k * size : (k + 1) * size]) for k in range(self.shape[0])]


def scalar(term: Term) -> Block:
    return Block((), (term,))


def stacked(shape: tuple[int, ...], rows: Sequence[Block]) -> Block:
    """Blocks along a new outer axis."""
    return Block(shape, tuple(item for row in rows for item in row.items))


class _OneItem:
    """Evaluation of what only moves data: a batch of one."""

    batch = 1

    def run(self, region: RegionLike, args: Sequence[Array], batch: int | None = None) -> list[Array]:
        raise AssertionError("moving data runs no region")


MOVING = frozenset(
    f"tensor.{verb}" for verb in
    ("reshape", "permute", "broadcast", "concat", "reverse", "stack", "pad", "shift_in")
) | {"memory.transfer"}
"""Operations that place operands' elements by attributes alone."""


def move(node: Node, args: Sequence[Block]) -> Block:
    """The registry's own evaluation on the elements' numbers says where each of them goes."""
    pool = [item for arg in args for item in arg.items]
    numbers: list[Array] = []
    used = 0
    for arg in args:
        numbers.append(np.arange(used, used + len(arg.items)).reshape(1, *arg.shape))
        used += len(arg.items)
    kinds = tuple(ref.type for ref in node.inputs)
    call = EvalCall(_OneItem(), tuple(numbers), kinds, node.types, dict(node.attrs))
    (placed,) = OPS[node.opcode].evaluate(call)
    return Block(shape_of(node.types[0]), tuple(pool[int(k)] for k in placed.ravel()))


@dataclass(frozen=True, slots=True)
class Position:
    """A dynamic index with its type; it means the nearest place there is."""

    term: Term
    kind: IntType

    def choose(self, terms: Terms, options: Sequence[Block]) -> Block:
        """The option that the index names."""
        result = options[-1]
        for place in reversed(range(len(options) - 1)):
            at_most = self._at_most(terms, place)
            pairs = zip(options[place].items, result.items, strict=True)
            result = Block(result.shape, tuple(terms.ite(at_most, a, b) for a, b in pairs))
        return result

    def hits(self, terms: Terms, place: int, last: int) -> Term:
        """Whether the index, clamped to [0, last], is ``place``."""
        above = terms.const(1, 1) if place == 0 else terms.bit_not(self._at_most(terms, place - 1))
        return above if place == last else terms.bit_and(above, self._at_most(terms, place))

    def _at_most(self, terms: Terms, place: int) -> Term:
        if place >= self.kind.max:
            return terms.const(1, 1)
        limit = terms.const(place, self.kind.width_bits)
        return terms.less(self.term, limit, self.kind.signed, or_equal=True)


def positions(args: Sequence[Block], kinds: Sequence[Type]) -> list[Position]:
    """Index operands."""
    found: list[Position] = []
    for arg, kind in zip(args, kinds):
        element = element_type(kind)
        assert isinstance(element, IntType)
        found.append(Position(arg.item, element))
    return found


def index(terms: Terms, source: Block, where: Sequence[Position], zero: Term) -> Block:
    """One element, or ``zero`` of a tensor without any."""
    if not source.items:
        return scalar(zero)
    for position in where:
        source = position.choose(terms, source.rows())
    return source


def window(terms: Terms, source: Block, sizes: Sequence[int], where: Sequence[Position]) -> Block:
    """A window at a clamped start."""
    if not where:
        return source
    rows, size = source.rows(), sizes[0]
    inner = [window(terms, row, sizes[1:], where[1:]) for row in rows]
    shape = (size, *sizes[1:])
    starts = range(len(rows) - size + 1)
    return where[0].choose(terms, [stacked(shape, inner[start : start + size]) for start in starts])


def update(terms: Terms, source: Block, value: Term, where: Sequence[Position]) -> Block:
    """One element replaced."""
    items: list[Term] = []
    for old, place in zip(source.items, product(*map(range, source.shape))):
        tests = zip(where, place, source.shape)
        hit = terms.all_of(position.hits(terms, at, extent - 1) for position, at, extent in tests)
        items.append(terms.ite(hit, value, old))
    return Block(source.shape, tuple(items))


def update_window(terms: Terms, source: Block, patch: Block, where: Sequence[Position]) -> Block:
    """A window replaced: every start that fits is one option."""
    if not where:
        return patch
    rows, patches = source.rows(), patch.rows()
    options: list[Block] = []
    for start in range(len(rows) - len(patches) + 1):
        changed = list(rows)
        for k, piece in enumerate(patches):
            changed[start + k] = update_window(terms, rows[start + k], piece, where[1:])
        options.append(stacked(source.shape, changed))
    return where[0].choose(terms, options)


def gather(terms: Terms, source: Block, indices: Block, kind: IntType, zero: Term) -> Block:
    """Rows by index; zeros where there is no row."""
    rows = source.rows()
    shape = (*indices.shape, *source.shape[1:])
    if not rows:
        return Block(shape, (zero,) * prod(shape))
    return stacked(shape, [Position(item, kind).choose(terms, rows) for item in indices.items])

"""Loops that join terms by an operation for which all orders are the same: a tree instead of a chain.

Where terms are there at the same time the tree is the balanced one, neighbours in pairs, level by level; what
is there later is joined later, so that no term waits for others longer than in the loop's own order.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Node, Ref
from kera_hw.loops.contents import indexing, used
from kera_hw.loops.program import Block, For, Op, Operand, Statement, Var
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.rtl.lower.builder import Builder
from kera_hw.types import IntType

_DELAY: Mapping[str, int] = {
    "bits.and": 1, "bits.or": 1, "bits.xor": 1, "bits.not": 1, "control.select": 1,
    "integer.mul": 4, "integer.mul_wide": 4, "control.loop": 64,
}
"""Roughly, in levels of logic; what is not named is a sum or a comparison."""
_SUM = 2
_JOINED = frozenset({Trait.ASSOCIATIVE, Trait.COMMUTATIVE})


@dataclass(frozen=True, slots=True)
class Join:
    """A loop's body: ``work`` makes ``terms``, each of which its op joins with what there is.

    Where the body is around a loop that joins, that is ``inner``, between ``work`` and ``after``.
    """

    ops: tuple[Op, ...]
    work: tuple[Statement, ...]
    terms: tuple[Operand, ...] = ()
    inner: tuple[For, Join] | None = None
    after: tuple[Statement, ...] = ()


def join_of(loop: For) -> Join | None:
    """What a loop does with the values that it carries, if that is joining alone."""
    if not loop.carried or loop.count < 2:
        return None
    return _join(loop)


def _join(loop: For) -> Join | None:
    inners, yields = [item.inner for item in loop.carried], loop.body.yields
    nested = _around(loop, inners)
    if nested is not None:
        return nested
    places: list[int] = []
    terms: list[Operand] = []
    ops: list[Op] = []
    for inner, last in zip(inners, yields):
        where = next((
            k for k, statement in enumerate(loop.body.body)
            if isinstance(statement, Op) and statement.results == (last,)
        ), None)
        if where is None:
            return None
        op = loop.body.body[where]
        assert isinstance(op, Op)
        joins = OPS[op.opcode].traits >= _JOINED and len(op.operands) == 2
        if not joins or op.operands.count(inner) != 1:
            return None
        places.append(where)
        ops.append(op)
        terms.append(op.operands[0 if op.operands[1] == inner else 1])
    work = tuple(item for k, item in enumerate(loop.body.body) if k not in places)
    rest = Block(work, tuple(terms))
    if {*inners, *yields} & (used(rest) | indexing(rest)):
        return None
    return Join(tuple(ops), work, tuple(terms))


def _around(loop: For, inners: Sequence[Var]) -> Join | None:
    """The same of a loop that hands all it carries to one loop inside, which joins."""
    body = loop.body.body
    found = [k for k, item in enumerate(body) if isinstance(item, For) and item.carried]
    if len(found) != 1:
        return None
    inner = body[found[0]]
    assert isinstance(inner, For)
    if [item.initial for item in inner.carried] != list(inners):
        return None
    outers = tuple(item.outer for item in inner.carried)
    rest = Block((*body[: found[0]], *body[found[0] + 1 :]))
    if outers != loop.body.yields or {*inners, *outers} & (used(rest) | indexing(rest) | used(inner.body)):
        return None
    join = _join(inner)
    if join is None:
        return None
    return Join(join.ops, body[: found[0]], (), (inner, join), body[found[0] + 1 :])


class Delays:
    """How long after its inputs a value is there, by a rough count of levels."""

    def __init__(self, builder: Builder) -> None:
        self._states = builder.states
        self._known: dict[Node, int] = {}
        self._recurrent: set[Node] = set()

    def of(self, ref: Ref) -> int:
        if ref.node not in self._known:
            self._find(ref.node)
        return self._known[ref.node]

    def recurs(self, ref: Ref) -> bool:
        """Whether a value depends on what is carried from item to item."""
        self.of(ref)
        return ref.node in self._recurrent

    def _find(self, wanted: Node) -> None:
        pending = [wanted]
        while pending:
            node = pending[-1]
            left = [item.node for item in node.inputs if item.node not in self._known]
            if left:
                pending.extend(left)
                continue
            pending.pop()
            start = max((self._known[item.node] for item in node.inputs), default=0)
            self._known[node] = start + (_delay(node) if node.inputs else 0)
            if Ref(node, 0) in self._states or any(item.node in self._recurrent for item in node.inputs):
                self._recurrent.add(node)


def _delay(node: Node) -> int:
    if Trait.STRUCTURAL in OPS[node.opcode].traits or node.opcode == "convert.cast":
        return 0
    if any(ref.node.opcode == "core.constant" for ref in node.inputs) and node.opcode.startswith("bits.sh"):
        return 0
    return _DELAY.get(node.opcode, _SUM)


def joined(
    builder: Builder, delays: Delays, opcode: str, terms: Sequence[Ref], combine: Callable[[Ref, Ref], Ref]
) -> Ref:
    """All terms, joined in the order that they are there; a state that accumulates last."""
    first, *rest = terms
    kind = first.type
    if Trait.IDEMPOTENT in OPS[opcode].traits:
        rest = [item for item in dict.fromkeys(rest) if item != first]
    nothing = _identity(opcode, kind) if isinstance(kind, IntType) else None
    there = [item for item in (first, *rest) if nothing is None or builder.value(item) != nothing]
    if not there:
        return first
    accumulates = first in builder.states and not any(map(delays.recurs, there[1:]))
    items = [(delays.of(item), item) for item in (there[1:] if accumulates else there)]
    while len(items) > 1:
        ready = sorted(delay for delay, _ in items)[1]
        items = _level(items, ready, lambda a, b: _timed(delays, combine(a, b)))
    found = items[0][1] if items else None
    if not accumulates:
        assert found is not None
        return found
    return first if found is None else combine(first, found)


def _timed(delays: Delays, ref: Ref) -> tuple[int, Ref]:
    return delays.of(ref), ref


def _level(
    items: Sequence[tuple[int, Ref]], ready: int, pair: Callable[[Ref, Ref], tuple[int, Ref]]
) -> list[tuple[int, Ref]]:
    """Neighbours among those that are there, in pairs; the others as they are."""
    found: list[tuple[int, Ref]] = []
    waiting: int | None = None
    for item in items:
        if item[0] > ready:
            found.append(item)
        elif waiting is None:
            waiting = len(found)
            found.append(item)
        else:
            found[waiting] = pair(found[waiting][1], item[1])
            waiting = None
    return found


def _identity(opcode: str, kind: IntType) -> int | None:
    match opcode:
        case "integer.add" | "bits.or" | "bits.xor":
            return 0
        case "integer.mul":
            return 1
        case "bits.and":
            return -1 if kind.signed else (1 << kind.width_bits) - 1
        case _:
            return None

"""Scalars in place of what rounds hand on in memory, and chains of any order cut into several."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kera_hw.loops.contents import defined, touches, used
from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    Index,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    of_var,
)
from kera_hw.loops.rewrite import Copier, Names, counter_value
from kera_hw.loops.transforms.reason import Refused, buffer_named, with_loop
from kera_hw.loops.verifier import verify_loops
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait

_ANY_ORDER = frozenset({Trait.ASSOCIATIVE, Trait.COMMUTATIVE})


def carry(program: LoopProgram, loop: str, buffer: str) -> LoopProgram:
    """The one element of a buffer that a loop loads and stores, as a value that its rounds hand on.

    It is loaded before the loop and stored after it.
    """
    whole, names = buffer_named(program, buffer), Names(program)
    found = with_loop(program, loop, lambda outer: _carried(outer, whole, names))
    faults = verify_loops(found)
    if faults:
        raise Refused(f"`{buffer}` cannot be loaded before `{loop}`: {faults[0]}")
    return found


def _carried(outer: For, whole: Buffer, names: Names) -> list[Statement]:
    loop, buffer = outer.var.name, whole.name
    accesses = [item for item in outer.body.body if isinstance(item, Load | Store) and item.buffer == buffer]
    inside = [item for item in outer.body.body if touches(item, buffer)]
    if len(accesses) != len(inside):
        raise Refused(f"`{loop}` touches `{buffer}` in statements within its own.")
    places = {item.index for item in accesses}
    if len(places) != 1 or not any(isinstance(item, Store) for item in accesses):
        raise Refused(f"`{loop}` does not change one element of `{buffer}`, and no other.")
    if not outer.count:
        raise Refused(f"`{loop}` has no rounds.")
    (index,) = places
    moving = {outer.var.name, *defined(outer.body)}
    if any(var.name in moving for part in index for var, _ in part.terms):
        raise Refused(f"`{loop}` touches another element of `{buffer}` in each round.")
    first, inner, last = (Var(names.fresh("v"), whole.element) for _ in range(3))
    value: Operand = inner
    known: dict[Var, Operand] = {}
    made: list[Statement] = []
    for statement in outer.body.body:
        if isinstance(statement, Load) and statement.buffer == buffer:
            known[statement.result] = value
        elif isinstance(statement, Store) and statement.buffer == buffer:
            value = Copier(known).operand(statement.value)
        else:
            made.append(Copier(known).statement(statement) if known else statement)
    yields = (*map(Copier(known).operand, outer.body.yields), value)
    changed = replace(
        outer, carried=(*outer.carried, Carried(inner, first, last)), body=Block(tuple(made), yields),
        parallel=False,
    )
    return [Load(first, buffer, index), changed, Store(buffer, index, last)]


def regroup(program: LoopProgram, loop: str, chains: int) -> LoopProgram:
    """A loop that joins one value a round in any order, as chains side by side that are joined by halves.

    The operation gives the same for every order: it is associative and commutative. Round k belongs to chain
    k modulo their number, a power of two.
    """
    names = Names(program)

    def change(whole: For) -> list[Statement]:
        link = _link(whole)
        if chains < 2 or chains & (chains - 1) or whole.count < 2 * chains:
            wanted = f"{chains} chains, a power of 2, of two rounds each"
            raise Refused(f"The {whole.count} rounds of `{loop}` make no {wanted}.")
        return _Regrouping(whole, link, names, chains).statements()

    return with_loop(program, loop, change)


def _link(whole: For) -> Op:
    """The operation that joins a round's value to those before."""
    loop, body = whole.var.name, whole.body
    if len(whole.carried) != 1 or not all(isinstance(item, Load | Op) for item in body.body):
        raise Refused(f"`{loop}` does more than to join one value a round.")
    inner, (joined,) = whole.carried[0].inner, body.yields
    links = [item for item in body.body if isinstance(item, Op) and inner in item.operands]
    loads = (part for item in body.body if isinstance(item, Load) for part in item.index)
    if len(links) != 1 or links[0].results != (joined,) or any(inner in dict(part.terms) for part in loads):
        raise Refused(f"`{loop}` looks at what it has joined so far.")
    (link,) = links
    uses = sum(item.operands.count(joined) for item in body.body if isinstance(item, Op))
    if len(link.operands) != 2 or uses or link.operands[0] == link.operands[1] or link.attrs:
        raise Refused(f"`{loop}` looks at what it has joined so far.")
    if not set(OPS[link.opcode].traits) >= _ANY_ORDER:
        raise Refused(f"The order of `{link.opcode}` in `{loop}` is part of its meaning.")
    return link


class _Regrouping:
    def __init__(self, whole: For, link: Op, names: Names, chains: int) -> None:
        self._whole, self._link, self._names, self._chains = whole, link, names, chains
        self._inner = whole.carried[0].inner
        self._kind = self._inner.type

    def statements(self) -> list[Statement]:
        whole, chains = self._whole, self._chains
        rows, rest = divmod(whole.count, chains)
        acc = Buffer(self._names.fresh("t"), self._kind, (chains,))
        made: list[Statement] = [Alloc(acc), self._chain(acc, rows)]
        if rest:
            made.append(self._added(acc, rest, lambda lane: self._term(of_var(lane) + rows * chains)))
        half = chains // 2
        while half:
            made.append(self._added(acc, half, self._partner(acc, half)))
            half //= 2
        total = self._var()
        made.append(Load(total, acc.name, (Affine(),)))
        last = self._joined(whole.carried[0].initial, total)
        return [*made, replace(last, results=(whole.carried[0].outer,))]

    def _counter(self) -> Var:
        return Var(self._names.fresh(self._whole.var.name), COUNTER)

    def _var(self) -> Var:
        return Var(self._names.fresh("v"), self._kind)

    def _term(self, place: Affine) -> tuple[list[Statement], Operand]:
        """What a round joins, computed for the round at ``place``."""
        whole, values = self._whole, dict[Var, Operand]()
        prefix: list[Statement] = []
        body = Block(tuple(item for item in whole.body.body if item is not self._link))
        if whole.var in used(body) or whole.var in self._link.operands:
            prefix, values[whole.var] = counter_value(self._names, whole.var.name, place)
        (term,) = (item for item in self._link.operands if item != self._inner)
        copied = Copier(values, self._names, {whole.var: place}).block(replace(body, yields=(term,)))
        return [*prefix, *copied.body], copied.yields[0]

    def _joined(self, one: Operand, two: Operand) -> Op:
        return replace(self._link, results=(self._var(),), operands=(one, two))

    def _chain(self, acc: Buffer, rows: int) -> For:
        """Every chain from its first value on."""
        lane, row, inner, outer = self._counter(), self._counter(), self._var(), self._var()
        body, first = self._term(of_var(lane))
        inside, term = self._term(of_var(row) * self._chains + of_var(lane) + self._chains)
        joined = self._joined(inner, term)
        block = Block((*inside, joined), joined.results)
        rounds = For(row, rows - 1, (Carried(inner, first, outer),), block, False, self._whole.place)
        store = Store(acc.name, (of_var(lane),), outer)
        return For(lane, self._chains, (), Block((*body, rounds, store)), True, self._whole.place)

    def _partner(self, acc: Buffer, half: int) -> Callable[[Var], tuple[list[Statement], Operand]]:
        """The chain that joins another one from the upper half."""
        value = self._var()
        return lambda lane: ([Load(value, acc.name, (of_var(lane) + half,))], value)

    def _added(
        self, acc: Buffer, count: int, term: Callable[[Var], tuple[list[Statement], Operand]]
    ) -> For:
        """A value joined to each of the first chains."""
        lane, value = self._counter(), self._var()
        where: Index = (of_var(lane),)
        body, other = term(lane)
        joined = self._joined(value, other)
        whole = (Load(value, acc.name, where), *body, joined, Store(acc.name, where, joined.results[0]))
        return For(lane, count, (), Block(whole), True, self._whole.place)

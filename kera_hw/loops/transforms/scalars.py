"""Small buffers as scalars, and what is known before anything runs computed.

Scalar replacement (Callahan, Carr, Kennedy, "Improving register allocation for subscripted variables", PLDI
1990) where every index is a constant: after loops have been written out, an element is a value that is handed
from statement to statement, from round to round, and out of branches.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from kera_hw.loops.contents import defined, touched, touches
from kera_hw.loops.counters import Counters
from kera_hw.loops.dead import without_dead
from kera_hw.loops.evaluator import Lanes, literal_value
from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Index,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
    statements,
)
from kera_hw.loops.rewrite import Copier, Names
from kera_hw.loops.transforms.reason import Refused, temporary_named
from kera_hw.ops.intervals import Interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall
from kera_hw.types import BoolType, IntType

Elements = dict[int, Operand]
"""What stands at places of a buffer, row-major."""


def promote(program: LoopProgram, buffer: str) -> LoopProgram:
    """A temporary without memory: each element a scalar. Raises Refused where an index is not constant."""
    found = temporary_named(program, buffer)
    _check_constant(program.body, buffer)
    return replace(program, body=_Promotion(found, Names(program)).block(program.body, {}))


def _check_constant(block: Block, buffer: str) -> None:
    if buffer not in touched(block):
        return
    for item in block.body:
        if isinstance(item, Load | Store) and item.buffer == buffer and any(p.terms for p in item.index):
            raise Refused(f"`{buffer}` has an index that is not constant.")
        if isinstance(item, While) and any(
            isinstance(one, Store) and one.buffer == buffer for one in statements(item.condition)
        ):
            raise Refused("A loop's condition stores to a buffer.")
        for inner in blocks_of(item):
            _check_constant(inner, buffer)


def constant_indices(program: LoopProgram) -> list[Buffer]:
    """Temporaries of which every index is a constant."""
    moving = {
        item.buffer for item in statements(program.body)
        if isinstance(item, Load | Store) and any(part.terms for part in item.index)
    }
    allocs = (item.buffer for item in statements(program.body) if isinstance(item, Alloc))
    return [buffer for buffer in allocs if buffer.name not in moving]


class _Promotion:
    def __init__(self, buffer: Buffer, names: Names) -> None:
        self._buffer, self._names = buffer, names
        self._copier = Copier({})

    def block(self, block: Block, now: Elements, more: Iterable[int] = ()) -> Block:
        """The block, ``now`` what elements are; it also yields what ``more`` are at its end."""
        name, more = self._buffer.name, tuple(more)
        if not more and name not in touched(block) and name not in defined(block):
            return self._copier.block(block)
        body: list[Statement] = []
        for statement in block.body:
            found = self._statement(statement, now)
            if found is not None:
                body.append(found)
        yields = [self._copier.operand(operand) for operand in block.yields]
        return Block(tuple(body), (*yields, *(self._value(place, now) for place in more)))

    def _statement(self, statement: Statement, now: Elements) -> Statement | None:
        match statement:
            case Alloc(buffer=buffer) if buffer.name == self._buffer.name:
                now.clear()  # a new one in each round
                return None
            case Load(result=result, buffer=name, index=index) if name == self._buffer.name:
                self._copier.values[result] = self._value(self._place(index), now)
                return None
            case Store(buffer=name, index=index, value=value) if name == self._buffer.name:
                now[self._place(index)] = self._copier.operand(value)
                return None
            case For(carried=carried, body=body):
                given, states, inside = self._carried(statement, carried, now)
                whole = (*given, *states.values())
                return replace(
                    statement, carried=whole, body=self.block(body, inside, states),
                    parallel=statement.parallel and not states,
                )
            case While(carried=carried, condition=condition, body=body):
                given, states, inside = self._carried(statement, carried, now)
                test = self.block(condition, dict(inside))
                return replace(
                    statement, carried=(*given, *states.values()), condition=test,
                    body=self.block(body, inside, states),
                )
            case If():
                return self._if(statement, now)
            case _:
                return self._copier.statement(statement)

    def _if(self, branch: If, now: Elements) -> If:
        stored = self._stored(branch)
        then, otherwise = (
            self.block(side, dict(now), stored) for side in (branch.then, branch.otherwise)
        )
        results = [self._fresh() for _ in stored]
        now.update(zip(stored, results))
        return replace(
            branch, condition=self._copier.operand(branch.condition), then=then, otherwise=otherwise,
            results=(*branch.results, *results),
        )

    def _carried(
        self, loop: For | While, carried: tuple[Carried, ...], now: Elements
    ) -> tuple[list[Carried], dict[int, Carried], Elements]:
        """What a loop carries already, what it carries now, and elements as a round finds them."""
        given = [replace(item, initial=self._copier.operand(item.initial)) for item in carried]
        states = {
            place: Carried(self._fresh(), self._value(place, now), self._fresh())
            for place in self._stored(loop)
        }
        inside = {**now, **{place: state.inner for place, state in states.items()}}
        now.update({place: state.outer for place, state in states.items()})
        return given, states, inside

    def _stored(self, statement: Statement) -> list[int]:
        """Elements that a statement writes, of a buffer that is not its own."""
        name, parts = self._buffer.name, blocks_of(statement)
        if not touches(statement, name) or any(name in defined(part) for part in parts):
            return []
        inside = (item for part in parts for item in statements(part))
        return list(dict.fromkeys(
            self._place(item.index) for item in inside if isinstance(item, Store) and item.buffer == name
        ))

    def _place(self, index: Index) -> int:
        place = 0
        for part, extent in zip(index, self._buffer.shape):
            place = place * extent + part.constant
        return place

    def _value(self, place: int, now: Elements) -> Operand:
        """An element; anything for one that was never written, which nobody reads."""
        return now.get(place) or Literal(self._buffer.element, 0)

    def _fresh(self) -> Var:
        return Var(self._names.fresh("v"), self._buffer.element)


# What is known


def fold(program: LoopProgram) -> LoopProgram:
    """Operations on constants computed, known branches taken, and nothing whose results nobody uses.

    Raises Refused where nothing is known or unused.
    """
    found = without_dead(replace(program, body=_Folding().block(program.body)))
    if found.body == program.body:
        raise Refused("Nothing is known before it runs, and nothing is unused.")
    return found


class _Folding:
    """``places`` of the copier: scalars that are sums of counters, which so stand in indices themselves."""

    def __init__(self) -> None:
        self._copier = Copier({})
        self._counts: dict[Var, Interval] = {}
        self._counters = Counters(self._counts, self._counts.__contains__)

    def block(self, block: Block) -> Block:
        body: list[Statement] = []
        self._run(block, body)
        return Block(tuple(body), tuple(map(self._copier.operand, block.yields)))

    def _run(self, block: Block, body: list[Statement]) -> None:
        values = self._copier.values
        for original in block.body:
            match original:
                case For(carried=carried) | While(carried=carried):
                    given = tuple(
                        replace(item, initial=self._copier.operand(item.initial)) for item in carried
                    )
                    if isinstance(original, For):
                        self._counts[original.var] = Interval(0, max(original.count - 1, 0))
                    inner = [self.block(part) for part in blocks_of(original)]
                    parts = dict(zip(("condition", "body") if len(inner) > 1 else ("body",), inner))
                    body.append(replace(original, carried=given, **parts))
                case If(condition=condition, then=then, otherwise=otherwise, results=results):
                    asked = self._copier.operand(condition)
                    if isinstance(asked, Literal):
                        side = then if asked.bits else otherwise
                        self._run(side, body)
                        values.update(zip(results, map(self._copier.operand, side.yields)))
                    else:
                        first, second = self.block(then), self.block(otherwise)
                        body.append(replace(original, condition=asked, then=first, otherwise=second))
                case _:
                    statement = self._copier.statement(original)
                    known = _computed(statement) if isinstance(statement, Op) else None
                    if known is None:
                        body.append(statement)
                    else:
                        values[known[0]] = known[1]
                    total = self._counters.note(statement) if isinstance(statement, Op) else None
                    if isinstance(statement, Op) and total is not None and total.terms:
                        self._copier.places[statement.results[0]] = total


def _computed(op: Op) -> tuple[Var, Literal] | None:
    """The result of an operation on whole numbers and bools that are known."""
    if len(op.results) != 1 or not all(isinstance(item, Literal) for item in op.operands):
        return None
    (result,) = op.results
    kinds = tuple(item.type for item in op.operands)
    if not op.operands or not all(isinstance(kind, IntType | BoolType) for kind in (*kinds, result.type)):
        return None
    args = tuple(literal_value(item)[np.newaxis] for item in op.operands if isinstance(item, Literal))
    call = EvalCall(Lanes(1), args, kinds, (result.type,), dict(op.attrs))
    (value,) = OPS[op.opcode].evaluate(call)
    width = result.type.width_bits if isinstance(result.type, IntType) else 1
    return result, Literal(result.type, int(value[0]) & ((1 << width) - 1))

"""Small buffers as scalars, and what is known before anything runs computed.

Scalar replacement (Callahan, Carr, Kennedy, "Improving register allocation for subscripted variables", PLDI
1990) where every index is a constant: after loops have been written out, an element is a value that is handed
from statement to statement, from round to round, and out of branches.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kera_hw.loops.contents import indexing, used
from kera_hw.loops.evaluator import Lanes, literal_value
from kera_hw.loops.program import (
    COUNTER,
    Affine,
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
    of_var,
    statements,
)
from kera_hw.loops.rewrite import Copier, Names, as_affine
from kera_hw.loops.spans import affine_span
from kera_hw.loops.transforms.reason import Refused, temporary_named
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall
from kera_hw.types import BoolType, IntType

Element = tuple[str, int]
"""A buffer, and a place in it, row-major."""


def promote(program: LoopProgram, buffer: str) -> LoopProgram:
    """A temporary without memory: each element a scalar. Raises Refused where an index is not constant."""
    found = {buffer: temporary_named(program, buffer)}
    for item in statements(program.body):
        if isinstance(item, Load | Store) and item.buffer in found and any(p.terms for p in item.index):
            raise Refused(f"`{item.buffer}` has an index that is not constant.")
        if isinstance(item, While) and any(
            isinstance(one, Store) and one.buffer in found for one in statements(item.condition)
        ):
            raise Refused("A loop's condition stores to a buffer.")
    return replace(program, body=_Promotion(found, Names(program)).block(program.body, {}))


def constant_indices(program: LoopProgram) -> list[Buffer]:
    """Temporaries of which every index is a constant."""
    moving = {
        item.buffer for item in statements(program.body)
        if isinstance(item, Load | Store) and any(part.terms for part in item.index)
    }
    allocs = (item.buffer for item in statements(program.body) if isinstance(item, Alloc))
    return [buffer for buffer in allocs if buffer.name not in moving]


class _Promotion:
    def __init__(self, buffers: dict[str, Buffer], names: Names) -> None:
        self._buffers, self._names = buffers, names
        self._copier = Copier({})

    def block(self, block: Block, now: dict[Element, Operand], more: Iterable[Element] = ()) -> Block:
        """The block, ``now`` what elements are; it also yields what ``more`` are at its end."""
        body: list[Statement] = []
        for statement in block.body:
            found = self._statement(statement, now)
            if found is not None:
                body.append(found)
        yields = [self._copier.operand(operand) for operand in block.yields]
        return Block(tuple(body), (*yields, *(self._value(item, now) for item in more)))

    def _statement(self, statement: Statement, now: dict[Element, Operand]) -> Statement | None:
        match statement:
            case Alloc(buffer=buffer) if buffer.name in self._buffers:
                for place in range(buffer.size):
                    now.pop((buffer.name, place), None)  # a new one in each round
                return None
            case Load(result=result, buffer=name, index=index) if name in self._buffers:
                self._copier.values[result] = self._value(self._element(name, index), now)
                return None
            case Store(buffer=name, index=index, value=value) if name in self._buffers:
                now[self._element(name, index)] = self._copier.operand(value)
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

    def _if(self, branch: If, now: dict[Element, Operand]) -> If:
        stored = self._stored(branch)
        then, otherwise = (
            self.block(side, dict(now), stored) for side in (branch.then, branch.otherwise)
        )
        results = [self._fresh(item) for item in stored]
        now.update(zip(stored, results))
        return replace(
            branch, condition=self._copier.operand(branch.condition), then=then, otherwise=otherwise,
            results=(*branch.results, *results),
        )

    def _carried(
        self, loop: For | While, carried: tuple[Carried, ...], now: dict[Element, Operand]
    ) -> tuple[list[Carried], dict[Element, Carried], dict[Element, Operand]]:
        """What a loop carries already, what it carries now, and elements as a round finds them."""
        given = [replace(item, initial=self._copier.operand(item.initial)) for item in carried]
        states = {
            item: Carried(self._fresh(item), self._value(item, now), self._fresh(item))
            for item in self._stored(loop)
        }
        inside = {**now, **{item: state.inner for item, state in states.items()}}
        now.update({item: state.outer for item, state in states.items()})
        return given, states, inside

    def _stored(self, statement: Statement) -> list[Element]:
        """Elements that a statement writes, of buffers that are not its own."""
        inside = list(statements(Block((statement,))))
        own = {item.buffer.name for item in inside if isinstance(item, Alloc)}
        return list(dict.fromkeys(
            self._element(item.buffer, item.index) for item in inside
            if isinstance(item, Store) and item.buffer in self._buffers and item.buffer not in own
        ))

    def _element(self, name: str, index: Index) -> Element:
        place = 0
        for part, extent in zip(index, self._buffers[name].shape):
            place = place * extent + part.constant
        return name, place

    def _value(self, element: Element, now: dict[Element, Operand]) -> Operand:
        """An element; anything for one that was never written, which nobody reads."""
        return now.get(element) or Literal(self._buffers[element[0]].element, 0)

    def _fresh(self, element: Element) -> Var:
        return Var(self._names.fresh("v"), self._buffers[element[0]].element)


# What is known


def fold(program: LoopProgram) -> LoopProgram:
    """Operations on constants computed, known branches taken, and nothing whose results nobody uses.

    Raises Refused where nothing is known or unused.
    """
    body = _Folding().block(program.body)
    while (left := _without_dead(body, used(body) | indexing(body))) is not body:
        body = left
    if body == program.body:
        raise Refused("Nothing is known before it runs, and nothing is unused.")
    return replace(program, body=body)


class _Folding:
    """``places`` of the copier: scalars that are sums of counters, which so stand in indices themselves."""

    def __init__(self) -> None:
        self._copier = Copier({})
        self._counts: dict[Var, Interval] = {}

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
                    if isinstance(statement, Op) and len(statement.results) == 1:
                        self._place(statement)

    def _place(self, op: Op) -> None:
        """Notes a result that is a sum of counters, and does not wrap."""
        moved = [self._sum(operand) for operand in op.operands]
        total = _summed(op.opcode, [part for part in moved if part is not None])
        (result,) = op.results
        if None in moved or total is None or not total.terms:
            return
        span, able = affine_span(total, self._counts), type_interval(result.type)
        if span is not None and able is not None and able.low <= span.low and span.high <= able.high:
            self._copier.places[result] = total

    def _sum(self, operand: Operand) -> Affine | None:
        if isinstance(operand, Var):
            return of_var(operand) if operand in self._counts else self._copier.places.get(operand)
        return as_affine(operand) if isinstance(operand.type, IntType) else None


def _summed(opcode: str, parts: Sequence[Affine]) -> Affine | None:
    match opcode, parts:
        case "convert.cast", [part]:
            return part
        case "integer.add", [one, two]:
            return one + two
        case "integer.sub", [one, two]:
            return one - two
        case "integer.mul", [Affine(terms=()) as one, two]:
            return two * one.constant
        case "integer.mul", [one, Affine(terms=()) as two]:
            return one * two.constant
        case "bits.shl", [one, Affine(terms=()) as two] if 0 <= two.constant < COUNTER.width_bits:
            return one * (1 << two.constant)
        case _:
            return None


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


def _without_dead(block: Block, wanted: set[Var]) -> Block:
    """Without operations, loads and carried values that nobody uses; the same block where there are none."""
    body: list[Statement] = []
    same = True
    for statement in block.body:
        match statement:
            case Op(results=results) if not wanted & {*results}:
                same = False
                continue
            case Load(result=result) if result not in wanted:
                same = False
                continue
            case For(carried=carried) | While(carried=carried):
                found = _without_dead_carried(statement, carried, wanted)
                if isinstance(found, For) and not found.carried and not found.body.body:
                    same = False
                    continue
            case If(then=then, otherwise=otherwise, results=results):
                if not wanted & {*results} and not any(
                    isinstance(item, Store) for item in statements(Block((statement,)))
                ):
                    same = False
                    continue
                first, second = (_without_dead(side, wanted) for side in (then, otherwise))
                found = statement
                if first is not then or second is not otherwise:
                    found = replace(statement, then=first, otherwise=second)
            case _:
                found = statement
        same = same and found is statement
        body.append(found)
    return block if same else replace(block, body=tuple(body))


def _without_dead_carried(loop: For | While, carried: tuple[Carried, ...], wanted: set[Var]) -> For | While:
    """A value that a loop carries, and nobody looks at within it or after."""
    kept = [k for k, item in enumerate(carried) if item.inner in wanted or item.outer in wanted]
    body = _without_dead(loop.body, wanted)
    if len(kept) == len(carried) and body is loop.body:
        return loop
    yields = tuple(body.yields[k] for k in kept)
    return replace(loop, carried=tuple(carried[k] for k in kept), body=replace(body, yields=yields))

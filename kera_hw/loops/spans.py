"""What integers run through within a body: counters by their count, scalars by what makes them."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from kera_hw.loops.contents import defined
from kera_hw.loops.program import Affine, Block, For, If, Literal, Load, Op, Operand, Var, While, statements
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, apply_rule, type_interval


class Ranges(Protocol):
    """What is known of scalars."""

    def get(self, var: Var, /) -> MaybeInterval: ...


def spans_within(block: Block, known: Mapping[Var, MaybeInterval] = {}) -> dict[Var, Interval]:
    """All that changes while the block runs, as far as it is an integer; ``known`` is told from outside."""
    found: dict[Var, Interval] = {}
    ranges: dict[Var, MaybeInterval] = dict(known)

    def note(var: Var, span: MaybeInterval) -> None:
        ranges[var] = span
        if span is not None:
            found[var] = span

    for statement in statements(block, that_run=True):
        match statement:
            case For(carried=carried) | While(carried=carried):
                if isinstance(statement, For):
                    note(statement.var, Interval(0, max(statement.count - 1, 0)))
                for item in carried:
                    note(item.inner, type_interval(item.inner.type))
                    note(item.outer, type_interval(item.outer.type))
            case Op(results=(result,)):
                note(result, op_span(statement, ranges))
            case Load(result=result):
                note(result, type_interval(result.type))
            case Op(results=results) | If(results=results):
                for result in results:
                    note(result, type_interval(result.type))
            case _:
                pass
    return found


class Spans:
    """The same of a block, each found when it is asked for."""

    def __init__(self, block: Block) -> None:
        self._found: dict[Var, MaybeInterval] = {}
        self._makers: dict[Var, Op] = {}
        for statement in statements(block, that_run=True):
            match statement:
                case For(carried=carried) | While(carried=carried):
                    if isinstance(statement, For):
                        self._found[statement.var] = Interval(0, max(statement.count - 1, 0))
                    for item in carried:
                        self._found[item.inner] = type_interval(item.inner.type)
                        self._found[item.outer] = type_interval(item.outer.type)
                case Op(results=(result,)):
                    self._makers[result] = statement
                case Load(result=result):
                    self._found[result] = type_interval(result.type)
                case Op(results=results) | If(results=results):
                    for result in results:
                        self._found[result] = type_interval(result.type)
                case _:
                    pass

    def get(self, var: Var, /) -> MaybeInterval:
        found, makers = self._found, self._makers
        open_ = [var]  # operands before what is made of them
        while open_:
            maker = None if open_[-1] in found else makers.get(open_[-1])
            if maker is None:
                open_.pop()
                continue
            read = (one for one in maker.operands if isinstance(one, Var))
            left = [one for one in read if one not in found and one in makers]
            if left:
                open_ += left
            else:
                found[open_.pop()] = op_span(maker, found)
        return found.get(var)


def moving(block: Block, wanted: Collection[Var]) -> dict[Var, Interval]:
    """Of the variables wanted, what those run through that change while the block runs."""
    inside = defined(block)
    found = [var for var in wanted if var.name in inside]
    if not found:
        return {}
    counters = {
        item.var: Interval(0, max(item.count - 1, 0)) for item in statements(block, that_run=True)
        if isinstance(item, For)
    }
    spans = counters if counters.keys() >= set(found) else spans_within(block)
    return {var: spans[var] for var in found if var in spans}


def op_span(op: Op, ranges: Ranges) -> MaybeInterval:
    """What an operation of one result gives, by its operands."""
    kinds = tuple(operand.type for operand in op.operands)
    operands = [operand_span(operand, ranges) for operand in op.operands]
    return apply_rule(op.opcode, operands, OpShape(kinds, op.results[0].type, dict(op.attrs)))


def operand_span(operand: Operand, ranges: Ranges) -> MaybeInterval:
    return literal_span(operand) if isinstance(operand, Literal) else ranges.get(operand)


def literal_span(item: Literal) -> MaybeInterval:
    full = type_interval(item.type)
    if full is None:
        return None
    value = item.bits - (full.high - full.low + 1) * (item.bits > full.high)
    return Interval(value, value)


def affine_span(part: Affine, ranges: Ranges) -> MaybeInterval:
    """All values of an index expression; None if something in it has no range."""
    low = high = part.constant
    for var, coefficient in part.terms:
        span = ranges.get(var)
        if span is None:
            return None
        ends = sorted((span.low * coefficient, span.high * coefficient))
        low, high = low + ends[0], high + ends[1]
    return Interval(low, high)

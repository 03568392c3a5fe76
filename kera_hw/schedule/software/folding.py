"""What ranges decide of counters, what is computed twice, and what nobody reads.

A tile's rounds stand side by side with numbers of their own, so that most questions about the edge of an
image have one answer. What is left to ask is asked of one counter in 32 bits, in lanes as wide as most.
"""
from __future__ import annotations

from dataclasses import replace

from kera_hw.loops.counters import Counters
from kera_hw.loops.dead import without_dead
from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Block,
    Carried,
    For,
    If,
    Literal,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Var,
    While,
    blocks_of,
    of_var,
    statements,
)
from kera_hw.loops.rewrite import Copier, Names, counter_value, with_block
from kera_hw.loops.spans import Spans, affine_span
from kera_hw.ops.intervals import Interval
from kera_hw.schedule.software.vector_loops import SHORT_BITS
from kera_hw.types import BOOL, IntType

_SHORT = IntType(SHORT_BITS, True)
_NARROW = Interval(-(1 << (SHORT_BITS - 1)), (1 << (SHORT_BITS - 1)) - 1)
_TURNED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt", "eq": "eq", "ne": "ne"}
Known = dict[tuple[object, ...], Operand]


def folded(program: LoopProgram, settled: bool = True) -> LoopProgram:
    """The program without operations on counters that ranges decide; the same one if there are none.

    ``settled``: that no loop will be split or written out any more, so that what is left is asked in 32 bits.
    """
    if not any(isinstance(item, Op) and asks(item) for item in statements(program.body)):
        return program
    body = _Folding(program, settled).block(program.body, {})
    return without_dead(replace(program, body=body))


def asks(op: Op) -> bool:
    """Whether it compares counters."""
    return op.opcode.startswith("compare.") and op.operands[0].type == COUNTER


def counts(var: Var) -> bool:
    """Whether a scalar counts as a counter of its own, where it is no sum of others."""
    return var.type == COUNTER


class _Folding:
    def __init__(self, program: LoopProgram, settled: bool) -> None:
        self._settled = settled
        self._names = Names(program)
        self._counters = Counters(Spans(program.body), counts)
        self._copier = Copier({})
        self._lanes: list[Var] = []  # counters of parallel loops around, the innermost last

    def block(self, block: Block, around: Known) -> Block:
        known = dict(around)
        made: list[Statement] = []
        for statement in block.body:
            parallel = False
            match statement:
                case Op(results=(_,)):
                    if not self._copier.values.keys().isdisjoint(statement.operands):
                        operands = tuple(map(self._of, statement.operands))
                        statement = Op(
                            statement.results, statement.opcode, operands, statement.attrs, statement.place
                        )
                    self._op(statement, known, made)
                    continue
                case For(carried=carried) | While(carried=carried):
                    initials = [Carried(one.inner, self._of(one.initial), one.outer) for one in carried]
                    statement = replace(statement, carried=tuple(initials))
                    parallel = isinstance(statement, For) and statement.parallel
                    if isinstance(statement, For) and parallel:
                        self._lanes.append(statement.var)
                case If(condition=condition):
                    statement = replace(statement, condition=self._of(condition))
                case _:
                    statement = self._copier.statement(statement)
            for which, inner in enumerate(blocks_of(statement)):
                statement = with_block(statement, which, self.block(inner, known))
            if parallel:
                self._lanes.pop()
            made.append(statement)
        return replace(block, body=tuple(made), yields=tuple(map(self._of, block.yields)))

    def _of(self, operand: Operand) -> Operand:
        return self._copier.operand(operand)

    def _op(self, op: Op, known: Known, made: list[Statement]) -> None:
        (result,) = op.results
        difference = self._counters.difference(op) if asks(op) else None
        found = self._decided(op, difference)
        if found is None:
            if self._settled and difference is not None:
                op = self._short(op, difference, known, made)
            found = known.setdefault((op.opcode, op.operands, op.attrs, result.type), result)
        if found is not result:
            self._copier.values[result] = found
            return
        made.append(op)
        self._counters.note(op)

    def _decided(self, op: Op, difference: Affine | None) -> Operand | None:
        """What an operation gives, if ranges or constants tell; it compares counters that differ so."""
        operands, verb = op.operands, op.opcode.partition(".")[2]
        if difference is not None:
            span = affine_span(difference, self._counters.spans)
            found = None if span is None else answer(verb, span)
            return None if found is None else Literal(BOOL, int(found))
        if op.opcode in ("bits.and", "bits.or") and op.results[0].type == BOOL:
            decisive = int(verb == "or")
            for one, other in (operands, operands[::-1]):
                if isinstance(one, Literal):
                    return one if one.bits == decisive else other
        if op.opcode == "control.select" and isinstance(operands[0], Literal):
            return operands[1] if operands[0].bits else operands[2]
        return None

    def _short(self, op: Op, difference: Affine, known: Known, made: list[Statement]) -> Op:
        """The same question of one counter in 32 bits."""
        terms, verb = dict(difference.terms), op.opcode.partition(".")[2]
        lane = next((var for var in reversed(self._lanes) if terms.get(var) in (1, -1)), None)
        if lane is None:
            return op
        sign = terms.pop(lane)
        rest = Affine(difference.constant, tuple(terms.items()))
        if sign == 1:  # lane + rest ? 0
            rest = rest * -1
        else:  # rest - lane ? 0
            verb = _TURNED[verb]
        if not self._counters.fits(rest, _NARROW) or not self._counters.fits(of_var(lane), _NARROW):
            return op
        value: Operand
        if rest.terms:
            before, value = counter_value(self._names, "v", rest)
            for item in before:
                copied = self._copier.statement(item)
                assert isinstance(copied, Op)
                self._op(copied, known, made)
            value = self._cast(self._of(value), known, made)
        else:
            value = Literal(_SHORT, rest.constant & ((1 << SHORT_BITS) - 1))
        return replace(op, opcode=f"compare.{verb}", operands=(self._cast(lane, known, made), value))

    def _cast(self, value: Operand, known: Known, made: list[Statement]) -> Operand:
        key = ("convert.cast", (value,), (("type", _SHORT),), _SHORT)
        if key not in known:
            result = Var(self._names.fresh("v"), _SHORT)
            made.append(Op((result,), "convert.cast", (value,), (("type", _SHORT),)))
            known[key] = result
        return known[key]


def answer(verb: str, span: Interval) -> bool | None:
    """Whether every number of a range is so to 0, or none is."""
    match verb:
        case "lt" | "ge":
            below = True if span.high < 0 else False if span.low >= 0 else None
            return below if verb == "lt" or below is None else not below
        case "gt" | "le":
            above = True if span.low > 0 else False if span.high <= 0 else None
            return above if verb == "gt" or above is None else not above
        case _:
            return None

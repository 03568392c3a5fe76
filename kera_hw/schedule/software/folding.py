"""What ranges decide of counters, what is computed twice, and what nobody reads.

A tile's rounds stand side by side with numbers of their own, so that most questions about the edge of an
image have one answer. What is left to ask is asked of one counter in 32 bits, in lanes as wide as most.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Block,
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
from kera_hw.loops.rewrite import Copier, Names, as_affine, counter_value, with_block
from kera_hw.loops.spans import affine_span, spans_within
from kera_hw.ops.intervals import Interval
from kera_hw.schedule.software.vector_loops import SHORT_BITS
from kera_hw.types import BOOL, IntType

_SHORT = IntType(SHORT_BITS, True)
_WORD = Interval(-(1 << 63), (1 << 63) - 1)
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
    return replace(program, body=_read(body))


def asks(op: Op) -> bool:
    """Whether it compares counters."""
    return op.opcode.startswith("compare.") and op.operands[0].type == COUNTER


class Counters:
    """What is computed with loops' counters, as sums of them."""

    def __init__(self, spans: Mapping[Var, Interval]) -> None:
        self.spans = spans
        self._sums: dict[Var, Affine] = {}

    def note(self, op: Op) -> None:
        """A sum of counters, where it does not wrap."""
        (result,) = op.results
        if result.type != COUNTER:
            return
        a, b = (*map(self._affine, op.operands), None, None)[:2]
        if a is None or b is None:
            return
        found: Affine | None = None
        match op.opcode:
            case "integer.add":
                found = a + b
            case "integer.sub":
                found = a - b
            case "integer.mul" if not b.terms:
                found = a * b.constant
            case _:
                pass
        if found is not None and self.fits(found, _WORD):
            self._sums[result] = found

    def _affine(self, operand: Operand) -> Affine | None:
        if operand.type != COUNTER:
            return None
        known = self._sums.get(operand) if isinstance(operand, Var) else None
        return as_affine(operand) if known is None else known

    def fits(self, expression: Affine, within: Interval) -> bool:
        span = affine_span(expression, self.spans)
        return span is not None and within.low <= span.low and span.high <= within.high

    def difference(self, op: Op) -> Affine | None:
        """Of what a comparison compares."""
        a, b = map(self._affine, op.operands)
        return None if a is None or b is None else a - b


class _Folding:
    def __init__(self, program: LoopProgram, settled: bool) -> None:
        self._settled = settled
        self._names = Names(program)
        self._counters = Counters(spans_within(program.body))
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
                        statement = replace(statement, operands=operands)
                    self._op(statement, known, made)
                    continue
                case For(carried=carried) | While(carried=carried):
                    initials = (replace(one, initial=self._of(one.initial)) for one in carried)
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
        rest = difference - of_var(lane) * terms[lane]
        if terms[lane] == 1:  # lane + rest ? 0
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


def _read(block: Block) -> Block:
    """Without operations and loads that nobody reads."""
    return _kept(block, set())[0]


def _kept(block: Block, needed: set[Var]) -> tuple[Block, set[Var]]:
    needed = needed | {item for item in block.yields if isinstance(item, Var)}
    body: list[Statement] = []
    for statement in reversed(block.body):
        if isinstance(statement, Op | Load):
            results = statement.results if isinstance(statement, Op) else (statement.result,)
            if needed.isdisjoint(results):
                continue
        for which, inner in enumerate(blocks_of(statement)):
            kept, more = _kept(inner, needed)
            needed = needed | more
            statement = with_block(statement, which, kept)
        needed |= _reads(statement)
        body.append(statement)
    return replace(block, body=tuple(reversed(body))), needed


def _reads(statement: Statement) -> set[Var]:
    index: Index = statement.index if isinstance(statement, Load | Store) else ()
    operands: tuple[Operand, ...] = ()
    match statement:
        case Op(operands=operands):
            pass
        case Store(value=value):
            operands = (value,)
        case For(carried=carried) | While(carried=carried):
            operands = tuple(one.initial for one in carried)
        case If(condition=condition):
            operands = (condition,)
        case _:
            pass
    return {item for item in operands if isinstance(item, Var)} | {
        var for part in index for var, _ in part.terms
    }

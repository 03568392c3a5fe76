"""Which loops run several rounds at once, and what in them differs from round to round.

Rounds of a parallel loop that touch neighbouring elements become lanes of a vector. The innermost loop that
can is taken; where none can, the items of a batch, which are a parallel loop around everything as long as
nothing is kept from item to item. A loop that is not parallel may lie inside: all lanes go through its rounds
together.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kera_hw.loops.contents import used
from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Index,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
)
from kera_hw.types import FloatType, IntType, Type

ITEM = Var("item", IntType(64, True))
"""The number of an item in its batch: the variable of the loop around everything."""
SHORT_BITS = 32
"""Of a round's number as lanes that are no wider than most."""
_WORTH = 4
"""Operations that make up for fetching one element from a place of its own in every lane."""


def flat_terms(buffer: Buffer, index: Index) -> tuple[int, dict[Var, int]]:
    """An element's number in row-major order: a constant, and how much each variable counts."""
    constant, terms = 0, dict[Var, int]()
    stride = 1
    for extent, axis in zip(reversed(buffer.shape), reversed(index)):
        constant += axis.constant * stride
        for var, coefficient in axis.terms:
            terms[var] = terms.get(var, 0) + coefficient * stride
        stride *= extent
    if buffer.kind in ("param", "result"):
        terms[ITEM] = buffer.size
    return constant, {var: c for var, c in terms.items() if c}


@dataclass(frozen=True, slots=True)
class VectorLoop:
    """``count`` rounds of the loop over ``var`` at once; what is in ``varying`` has a value a lane.

    ``private``: temporaries made inside, which have a place a lane.
    """

    var: Var
    count: int
    varying: frozenset[Var]
    private: frozenset[str]


Plan = Mapping[int, VectorLoop]
"""By ``id`` of the loop, ``id`` of the program for its items."""


class _No(Exception):
    """The loop can't run that way."""


@dataclass
class _Known:
    """What is the same whichever loop is looked at: ``buffers`` as far as they are declared, and of accesses
    by their ``id`` how much each variable counts."""

    buffers: dict[str, Buffer]
    terms: dict[int, dict[Var, int]] = field(default_factory=dict[int, dict[Var, int]])

    def terms_of(self, access: Load | Store) -> dict[Var, int]:
        found = self.terms.get(id(access))
        if found is None:
            _, found = flat_terms(self.buffers[access.buffer], access.index)
            self.terms[id(access)] = found
        return found


@dataclass
class _Search:
    """One loop looked at. Raises _No inside where control or a temporary's place would differ by lane."""

    known: _Known
    var: Var
    varying: set[Var] = field(default_factory=set[Var])
    private: set[str] = field(default_factory=set[str])
    widest_bits: int = 8
    operations: int = 0
    neighbours: int = 0
    scattered: int = 0

    def differs(self, operand: Operand) -> bool:
        return isinstance(operand, Var) and operand in self.varying

    def mark(self, var: Var) -> None:
        self.varying.add(var)
        self.note(var.type)

    def note(self, kind: Type) -> None:
        if isinstance(kind, (IntType, FloatType)) and kind.width_bits > self.widest_bits:
            self.widest_bits = kind.width_bits

    def block(self, block: Block) -> None:
        for statement in block.body:
            match statement:
                case Op(results=results, operands=operands):
                    for operand in operands:
                        if isinstance(operand, Var) and operand in self.varying:
                            break
                    else:
                        continue
                    self.operations += 1
                    for operand in () if is_short_number(statement, self.var) else operands:
                        self.note(operand.type)
                    for result in results:
                        self.mark(result)
                case Load(result=result, buffer=name):
                    if self._access(statement) or name in self.private:
                        self.mark(result)
                case Store(buffer=name, value=value):
                    if not self._access(statement) and name not in self.private:
                        raise _No
                    self.note(value.type)
                case Alloc(buffer=buffer):
                    self.private.add(buffer.name)
                    self.known.buffers[buffer.name] = buffer
                case For(carried=carried, body=body):
                    self._loop(carried, (body,))
                case While(carried=carried, condition=condition, body=body):
                    self._loop(carried, (condition, body))
                    if any(map(self.differs, condition.yields)):
                        raise _No
                case If():
                    self._branch(statement)

    def _access(self, access: Load | Store) -> bool:
        """Whether lanes touch elements of their own."""
        terms = self.known.terms_of(access)
        moving = self.varying.intersection(terms)
        if not moving:
            return False
        if access.buffer in self.private:
            raise _No
        self.note(self.known.buffers[access.buffer].element)
        if len(moving) == 1 and terms.get(self.var) == 1:
            self.neighbours += 1
        else:
            self.scattered += 1
        return True

    def _loop(self, carried: tuple[Carried, ...], blocks: tuple[Block, ...]) -> None:
        for one in carried:
            if self.differs(one.initial):
                self.mark(one.inner)
        while True:
            for block in blocks:
                self.block(block)
            news = blocks[-1].yields
            found = [
                one for one, new in zip(carried, news) if self.differs(new) and one.inner not in self.varying
            ]
            if not found:
                break
            for one in found:
                self.mark(one.inner)
        for one in carried:
            if one.inner in self.varying:
                self.mark(one.outer)

    def _branch(self, branch: If) -> None:
        if self.differs(branch.condition):
            raise _No
        self.block(branch.then)
        self.block(branch.otherwise)
        for result, a, b in zip(branch.results, branch.then.yields, branch.otherwise.yields):
            if self.differs(a) or self.differs(b):
                self.mark(result)


def plan_vectors(program: LoopProgram, vector_bits: int) -> Plan:
    """The loops of a program in native operations that run as vectors of so many bits."""
    known = _Known({buffer.name: buffer for buffer in program.buffers})
    found: dict[int, VectorLoop] = {}
    _innermost(program.body, known, found, vector_bits)
    stateless = not any(buffer.kind == "state" for buffer in program.buffers)
    if not found and stateless:
        whole = _examined(ITEM, program.body, known, vector_bits)
        if whole is not None:
            found[id(program)] = whole
    return found


def _innermost(
    block: Block, known: _Known, found: dict[int, VectorLoop], vector_bits: int
) -> bool:
    """Whether some loop inside is taken."""
    any_taken = False
    for statement in block.body:
        if isinstance(statement, (Op, Load, Store)):
            continue
        if isinstance(statement, Alloc):
            known.buffers[statement.buffer.name] = statement.buffer
        taken = [_innermost(inner, known, found, vector_bits) for inner in blocks_of(statement)]
        if any(taken):
            any_taken = True
        elif isinstance(statement, For) and statement.parallel:
            loop = _examined(statement.var, statement.body, known, vector_bits, statement.count)
            if loop is not None:
                found[id(statement)] = loop
                any_taken = True
    return any_taken


def _examined(
    var: Var, body: Block, known: _Known, vector_bits: int, rounds: int | None = None
) -> VectorLoop | None:
    """``rounds``: that there are, if that is known; of few, a shorter vector has most."""
    search = _Search(known, var, {var})
    try:
        search.block(body)
    except _No:
        return None
    reading = _readers(body, var)
    if not all(isinstance(item, Op) and is_short_number(item, var) for item in reading):
        search.note(var.type)
    lanes = vector_bits // search.widest_bits
    while rounds is not None and lanes > max(rounds, 1):
        lanes //= 2
    worth = search.neighbours > 0 and search.neighbours + search.operations >= _WORTH * search.scattered
    if lanes < 2 or not worth:
        return None
    return VectorLoop(var, lanes, frozenset(search.varying), frozenset(search.private))


def is_short_number(op: Op, counter: Var) -> bool:
    """Whether a round's number is asked for in 32 bits, so that lanes need be no wider."""
    (result,) = op.results
    short = isinstance(result.type, IntType) and result.type.width_bits == SHORT_BITS
    return op.opcode == "convert.cast" and op.operands == (counter,) and short


def statement_operands(statement: object) -> tuple[Operand, ...]:
    """What a statement itself reads as scalars, indices aside."""
    match statement:
        case Op(operands=operands):
            return operands
        case Store(value=value):
            return (value,)
        case For(carried=carried) | While(carried=carried):
            return tuple(one.initial for one in carried)
        case If(condition=condition):
            return (condition,)
        case _:
            return ()


def _readers(block: Block, var: Var) -> Iterator[Statement | None]:
    """What reads a scalar, indices aside; None for a block that gives it."""
    if var not in used(block):
        return
    for statement in block.body:
        if var in statement_operands(statement):
            yield statement
        for inner in blocks_of(statement):
            yield from _readers(inner, var)
            if var in inner.yields:
                yield None

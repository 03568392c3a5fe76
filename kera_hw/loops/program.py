"""What a loop program is made of: buffers, scalars in single assignment, and structured statements.

One export as imperative code with nothing hidden. Scalars are assigned once and live in the block that
defines them; tensors are buffers of scalars. Loops count from 0 in steps of 1; what the source counts with is
computed from that. Statements are values: a transform makes a new program. Their places, for messages, names
and reports, are no part of a program's equality.

After the structured loops with carried values of MLIR's `scf` and the affine accesses of polyhedral compilers
(Feautrier, "Dataflow analysis of array and scalar references", 1991).
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from kera_hw.graph.node import Origin
from kera_hw.ops.spec import AttrValue
from kera_hw.types import IntType, Type

Kind = OneOf["param", "result", "state", "const", "temp"]
Memory = OneOf["register", "lut_ram", "block_ram", "fifo", "host", "device", "shared"]
Spread = OneOf["cyclic", "block"]
On = OneOf["vector", "threads", "grid", "block"]
COUNTER = IntType(64, True)
"""The type of loop variables and of everything that indexes."""


@dataclass(frozen=True, slots=True)
class Bank:
    """An axis in ``count`` parts that can be reached at once: by remainder, or in equal stretches."""

    axis: int
    count: int
    spread: Spread


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a buffer lies and how; no part of what it holds, and up to the target where nothing is said.

    ``window``, of a FIFO: how many elements back from the latest one a reader looks; 1 is a plain FIFO, more
    a line buffer. ``copies``: rounds of the loop around, or items, that have the buffer at the same time.
    """

    memory: Memory | None = None
    banks: tuple[Bank, ...] = ()
    window: int = 0
    copies: int = 1


ANYWHERE = Storage()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Elements of one scalar type in row-major order; rank 0 is a single element.

    A state keeps its elements from item to item and begins with ``data``, as a constant does; a temporary
    holds nothing until it is written. ``data`` is in the storage type, little-endian.
    """

    name: str
    element: Type
    shape: tuple[int, ...]
    kind: Kind = "temp"
    data: bytes = b""
    storage: Storage = ANYWHERE

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar, assigned once; its name is unique in the program."""

    name: str
    type: Type

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar constant by its bit pattern, an unsigned integer of the type's width."""

    type: Type
    bits: int


Operand = Var | Literal


@dataclass(frozen=True, slots=True)
class Affine:
    """``constant`` plus the sum of ``coefficient * variable``, over the integers, without wrapping.

    Variables are integers (loop counters, or scalars computed before); each occurs once, none with 0.
    """

    constant: int = 0
    terms: tuple[tuple[Var, int], ...] = ()

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        return affine(self.constant + other.constant, (*self.terms, *other.terms))

    def __mul__(self, factor: int) -> Affine:
        if factor == 0:
            return Affine()
        return Affine(self.constant * factor, tuple([(var, c * factor) for var, c in self.terms]))

    def __sub__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant - other, self.terms)
        total = dict(self.terms)
        for var, coefficient in other.terms:
            _count(total, var, -coefficient)
        return Affine(self.constant - other.constant, tuple(total.items()))

    def replace(self, values: dict[Var, Affine]) -> Affine:
        """With expressions in the place of variables."""
        constant, total = self.constant, dict[Var, int]()
        for var, coefficient in self.terms:
            value = values.get(var)
            if value is None:
                _count(total, var, coefficient)
                continue
            constant += value.constant * coefficient
            for inner, factor in value.terms:
                _count(total, inner, factor * coefficient)
        return Affine(constant, tuple(total.items()))


def affine(constant: int, terms: Iterable[tuple[Var, int]]) -> Affine:
    """The normal form: one term a variable, in order of first occurrence, none with 0."""
    total: dict[Var, int] = {}
    for var, coefficient in terms:
        total[var] = total.get(var, 0) + coefficient
    return Affine(constant, tuple([(var, c) for var, c in total.items() if c]))


def _count(total: dict[Var, int], var: Var, coefficient: int) -> None:
    """One more term of a sum in the normal form."""
    together = total.get(var, 0) + coefficient
    if together:
        total[var] = together
    else:
        total.pop(var, None)


def of_var(var: Var) -> Affine:
    return Affine(0, ((var, 1),))


Index = tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Op:
    """A row of the operation registry on scalars."""

    results: tuple[Var, ...]
    opcode: str
    operands: tuple[Operand, ...]
    attrs: tuple[tuple[str, AttrValue], ...] = ()
    place: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Load:
    result: Var
    buffer: str
    index: Index
    place: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    buffer: str
    index: Index
    value: Operand
    place: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Alloc:
    """A temporary of the block it stands in; inside a loop each iteration has its own."""

    buffer: Buffer


@dataclass(slots=True)
class Contents:
    """What a block and those within it name, as far as somebody has asked (``loops.contents``)."""

    defined: Mapping[str, None] | None = None
    """Scalars and buffers, in order."""
    read: tuple[frozenset[Var], frozenset[Var]] | None = None
    """Scalars as operands, and in index expressions."""
    touched: frozenset[str] | None = None
    """Buffers that are loaded from or stored to."""
    statements: tuple[Statement, ...] | None = None
    """All, each before those within it."""


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in order, and the scalars the block gives."""

    body: tuple[Statement, ...]
    yields: tuple[Operand, ...] = ()
    contents: Contents = field(default_factory=Contents, init=False, compare=False, repr=False)
    """Programs share the blocks that no transform changes, and what is known of them."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A scalar carried through a loop: what it is inside, what it begins as, what it is called after."""

    inner: Var
    initial: Operand
    outer: Var


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a loop's rounds run: one after another, unless something is said here.

    ``on``: what runs the rounds of a parallel loop at once. ``initiation_interval``: cycles from the start of
    one round to that of the next, 0 for rounds that do not overlap; ``latencies`` are the cycles of each
    operation that this was decided by (``load`` and ``store`` among them, ``other`` for what is not named).
    ``units``: how many units carry out all operations of a kind.
    """

    on: On | None = None
    initiation_interval: int = 0
    latencies: tuple[tuple[str, int], ...] = ()
    units: tuple[tuple[str, int], ...] = ()


IN_ORDER = Schedule()


@dataclass(frozen=True, slots=True)
class For:
    """``count`` rounds with ``var`` = 0, 1, ...; ``body`` yields the next carried values.

    ``parallel`` says that no round touches what another writes, which the verifier proves.
    """

    var: Var
    count: int
    carried: tuple[Carried, ...]
    body: Block
    parallel: bool = False
    place: Origin | None = field(default=None, compare=False)
    schedule: Schedule = IN_ORDER


@dataclass(frozen=True, slots=True)
class While:
    """Rounds while ``condition`` yields true, at most ``most``; both blocks see the carried values."""

    most: int
    carried: tuple[Carried, ...]
    condition: Block
    body: Block
    place: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    """One of two blocks, and its yields as ``results``."""

    condition: Operand
    then: Block
    otherwise: Block
    results: tuple[Var, ...] = ()
    place: Origin | None = field(default=None, compare=False)


Statement = Op | Load | Store | Alloc | For | While | If


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """One export. ``buffers``: parameters, results and states by leaf, in their order; then constants."""

    name: str
    buffers: tuple[Buffer, ...]
    body: Block

    def of_kind(self, kind: Kind) -> list[Buffer]:
        return [buffer for buffer in self.buffers if buffer.kind == kind]


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement, in order of execution."""
    if isinstance(statement, (Op, Load, Store, Alloc)):
        return ()
    match statement:
        case For(body=body):
            return (body,)
        case While(condition=condition, body=body):
            return (condition, body)
        case If(then=then, otherwise=otherwise):
            return (then, otherwise)


def statements(block: Block, that_run: bool = False) -> Iterator[Statement]:
    """All statements inside, each before those within it; with ``that_run`` none of loops without rounds."""
    return _running(block) if that_run else iter(_every(block))


def _every(block: Block) -> tuple[Statement, ...]:
    known = block.contents.statements
    if known is None:
        found: list[Statement] = []
        for statement in block.body:
            found.append(statement)
            if isinstance(statement, (For, While, If)):
                for inner in blocks_of(statement):
                    found += _every(inner)
        known = block.contents.statements = tuple(found)
    return known


def _running(block: Block) -> Iterator[Statement]:
    if not any(isinstance(statement, For) and not statement.count for statement in _every(block)):
        yield from _every(block)
        return
    for statement in block.body:
        yield statement
        if isinstance(statement, (While, If)) or (isinstance(statement, For) and statement.count):
            for inner in blocks_of(statement):
                yield from _running(inner)


def with_condition(block: Block, condition: bool = False) -> Iterator[tuple[Statement, bool]]:
    """All statements inside, with whether a branch decides if they run."""
    for statement in block.body:
        yield statement, condition
        for inner in blocks_of(statement):
            yield from with_condition(inner, condition or isinstance(statement, If))

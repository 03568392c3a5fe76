"""Checks that a loop program is sound, without trust in what made it.

Checked:
- every scalar is assigned once and used where it is in scope, every buffer declared once and used likewise;
- operations are element-wise rows of the registry on scalars, with the types its rules give;
- loads and stores fit their buffers; parameters and constants are never written;
- blocks yield what their statement takes;
- every index lies within its axis in all iterations, by intervals of loop counters and scalars;
- no element of a temporary or result is read before it is written, and results are written whole;
- a loop marked parallel carries nothing, and no round touches an element that another round writes;
- what is said of memories, banks, FIFOs, vectors and pipelines holds (``claims``, which opens with its list).

Not checked: that the program means what its graph means (the evaluator and the tests do that), nor that a
loop which is not marked could not be parallel. Elements are followed as dense boxes (``boxes``): a program
whose accesses are none is refused even if it happens to be sound.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kera_hw.loops.boxes import Box, Side, grown, hull, joined, within
from kera_hw.loops.claims import claims
from kera_hw.loops.dependences import distances
from kera_hw.loops.printer import affine_text
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
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    statements,
)
from kera_hw.loops.spans import affine_span, op_span, spans_within
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait, TypeRuleError
from kera_hw.types import BOOL, IntType, Type, is_scalar, numpy_dtype


def verify_loops(program: LoopProgram) -> list[str]:
    """What is wrong, each a sentence; empty for a sound program."""
    check = _Check()
    check.run(program)
    return check.faults or claims(program)  # which takes a sound program for granted


@dataclass(slots=True)
class _Scope:
    """What is known at one point: scalars with their ranges, buffers, the loops around, what is written."""

    ranges: dict[Var, Interval | None] = field(default_factory=dict[Var, "Interval | None"])
    buffers: dict[str, tuple[Buffer, int]] = field(default_factory=dict[str, tuple[Buffer, int]])
    loops: tuple[tuple[Var, Interval], ...] = ()
    before: dict[str, list[Box]] = field(default_factory=dict[str, list[Box]])
    own: dict[str, list[Box]] = field(default_factory=dict[str, list[Box]])

    def inner(self, var: Var | None = None, count: int = 0) -> _Scope:
        span = Interval(0, max(count - 1, 0))
        loops = (*self.loops, (var, span)) if var is not None else self.loops
        known = {name: self.written(name) for name in {*self.before, *self.own}}
        found = _Scope(dict(self.ranges), dict(self.buffers), loops, known)
        if var is not None:
            found.ranges[var] = span
        return found

    def written(self, name: str) -> list[Box]:
        """What has been written of a buffer: before the block began, and in it so far."""
        return [*self.before.get(name, []), *self.own.get(name, [])]

    def note(self, name: str, boxes: list[Box]) -> None:
        if name in self.buffers:
            self.own[name] = joined([*self.own.get(name, []), *boxes])

    def settled(self, index: Index) -> Index:
        """With loops of a single round as the number that they count."""
        still = {var: Affine(span.low) for var, span in self.loops if span.low == span.high}
        return tuple(part.replace(still) for part in index) if still else index


class _Check:
    def __init__(self) -> None:
        self.faults: list[str] = []
        self.names: set[str] = set()

    def fault(self, message: str) -> None:
        self.faults.append(message)

    def run(self, program: LoopProgram) -> None:
        scope = _Scope()
        for buffer in program.buffers:
            if buffer.kind == "temp":
                self.fault(f"`{buffer.name}` is a temporary outside every block.")
            self._declare(buffer, scope)
        self._block(program.body, scope, ())
        for buffer in program.of_kind("result"):
            whole = tuple(Side((), 0, extent - 1) for extent in buffer.shape)
            if not within(whole, scope.written(buffer.name)):
                self.fault(f"The result `{buffer.name}` is not written whole.")

    # Names and types

    def _name(self, name: str) -> None:
        if name in self.names:
            self.fault(f"`{name}` is defined twice.")
        self.names.add(name)

    def _declare(self, buffer: Buffer, scope: _Scope) -> None:
        self._name(buffer.name)
        if not is_scalar(buffer.element) or any(extent < 0 for extent in buffer.shape):
            self.fault(f"`{buffer.name}` is no buffer of scalars with extents of 0 and more.")
        has_data = buffer.kind in ("const", "state")
        if has_data and len(buffer.data) != buffer.size * numpy_dtype(buffer.element).itemsize:
            self.fault(f"The contents of `{buffer.name}` do not fill it.")
        scope.buffers[buffer.name] = (buffer, len(scope.loops))

    def _define(self, var: Var, scope: _Scope, span: Interval | None = None) -> None:
        self._name(var.name)
        if not is_scalar(var.type):
            self.fault(f"`{var.name}` is no scalar.")
        scope.ranges[var] = span if span is not None else type_interval(var.type)

    def _use(self, operand: Operand, scope: _Scope) -> Type:
        if isinstance(operand, Var):
            if operand not in scope.ranges:
                self.fault(f"`{operand.name}` has no value where it is used.")
        elif not 0 <= operand.bits < 1 << getattr(operand.type, "width_bits", 1):
            self.fault(f"The constant {operand.bits:#x} is none of {operand.type}.")
        return operand.type

    # Statements

    def _block(self, block: Block, scope: _Scope, wanted: tuple[Type, ...]) -> None:
        for statement in block.body:
            self._statement(statement, scope)
        found = tuple(self._use(operand, scope) for operand in block.yields)
        if found != wanted:
            self.fault(f"A block yields {_list(found)}, but {_list(wanted)} is wanted.")

    def _statement(self, statement: Statement, scope: _Scope) -> None:
        match statement:
            case Op():
                self._op(statement, scope)
            case Load(result=result, buffer=name, index=index):
                buffer = self._access(name, index, scope)
                if buffer is not None:
                    self._readable(buffer, index, scope)
                    if result.type != buffer.element:
                        self.fault(f"`{result.name}` is {result.type}, loaded from {buffer.element}.")
                self._define(result, scope)
            case Store(buffer=name, index=index, value=value):
                self._store(name, index, value, scope)
            case Alloc(buffer=buffer):
                if buffer.kind != "temp":
                    self.fault(f"`{buffer.name}` in a block is a {buffer.kind}, not a temporary.")
                self._declare(buffer, scope)
            case For():
                self._for(statement, scope)
            case While():
                self._while(statement, scope)
            case If():
                self._if(statement, scope)

    def _op(self, op: Op, scope: _Scope) -> None:
        kinds = tuple(self._use(operand, scope) for operand in op.operands)
        spec, attrs = OPS.get(op.opcode), dict(op.attrs)
        span: Interval | None = None
        if spec is None or Trait.ELEMENTWISE not in spec.traits:
            self.fault(f"`{op.opcode}` is no operation on scalars.")
        elif tuple(attrs) != spec.attrs:
            wanted, given = _words(spec.attrs), _words(tuple(attrs))
            self.fault(f"`{op.opcode}` takes the attributes {wanted}, not {given}.")
        else:
            try:
                types = spec.infer(kinds, attrs)
            except TypeRuleError as error:
                self.fault(f"`{op.opcode}` does not take its operands: {error}")
                types = ()
            given = tuple(result.type for result in op.results)
            if types and types != given:
                self.fault(f"`{op.opcode}` gives {_list(types)}, not {_list(given)}.")
            if types == given and len(given) == 1:
                span = op_span(op, scope.ranges)
        for result in op.results:
            self._define(result, scope, span)

    def _access(self, name: str, index: Index, scope: _Scope) -> Buffer | None:
        found = scope.buffers.get(name)
        if found is None:
            self.fault(f"There is no buffer `{name}` here.")
            return None
        buffer = found[0]
        if len(index) != len(buffer.shape):
            self.fault(f"`{name}` takes {len(buffer.shape)} indices, not {len(index)}.")
            return None
        for part, extent in zip(index, buffer.shape):
            span = self._span(part, scope)
            if span is None:
                self.fault(f"The index {affine_text(part)} of `{name}` is made of something without a range.")
            elif span.low < 0 or span.high >= extent:
                self.fault(f"The index {affine_text(part)} of `{name}` may be {span}, of {extent} elements.")
        return buffer

    def _span(self, part: Affine, scope: _Scope) -> Interval | None:
        for var, _ in part.terms:
            self._use(var, scope)
        are_integers = all(isinstance(var.type, IntType) for var, _ in part.terms)
        return affine_span(part, scope.ranges) if are_integers else None

    def _store(self, name: str, index: Index, value: Operand, scope: _Scope) -> None:
        kind, buffer = self._use(value, scope), self._access(name, index, scope)
        if buffer is None:
            return
        if buffer.kind in ("param", "const"):
            self.fault(f"The {buffer.kind} `{name}` is written.")
        if kind != buffer.element:
            self.fault(f"A {kind} is stored in `{name}` of {buffer.element}.")
        scope.note(name, [hull(scope.settled(index), {})])

    def _readable(self, buffer: Buffer, index: Index, scope: _Scope) -> None:
        """Elements of a temporary or result have been written before, whatever scalars in the index are."""
        if buffer.kind not in ("temp", "result"):
            return
        counters, written = {var for var, _ in scope.loops}, joined(scope.written(buffer.name))
        index = scope.settled(index)
        moving = {
            var: span for part in index for var, _ in part.terms
            if var not in counters and (span := scope.ranges.get(var)) is not None
        }
        around = dict(scope.loops)
        # This round of all loops around, then all rounds of the innermost, of the two innermost, ...
        for depth in range(len(scope.loops), -1, -1):
            if within(hull(index, moving | dict(scope.loops[depth:])), written, around):
                return
        self.fault(f"`{buffer.name}` is read where it may not have been written.")

    # Structure

    def _carry(self, carried: tuple[Carried, ...], scope: _Scope, inside: _Scope) -> tuple[Type, ...]:
        for item in carried:
            kinds = {self._use(item.initial, scope), item.inner.type, item.outer.type}
            if len(kinds) != 1:
                self.fault(f"What is carried as `{item.inner.name}` changes its type.")
            self._define(item.inner, inside)
        return tuple(item.inner.type for item in carried)

    def _for(self, loop: For, scope: _Scope) -> None:
        self._name(loop.var.name)
        if loop.var.type != COUNTER or loop.count < 0:
            self.fault(f"The loop of `{loop.var.name}` does not count from 0 in {COUNTER}.")
        inside = scope.inner(loop.var, loop.count)
        wanted = self._carry(loop.carried, scope, inside)
        if loop.count:  # a body that never runs has nothing to read or write
            self._block(loop.body, inside, wanted)
            self._collect(inside, scope, loop.var)
        if loop.parallel:
            self._independent(loop, inside)
        for item in loop.carried:
            self._define(item.outer, scope)

    def _collect(self, inside: _Scope, scope: _Scope, var: Var) -> None:
        """What a loop has written when it is done, into the scope around."""
        span = dict(inside.loops)[var]
        for name, boxes in inside.own.items():
            over_all = (grown(box, var, span) for box in boxes)
            scope.note(name, [box for box in over_all if box is not None])

    def _independent(self, loop: For, inside: _Scope) -> None:
        if loop.carried:
            self.fault(f"The parallel loop of `{loop.var.name}` carries values.")
        inner, locals_ = spans_within(loop.body, inside.ranges), set(_allocated(loop.body))
        accesses = [item for item in _accesses(loop.body) if item.buffer not in locals_]
        met = {
            store.buffer for store in accesses if isinstance(store, Store) for other in accesses
            if other.buffer == store.buffer
            and self._meet(inside.settled(store.index), inside.settled(other.index), loop, inner)
        }
        for name in sorted(met):
            self.fault(f"Rounds of the parallel loop of `{loop.var.name}` may meet in `{name}`.")

    def _meet(self, a: Index, b: Index, loop: For, inner: Mapping[Var, Interval]) -> bool:
        """Whether two different rounds may touch one element."""
        span = distances(a, b, loop.var, loop.var, loop.count, inner)
        return not span.empty and span != Interval(0, 0)

    def _while(self, loop: While, scope: _Scope) -> None:
        if loop.most < 0:
            self.fault("A loop runs at most a negative number of rounds.")
        inside = scope.inner()
        wanted = self._carry(loop.carried, scope, inside)
        test = inside.inner()
        self._block(loop.condition, test, (BOOL,))
        self._block(loop.body, inside.inner(), wanted)
        for item in loop.carried:
            self._define(item.outer, scope)

    def _if(self, branch: If, scope: _Scope) -> None:
        if self._use(branch.condition, scope) != BOOL:
            self.fault("A branch asks something that is no bool.")
        wanted = tuple(result.type for result in branch.results)
        sides = [scope.inner(), scope.inner()]
        for side, block in zip(sides, (branch.then, branch.otherwise)):
            self._block(block, side, wanted)
        then, otherwise = sides
        for name, boxes in then.own.items():
            scope.note(name, [box for box in boxes if within(box, otherwise.own.get(name, []))])
        for result in branch.results:
            self._define(result, scope)


def _accesses(block: Block) -> Iterator[Load | Store]:
    return (item for item in statements(block, that_run=True) if isinstance(item, (Load, Store)))


def _allocated(block: Block) -> Iterator[str]:
    return (item.buffer.name for item in statements(block, that_run=True) if isinstance(item, Alloc))


def _list(types: tuple[Type, ...]) -> str:
    return f"({', '.join(map(str, types))})"


def _words(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"

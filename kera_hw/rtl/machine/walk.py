"""Statements of a loop program executed symbolically: scalars become references, elements of buffers too.

Inner loops are unrolled and branches become selects; what each operation is made of, flattening says.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from kera_hw.graph.node import Origin, Ref
from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Alloc,
    Block,
    Buffer,
    For,
    If,
    Index,
    Literal,
    Load,
    Op,
    Operand,
    Place,
    Statement,
    Store,
    Var,
    While,
)
from kera_hw.rtl.lower.builder import Builder, carrier
from kera_hw.rtl.lower.flatten import Flattener
from kera_hw.support import Span
from kera_hw.types import BOOL, TensorType, Type


@dataclass(frozen=True, slots=True)
class Elements:
    """A buffer's elements, row-major; assigning one makes another value."""

    shape: tuple[int, ...]
    items: tuple[Ref, ...]


class Scope:
    """What scalars and buffers are at a point of execution."""

    def __init__(self) -> None:
        self.scalars: dict[Var, Ref] = {}
        self.buffers: dict[str, Elements] = {}

    def scalar(self, var: Var) -> Ref:
        return self.scalars[var]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.buffers[name].shape

    def element(self, name: str, place: int) -> Ref:
        return self.buffers[name].items[place]

    def elements(self, name: str) -> tuple[Ref, ...]:
        return self.buffers[name].items


class Walker:
    """Executes statements in a scope."""

    def __init__(self, flattener: Flattener, scope: Scope) -> None:
        self.flattener = flattener
        self.builder: Builder = flattener.builder
        self.scope = scope

    def block(self, block: Block) -> list[Ref]:
        """The block's yields."""
        for statement in block.body:
            self.statement(statement)
        return [self.operand(item) for item in block.yields]

    def operand(self, item: Operand) -> Ref:
        return self.scope.scalar(item) if isinstance(item, Var) else literal(self.builder, item)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Op():
                self._op(statement)
            case Load(result=result, buffer=name, index=index):
                self.scope.scalars[result] = self._load(name, index)
            case Store(buffer=name, index=index, value=value):
                self._store(name, index, self.operand(value))
            case Alloc(buffer=buffer):
                self.scope.buffers[buffer.name] = blank(self.builder, buffer)
            case For():
                self._for(statement)
            case While():
                self._while(statement)
            case If():
                self._if(statement)

    def _op(self, op: Op) -> None:
        store = self.flattener.store
        kinds = [item.type for item in op.operands]
        model = store.node(op.opcode, tuple(store.param(k, kind) for k, kind in enumerate(kinds)), dict(op.attrs))
        args = [self.operand(item) for item in op.operands]
        store.origin = origin_of(op.place)
        found = self.flattener._apply(model, args)
        store.origin = None
        self.scope.scalars.update(zip(op.results, cast("list[Ref]", found)))

    # Elements

    def _position(self, shape: tuple[int, ...], index: Index) -> Ref | int:
        """Where in row-major order an element lies."""
        place = Affine()
        for extent, part in zip(shape, index):
            place = place * extent + part
        total: Ref | None = None
        constant = place.constant
        for var, coefficient in place.terms:
            value = self.scope.scalar(var)
            known = self.builder.value(value)
            if known is not None:
                constant += known * coefficient
                continue
            wide = self.builder.cast(value, COUNTER)
            term = self.builder.op("integer.mul", wide, self.builder.const(COUNTER, coefficient))
            total = term if total is None else self.builder.op("integer.add", total, term)
        if total is None:
            return constant
        return self.builder.op("integer.add", total, self.builder.const(COUNTER, constant))

    def _load(self, name: str, index: Index) -> Ref:
        place = self._position(self.scope.shape(name), index)
        if isinstance(place, int):
            return self.scope.element(name, place)
        return self._raw(lambda *raws: self.builder.pick(place, raws), *self.scope.elements(name))

    def _store(self, name: str, index: Index, value: Ref) -> None:
        shape, items = self.scope.shape(name), list(self.scope.elements(name))
        place = self._position(shape, index)
        if isinstance(place, int):
            items[place] = value
        else:
            for k, old in enumerate(items):
                here = self.builder.op("compare.eq", place, self.builder.const(COUNTER, k))
                items[k] = self._select(here, value, old)
        self.scope.buffers[name] = Elements(shape, tuple(items))

    def _select(self, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
        return self.flattener._select(condition, then, otherwise)

    def _raw(self, choose: object, *items: Ref) -> Ref:
        return self.flattener._on_raw(choose, *items)  # type: ignore[arg-type]

    # Control

    def _for(self, loop: For) -> None:
        values = [self.operand(item.initial) for item in loop.carried]
        for number in range(loop.count):
            self.scope.scalars[loop.var] = self.builder.const(COUNTER, number)
            self.scope.scalars.update(zip((item.inner for item in loop.carried), values))
            values = self.block(loop.body)
        self.scope.scalars.update(zip((item.outer for item in loop.carried), values))

    def _while(self, loop: While) -> None:
        values = [self.operand(item.initial) for item in loop.carried]
        active = self.builder.const(BOOL, 1)
        for _ in range(loop.most):
            self.scope.scalars.update(zip((item.inner for item in loop.carried), values))
            (goes_on,) = self.block(loop.condition)
            active = self.builder.op("bits.and", active, goes_on)
            if self.builder.value(active) == 0:
                break
            before = dict(self.scope.buffers)
            after = self.block(loop.body)
            values = [self._select(active, new, old) for new, old in zip(after, values)]
            self._merge(active, dict(self.scope.buffers), before)
        self.scope.scalars.update(zip((item.outer for item in loop.carried), values))

    def _if(self, branch: If) -> None:
        condition = self.operand(branch.condition)
        known = self.builder.value(condition)
        if known is not None:
            chosen = branch.then if known else branch.otherwise
            self.scope.scalars.update(zip(branch.results, self.block(chosen)))
            return
        before = dict(self.scope.buffers)
        first = self.block(branch.then)
        then, self.scope.buffers = self.scope.buffers, dict(before)
        second = self.block(branch.otherwise)
        self._merge(condition, then, self.scope.buffers)
        for result, a, b in zip(branch.results, first, second):
            self.scope.scalars[result] = self._select(condition, a, b)

    def _merge(
        self, condition: Ref, then: Mapping[str, Elements], otherwise: Mapping[str, Elements]
    ) -> None:
        """The buffers of one of two sides; what one side alone has is no more."""
        self.scope.buffers = merged = dict(otherwise)
        for name, one in then.items():
            other = otherwise.get(name)
            if other is not None and one is not other:
                pairs = zip(one.items, other.items)
                items = tuple(a if a is b else self._select(condition, a, b) for a, b in pairs)
                merged[name] = Elements(one.shape, items)


def literal(builder: Builder, item: Literal) -> Ref:
    return builder.const(carrier(item.type), item.bits)


def blank(builder: Builder, buffer: Buffer) -> Elements:
    """A temporary before anything is written: no value of it is ever seen."""
    return Elements(buffer.shape, (builder.const(carrier(buffer.element), 0),) * buffer.size)


def contents(builder: Builder, buffer: Buffer) -> Elements:
    """The elements of a constant."""
    node = builder.store.op(
        "core.constant", type=_tensor_type(buffer), value=buffer.data
    )
    return Elements(buffer.shape, tuple(builder.constants(node)))


def _tensor_type(buffer: Buffer) -> Type:
    return TensorType(buffer.element, buffer.shape) if buffer.shape else buffer.element


def origin_of(place: Place | None) -> Origin | None:
    return None if place is None else Origin(place.path, Span(0, 0), place.line)


"""Writes an operation on scalars of any type as native operations, through the rules of its family.

A rule may write operations of other types in turn, as the expansions of the registry do: all of them come
back here until the machine has what is asked for.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from kera_hw.legal import nans, small
from kera_hw.legal.emitter import NativeEmitter
from kera_hw.legal.native import Native
from kera_hw.legal.values import Call, Forms, Table, Value, container, is_odd, raw
from kera_hw.loops.program import Literal, Operand
from kera_hw.loops.spans import literal_span
from kera_hw.lower.emitter import bits_of, literal, storage_bytes
from kera_hw.numerics import rounding
from kera_hw.numerics.arrays import Array
from kera_hw.ops.intervals import MaybeInterval, OpShape, apply_rule
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue, RegionLike
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import F32, BoolType, FloatType, IntType, TensorType, Type, numpy_dtype

Rule = Callable[["Writer", Call], Sequence[Value]]


class Writer:
    """Where rules write: ``to.op`` for an operation on scalars of any type, ``to.emit`` for a native one."""

    def __init__(self, native: Native, rules: Mapping[str, Rule], taken: Iterable[str] = ()) -> None:
        self.emit = NativeEmitter(native, taken)
        self.forms = Forms(native)
        self._rules = rules
        self._signatures: dict[tuple[object, ...], tuple[tuple[Type, ...], bool]] = {}

    # Operations

    def op(self, opcode: str, *inputs: Value | Table, **attrs: AttrValue) -> Value:
        """The result of an operation that has one."""
        if opcode == "tensor.index":
            table, index = inputs
            assert isinstance(table, Table) and isinstance(index, Value)
            return self._entry(table, index)
        (found,) = self.outputs(opcode, cast("tuple[Value, ...]", inputs), attrs)
        return found

    def outputs(
        self, opcode: str, inputs: Sequence[Value], attrs: Mapping[str, AttrValue],
        span: MaybeInterval = None,
    ) -> Sequence[Value]:
        """The results; ``span`` is what is known of a single one."""
        kinds = tuple(value.type for value in inputs)
        types, is_native = self._signature(opcode, kinds, attrs)
        if span is None and len(types) == 1:
            span = apply_rule(opcode, [value.span for value in inputs], OpShape(kinds, types[0], attrs))
        if is_native:
            operands = [self.loose(value) for value in inputs]
            (result,) = self.emit.outputs(opcode, operands, dict(attrs))
            return (Value(types[0], result, span, not isinstance(types[0], FloatType)),)
        call = Call(opcode, tuple(inputs), types, attrs, span)
        rule = self._rules.get(opcode)
        return self.expanded(call) if rule is None else rule(self, call)

    def _signature(
        self, opcode: str, kinds: tuple[Type, ...], attrs: Mapping[str, AttrValue]
    ) -> tuple[tuple[Type, ...], bool]:
        """The types of the results, and whether the machine has the operation as it stands."""
        key = (opcode, kinds, tuple(attrs.items()))
        if key not in self._signatures:
            types = OPS[opcode].infer(kinds, attrs)
            is_native = (
                len(types) == 1 and all(map(self._holds, (*kinds, *types)))
                and self.emit.is_total(opcode, kinds, types[0])
            )
            self._signatures[key] = types, is_native
        return self._signatures[key]

    def expanded(self, call: Call) -> Sequence[Value]:
        """The operation by its expansion."""
        rule = OPS[call.opcode].expansion
        found = None if rule is None else rule(self, call.args, call.attrs)
        if found is None:
            kinds = ", ".join(str(value.type) for value in call.args)
            message = f"`{call.opcode}` on {kinds} is neither native nor made of other operations."
            note = "This is a gap in kera, not in your program; run the function on the interpreter."
            raise KeraError([Diagnostic("K0704", message, notes=(note,))])
        return found if len(found) > 1 else [replace(found[0], span=call.span)]

    def _holds(self, kind: Type) -> bool:
        """Whether the native type for a scalar type is that type."""
        return self.forms.working(kind) == kind

    def _entry(self, table: Table, index: Value) -> Value:
        """An element of a table, the index held within it."""
        operand = self.settled(index)
        place = self.emit.clamped(operand, table.buffer.size - 1)
        kind = table.buffer.element
        return Value(kind, self.emit.load(table.buffer, (place,)), None, True)

    def constant(self, kind: Type, value: Array | int) -> Value | Table:
        """A constant by its elements in storage form."""
        if isinstance(kind, TensorType):
            data = storage_bytes(kind.element, np.asarray(value))
            return Table(self.emit.constant(kind.element, kind.shape, data))
        return self.literal(Literal(kind, bits_of(kind, np.asarray(value).astype(numpy_dtype(kind)))))

    def param(self, index: int, kind: Type) -> Value:
        """No expansion of an operation on scalars has regions."""
        raise AssertionError("an operation on scalars holds no region")

    def region(self, params: Sequence[Type], results: Sequence[object]) -> RegionLike:
        raise AssertionError("an operation on scalars holds no region")

    def literal(self, item: Literal) -> Value:
        """A constant in the form in which it is computed with."""
        kind, span = item.type, literal_span(item)
        if isinstance(kind, BoolType):
            return Value(kind, item, span, True)
        if not isinstance(kind, FloatType):
            whole = raw(kind)
            return Value(kind, literal(container(whole), whole.wrap(item.bits)), span, True)
        if self.forms.is_small(kind):
            word = np.array(item.bits, np.uint16).view(numpy_dtype(kind))
            wide = rounding.widen(word, kind).astype(np.float32)
            return Value(kind, Literal(F32, bits_of(F32, wide)), None, True)
        return Value(kind, item, None, True)

    # Forms of a scalar

    def loose(self, value: Value) -> Operand:
        """The operand in its working type, settled or not."""
        if value.packed:
            self._unpack(value)
        return value.operand

    def settled(self, value: Value) -> Operand:
        """The operand that shows exactly the value; settled once for all that reads this ``Value``."""
        operand, kind = self.loose(value), value.type
        if not value.settled:
            if not isinstance(kind, FloatType):
                value.operand = self._extended(operand, raw(kind))
            elif self.forms.is_small(kind):
                value.operand = small.on_grid(self.emit, operand, kind)
            else:
                value.operand = nans.canonical(self.emit, operand)
            value.settled = True
        return value.operand

    def _extended(self, operand: Operand, kind: IntType) -> Operand:
        """An integer modulo 2^W, sign- or zero-extended."""
        spare_bits = container(kind).width_bits - kind.width_bits
        if not kind.signed:
            return self.emit.both(operand, kind.max)
        return self.emit.shr(self.emit.shl(operand, spare_bits), spare_bits)

    def _unpack(self, value: Value) -> None:
        assert isinstance(value.type, FloatType)
        value.operand, value.packed = small.unpacked(self.emit, value.operand, value.type), False
        value.settled = True

    def word(self, value: Value) -> Operand:
        """A float's bits as an unsigned integer, any NaN as the canonical one."""
        kind = value.type
        assert isinstance(kind, FloatType)
        if self.forms.is_small(kind):
            return small.packed(self.emit, value.operand, kind, value.settled, value.packed)
        return self.emit.bits(self.settled(value))

    # Fixed point and integers are the same operands

    def retyped(self, value: Value, kind: Type) -> Value:
        """The same raw integer as a number of another type of equal width and sign."""
        return replace(value, type=kind)

    def integer(self, kind: Type, operand: Operand, call: Call, settled: bool) -> Value:
        """A result in its native integer; where nothing is to spare it is settled anyhow."""
        return Value(kind, operand, call.span, settled or not is_odd(raw(kind)))

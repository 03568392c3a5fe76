"""Which scalars are looked at, so that they are settled where they are made, and which are only moved.

Sums of integers, selections and stores of an f16 take their operands unsettled; everything that is not named
here asks for settled ones. What a loop carries is settled if its body looks, or whoever takes it afterwards.
"""
from __future__ import annotations

from dataclasses import dataclass, field

from kera_hw.legal.values import Forms, raw
from kera_hw.loops.program import (
    Buffer,
    For,
    If,
    Load,
    LoopProgram,
    Op,
    Operand,
    Store,
    Var,
    While,
    statements,
)
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.types import BoolType, FixType, FloatType, IntType, Type, bit_width

_OWN_BITS = frozenset(f"bits.{verb}" for verb in ("extract", "test", "reverse_bits", "reverse_bytes"))
"""Operations that take bits of their operand out by their places."""
_MODULAR = frozenset(name for name, spec in OPS.items() if Trait.LOW_BITS in spec.traits)
_MOVING = frozenset({"floating.neg", "floating.abs", "floating.is_nan"})


@dataclass(slots=True)
class Demand:
    """``settled``: looked at. ``valued``: an f16 or bf16 that is computed with, not only moved."""

    settled: set[Var] = field(default_factory=set[Var])
    valued: set[Var] = field(default_factory=set[Var])
    indexing: set[Var] = field(default_factory=set[Var])


def demand_of(program: LoopProgram, forms: Forms) -> Demand:
    return _Search(forms).run(program)


class _Search:
    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._found = Demand()
        self._buffers: dict[str, Buffer] = {}
        self._passed_on: dict[Var, list[Var]] = {}  # looked at if the first is

    def run(self, program: LoopProgram) -> Demand:
        self._buffers = {buffer.name: buffer for buffer in program.buffers}
        for statement in statements(program.body):
            match statement:
                case Op():
                    self._op(statement)
                case Store(buffer=name, index=index, value=value):
                    self._store(name, value)
                    self._index([var for part in index for var, _ in part.terms])
                case Load(index=index):
                    self._index([var for part in index for var, _ in part.terms])
                case For(carried=carried, body=body):
                    for item, after in zip(carried, body.yields):
                        self._pass(item.inner, item.initial, after)
                case While(carried=carried, condition=condition, body=body):
                    self._look(*condition.yields)
                    for item, after in zip(carried, body.yields):
                        self._pass(item.inner, item.initial, after)
                case If(condition=condition, results=results, then=then, otherwise=otherwise):
                    self._look(condition)
                    for result, one, other in zip(results, then.yields, otherwise.yields):
                        self._pass(result, one, other)
                case _:
                    pass
        return self._closed()

    def _look(self, *operands: Operand) -> None:
        vars_ = [operand for operand in operands if isinstance(operand, Var)]
        self._found.settled.update(vars_)
        self._found.valued.update(vars_)

    def _value(self, *operands: Operand) -> None:
        self._found.valued.update(operand for operand in operands if isinstance(operand, Var))

    def _index(self, variables: list[Var]) -> None:
        self._look(*variables)
        self._found.indexing.update(variables)

    def _pass(self, to: Var, *operands: Operand) -> None:
        """``operands`` become ``to``, in its form."""
        self._value(*operands)
        self._passed_on.setdefault(to, []).extend(o for o in operands if isinstance(o, Var))

    def _store(self, name: str, value: Operand) -> None:
        if isinstance(value.type, FloatType):
            if not self._forms.is_small(value.type) and self.shows(name):
                self._look(value)
        else:
            self._look(value)

    def shows(self, name: str) -> bool:
        """Whether a buffer's bits are seen from outside."""
        buffer = self._buffers.get(name)
        return buffer is not None and buffer.kind in ("result", "state")

    def _op(self, op: Op) -> None:
        kinds = [operand.type for operand in op.operands]
        match op.opcode:
            case "control.select":
                self._look(op.operands[0])
                self._value(*op.operands[1:])
            case "bits.shl":
                self._look(op.operands[1])
            case "convert.cast" if _cuts(kinds[0], op.results[0].type):
                pass
            case "convert.bitcast" if self._forms.is_small(kinds[0]) or not isinstance(kinds[0], FloatType):
                pass
            case "floating.copysign":
                self._value(op.operands[0])
                self._look(op.operands[1])
                if self._forms.is_small(kinds[0]):
                    self._look(op.operands[0])
            case opcode if opcode in _OWN_BITS or _is_modular(op):
                pass
            case opcode if opcode in _MOVING or self._keeps_nans(op):
                self._value(*op.operands)
            case _:
                self._look(*op.operands)

    def _keeps_nans(self, op: Op) -> bool:
        """Whether all operands are floats of the machine, whose NaNs arithmetic takes as they are."""
        return op.opcode != "convert.bitcast" and all(
            isinstance(operand.type, FloatType) and not self._forms.is_small(operand.type)
            for operand in op.operands
        )

    def _closed(self) -> Demand:
        """With everything that is passed on to what is looked at."""
        waiting = list(self._found.settled)
        while waiting:
            for var in self._passed_on.get(waiting.pop(), ()):
                if var not in self._found.settled:
                    self._found.settled.add(var)
                    waiting.append(var)
        return self._found


def _is_modular(op: Op) -> bool:
    """Whether what stands above the operands' bits changes nothing within the result's."""
    if op.opcode not in _MODULAR:
        return False
    width = bit_width(op.results[0].type)
    return not any(bit_width(operand.type) < width for operand in op.operands)


def _cuts(source: Type, target: Type) -> bool:
    """Whether a conversion takes the lowest bits of an integer and no others."""
    whole = isinstance(source, IntType | FixType) and isinstance(target, IntType | FixType)
    if not whole or isinstance(source, BoolType):
        return False
    shift_bits = getattr(target, "fraction_bits", 0) - getattr(source, "fraction_bits", 0)
    return shift_bits >= 0 and raw(target).width_bits <= raw(source).width_bits

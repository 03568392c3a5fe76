"""Scalars of a loop program as locals: what each is held in, and how it is pushed."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.loops.program import Literal, Operand
from kera_hw.types import BoolType, IntType, Type
from kera_hw.wasm.code import Code
from kera_hw.wasm.scalars import extend, prefix
from kera_hw.wasm.vectors import extract, integer_shape, resize_mask, splat


@dataclass(frozen=True, slots=True)
class Held:
    """``lanes``: of a vector, 1 for a scalar. ``mask_bits``: of a bool's mask. ``counter``: an i32 for a
    number of 64 bits. ``loose``: see ``scalars``. ``everywhere``: a scalar that all lanes of a vector are."""

    local: int
    lanes: int = 1
    mask_bits: int = 0
    counter: bool = False
    loose: bool = False
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """An operand of a scalar or vector operation; ``held`` is None for a constant. ``splat``: a local that
    has it in all lanes."""

    code: Code
    operand: Operand
    held: Held | None
    splat: int | None = None

    @property
    def type(self) -> Type:
        return self.operand.type

    @property
    def uniform(self) -> bool:
        return self.held is None or self.held.lanes == 1

    @property
    def bits(self) -> int | None:
        return self.operand.bits if isinstance(self.operand, Literal) else None

    @property
    def mask_bits(self) -> int:
        return 0 if self.held is None else self.held.mask_bits

    def push_scalar(self, loose: bool = False) -> None:
        """The scalar of a uniform operand."""
        if self.held is None:
            assert isinstance(self.operand, Literal)
            push_literal(self.code, self.operand)
            return
        self.code.get(self.held.local)
        if self.held.everywhere:
            extract(self.code, self.type, 0)
        elif self.held.counter:
            self.code.op("i64.extend_i32_u")
        elif self.held.loose and not loose:
            extend(self.code, self.type)

    def push_mask(self, width_bits: int) -> None:
        """The lanes of a bool as a mask."""
        assert isinstance(self.type, BoolType)
        if not self.uniform:
            assert self.held is not None
            self.code.get(self.held.local)
            resize_mask(self.code, self.held.mask_bits, width_bits)
            return
        self.code.number(0)
        self.push_scalar()
        self.code.op("i32.sub")
        if width_bits == 64:
            self.code.op("i64.extend_i32_s")
        self.code.op(f"{integer_shape(width_bits)}.splat")


class ScalarSource(Source):
    """Pushes a scalar."""

    def push(self, loose: bool = False) -> None:
        self.push_scalar(loose)


class VectorSource(Source):
    """Pushes lanes."""

    def push(self) -> None:
        if self.uniform and self.splat is not None:
            self.code.get(self.splat)
        elif self.held is not None and (self.held.everywhere or not self.uniform):
            self.code.get(self.held.local)
        else:
            self.push_scalar(loose=True)
            splat(self.code, self.type)


def push_literal(code: Code, literal: Literal) -> None:
    """A constant, narrow ones extended by their sign."""
    kind, bits = literal.type, literal.bits
    where = prefix(kind)
    if isinstance(kind, IntType):
        bits = kind.wrap(bits) & ((1 << int(where[1:])) - 1)
    code.op(f"{where}.const", bits)

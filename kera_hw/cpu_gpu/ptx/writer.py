"""Kernels in PTX: threads branch each for themselves, and the machine keeps them together where it can."""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal as OneOf

from kera_hw.cpu_gpu.gpu.writer import Held, Place, Scalar, Space, Step, Writer
from kera_hw.cpu_gpu.ptx.code import Code, register_type
from kera_hw.cpu_gpu.ptx.scalars import RULES, Source, typed
from kera_hw.legal.native import Signature
from kera_hw.schedule.software.layout import ALIGNMENT_BYTES
from kera_hw.types import IntType, Type


class PtxWriter(Writer[str]):
    """``arrays``: declarations of shared and local memory."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self.code = Code()
        self.parameters = parameters
        self.arrays: list[str] = []

    @property
    def instructions(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.code.instructions

    # Scalars

    def _source(self, scalar: Scalar[str]) -> Source:
        return Source(self.code, scalar.type, scalar.held)

    def compute(self, op: Signature, args: Sequence[Scalar[str]]) -> Held[str]:
        rule = RULES.get(op.opcode)
        assert rule is not None, f"{op.opcode} is no operation of PTX"
        return rule(self.code, [self._source(one) for one in args], op)

    def register(self, kind: Type) -> str:
        return self.code.new(register_type(kind))

    def move(self, register: str, value: Scalar[str]) -> None:
        self.code.op(f"mov.{register_type(value.type)}", register, self._source(value).read())

    has_byte_products = True

    def sum_of_products(
        self, total: Scalar[str], words: tuple[Held[str], Held[str]], kinds: tuple[Type, Type]
    ) -> Held[str]:
        name = ".".join(f"{'s' if isinstance(kind, IntType) and kind.signed else 'u'}32" for kind in kinds)
        operands = *(word.register for word in words), self._source(total).read()
        return Held(self.code.give(f"dp4a.{name}", *operands))

    has_tiles = True

    def tile(
        self, totals: tuple[str, str], words: tuple[Held[str], Held[str]], kinds: tuple[Type, Type]
    ) -> tuple[str, str]:
        a, b = (f"{'s' if isinstance(kind, IntType) and kind.signed else 'u'}8" for kind in kinds)
        results = self.code.new("b32"), self.code.new("b32")
        name = f"mma.sync.aligned.m8n8k16.row.col.s32.{a}.{b}.s32"
        self.code.op(name, *results, *(word.register for word in words), *totals)
        return results

    # Memory

    def advance(self, base: str, steps: Sequence[Step[str]]) -> str:
        for scalar, bytes_each in steps:
            held, step, kind = self._source(scalar).read(), str(bytes_each), typed(scalar.type)
            if register_type(scalar.type) == "b64":
                base = self.code.give("mad.lo.s64", held, step, base)
            elif kind == "s32" and abs(bytes_each) < 1 << 31:
                base = self.code.give("mad.wide.s32", held, step, base)
            else:
                wide = self.code.give(f"cvt.{kind[0]}64.{kind}", held)
                base = self.code.give("mad.lo.s64", wide, step, base)
        return base

    def _address(self, place: Place[str], steps: Sequence[Step[str]]) -> str:
        """An offset in the instruction where that takes it: 32 bits with a sign."""
        assert place.base is not None
        base, offset = self.advance(place.base, steps), place.offset
        if not -(1 << 31) <= offset < 1 << 31:
            base, offset = self.code.give("add.s64", base, str(offset)), 0
        return f"{base}{offset:+}" if offset else base

    def load(self, kind: Type, place: Place[str], steps: Sequence[Step[str]]) -> Held[str]:
        address = self._address(place, steps)
        if isinstance(kind, IntType) and kind.width_bits < 32:
            result = self.code.new("b32")
            letter = "s" if kind.signed else "u"
            self.code.op(f"ld.{place.space}.{letter}{kind.width_bits}", result, address)
            return Held(result)
        return Held(self.code.give(f"ld.{place.space}.{_stored(kind)}", address))

    def store(self, kind: Type, place: Place[str], steps: Sequence[Step[str]], value: Scalar[str]) -> None:
        address, source = self._address(place, steps), self._source(value)
        bits = source.read(loose=True) if isinstance(value.held, Held) else source.register()
        self.code.op(f"st.{place.space}.{_stored(kind)}", address, bits)

    def parameter(self, name: str) -> str:
        return self.code.give("ld.param.u64", name)

    def pointer(self, name: str) -> str:
        return self.code.give("cvta.to.global.u64", self.parameter(name))

    def symbol(self, name: str) -> str:
        return self.code.give("mov.u64", name)

    def array(self, space: Space, size_bytes: int) -> Place[str]:
        name = f"array{len(self.arrays)}"
        self.arrays.append(f".{space} .align {ALIGNMENT_BYTES} .b8 {name}[{size_bytes}];")
        return Place(space, self.symbol(name))

    # Threads

    def thread(self) -> str:
        return self.code.give("mov.u32", "%tid.x")

    def block(self, axis: OneOf["x", "y"]) -> str:
        return self.code.give("mov.u32", f"%ctaid.{axis}")

    def barrier(self) -> None:
        self.code.op("bar.sync", "0")

    # Control

    def comment(self, text: str) -> None:
        self.code.comment(text)

    @contextmanager
    def either(self, condition: Scalar[str]) -> Generator[Callable[[], None]]:
        otherwise, done = self.code.label(), self.code.label()
        turned = False

        def turn() -> None:
            nonlocal turned
            self.code.op("bra", done)
            self.code.place(otherwise)
            turned = True

        self.code.op("bra", otherwise, guard=f"!{self._source(condition).read()}")
        yield turn
        if not turned:
            self.code.place(otherwise)
        self.code.place(done)

    @contextmanager
    def counted(self, count: int) -> Generator[Held[str]]:
        counter = self.code.give("mov.u64", "0")
        again = self.code.label()
        self.code.place(again)
        yield Held(counter)
        self.code.op("add.u64", counter, counter, "1")
        self.code.op("bra", again, guard=self.code.give("setp.lt.u64", counter, str(count)))

    @contextmanager
    def repeated(self, most: int | None) -> Generator[Callable[[Scalar[str]], None]]:
        rounds = None if most is None else self.code.give("mov.u64", "0")
        again, done = self.code.label(), self.code.label()
        self.code.place(again)
        if rounds is not None:
            self.code.op("bra", done, guard=self.code.give("setp.ge.u64", rounds, str(most)))

        def leave_unless(condition: Scalar[str]) -> None:
            self.code.op("bra", done, guard=f"!{self._source(condition).read()}")

        yield leave_unless
        if rounds is not None:
            self.code.op("add.u64", rounds, rounds, "1")
        self.code.op("bra", again)
        self.code.place(done)

    def repeated_together(self) -> AbstractContextManager[Callable[[Scalar[str]], None]]:
        return self.repeated(None)


def _stored(kind: Type) -> str:
    """The type of a store, and of a load that need not extend."""
    if isinstance(kind, IntType) and kind.width_bits < 32:
        return f"u{kind.width_bits}"
    return register_type(kind)

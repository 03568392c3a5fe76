"""Reads what ``printer`` writes. Source lines stand in comments and are not read back.

Raises KeraError (K0820) with the line for any text that is no loop program; what the program means is for the
verifier to say.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import cast, get_args

from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Alloc,
    Bank,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Index,
    Kind,
    Literal,
    Load,
    LoopProgram,
    Memory,
    On,
    Op,
    Operand,
    Schedule,
    Spread,
    Statement,
    Storage,
    Store,
    Var,
    While,
    affine,
)
from kera_hw.loops.tokens import Tokens
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue
from kera_hw.types import BF16, BOOL, F16, F32, F64, FixType, IntType, Type

MAX_CONTENTS_BYTES = 1 << 28
MAX_DEPTH = 100
"""Blocks within blocks."""
_FLOATS = {str(kind): kind for kind in (F16, BF16, F32, F64)}
_KINDS, _MEMORIES, _SPREADS, _ON = map(get_args, (Kind, Memory, Spread, On))


def parse_program(text: str) -> LoopProgram:
    """The program of a text."""
    return _Parser(text).program()


class _Parser(Tokens):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.scope: dict[str, Var] = {}
        self.depth = 0

    # Parts

    def type(self) -> Type:
        word = self.name()
        if word == "bool":
            return BOOL
        if word in _FLOATS:
            return _FLOATS[word]
        found = re.fullmatch(r"([iu])(\d{1,2})", word)
        if found and 1 <= int(found[2]) <= 64:
            return IntType(int(found[2]), found[1] == "i")
        if word in ("fix", "ufix"):
            self.expect("<")
            width = self.integer()
            self.expect(",")
            fraction = self.integer()
            self.expect(">")
            if 1 <= width <= 64 and 0 <= fraction <= width:
                return FixType(width, fraction, word == "fix")
        self.fail(f"`{word}` is no scalar type")

    def buffer(self, name: str) -> Buffer:
        """After ``name:``."""
        kind = self.word(_KINDS, "kind of buffer")
        element = self.type()
        shape = tuple(self.listed(self.integer, "]")) if self.accept("[") else ()
        storage = self.storage()
        whole = Buffer(name, element, shape, cast(Kind, kind), b"", storage)
        return replace(whole, data=self.contents(whole.size)) if self.accept("=") else whole

    def contents(self, size: int) -> bytes:
        """Bytes in hexadecimal, or those of one element and how many there are of it."""
        digits = self.take()
        try:
            data = b"" if digits == "none" else bytes.fromhex(digits)
        except ValueError:
            self.fail("the contents are no hexadecimal digits")
        if not self.accept("times"):
            return data
        if self.integer() != size:
            self.fail(f"the buffer has {size} elements")
        if size * len(data) > MAX_CONTENTS_BYTES:
            self.fail(f"the contents have more than {MAX_CONTENTS_BYTES:,} bytes")
        return data * size

    def storage(self) -> Storage:
        memory, window, banks, copies = None, 0, list[Bank](), 1
        if self.accept("in"):
            memory = cast(Memory, self.word(_MEMORIES, "memory"))
        if self.accept("window"):
            window = self.integer()
        while self.accept("bank"):
            spread, count = cast(Spread, self.word(_SPREADS, "way to spread")), self.integer()
            self.expect("on")
            banks.append(Bank(self.integer(), count, spread))
        if self.accept("copies"):
            copies = self.integer()
        return Storage(memory, tuple(banks), window, copies)

    def schedule(self, on: On | None) -> Schedule:
        interval = self.integer() if self.accept("ii") else 0
        latencies = self.table("latency")
        return Schedule(on, interval, latencies, self.table("units"))

    def table(self, word: str) -> tuple[tuple[str, int], ...]:
        """``word(name=number, ...)``, if it stands here."""

        def row() -> tuple[str, int]:
            name = self.name()
            self.expect("=")
            return name, self.integer()

        if not self.accept(word):
            return ()
        self.expect("(")
        return tuple(self.listed(row, ")"))

    def word(self, words: tuple[str, ...], what: str) -> str:
        found = self.name()
        if found not in words:
            self.fail(f"`{found}` is no {what}")
        return found

    def define(self, name: str, kind: Type) -> Var:
        var = Var(name, kind)
        self.scope[name] = var
        return var

    def var(self) -> Var:
        name = self.name()
        self.expect(":")
        return self.define(name, self.type())

    def use(self, name: str) -> Var:
        if name not in self.scope:
            self.fail(f"`{name}` has no value here")
        return self.scope[name]

    def operand(self) -> Operand:
        if self.peek()[:1].isdigit():
            bits = self.integer()
            self.expect(":")
            return Literal(self.type(), bits)
        return self.use(self.name())

    def index(self) -> Index:
        return tuple(self.listed(self.affine, "]")) if self.accept("[") else ()

    def affine(self) -> Affine:
        constant, terms, sign = 0, list[tuple[Var, int]](), -1 if self.accept("-") else 1
        while True:
            if self.peek()[:1].isdigit():
                value = self.integer()
                if self.accept("*"):
                    terms.append((self.use(self.name()), sign * value))
                else:
                    constant += sign * value
            else:
                terms.append((self.use(self.name()), sign))
            if self.accept("+"):
                sign = 1
            elif self.accept("-"):
                sign = -1
            else:
                return affine(constant, terms)

    def attributes(self) -> Iterator[tuple[str, AttrValue]]:
        while self.place < len(self.tokens):
            key = self.name()
            self.expect("=")
            token = self.peek()
            if token.startswith('"'):
                yield key, self.take()[1:-1]
            elif token in ("True", "False"):
                yield key, self.take() == "True"
            elif token[:1].isdigit() or token == "-":
                yield key, self.integer()
            else:
                yield key, self.type()

    # Statements

    def program(self) -> LoopProgram:
        self.next_line()
        self.expect("loops")
        name = self.name()
        buffers: list[Buffer] = []
        self.next_line()
        while not self.accept("{"):
            buffer = self.name()
            self.expect(":")
            buffers.append(self.buffer(buffer))
            self.end()
            self.next_line()
        self.end()
        body = self.block("}")
        self.end()
        return LoopProgram(name, tuple(buffers), body)

    def end(self) -> None:
        if self.place < len(self.tokens):
            self.fail(f"`{self.peek()}` is too much")

    def block(self, close: str) -> Block:
        """Statements up to the line that begins with ``close``, which is taken."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"blocks nest deeper than {MAX_DEPTH}")
        outside, body = dict(self.scope), list[Statement]()
        yields: tuple[Operand, ...] = ()
        while True:
            self.next_line()
            if self.accept(close):
                break
            if self.accept("yield"):
                yields = tuple(self.operands(","))
                self.next_line()
                self.expect(close)
                break
            body.append(self.statement())
        self.scope = outside
        self.depth -= 1
        return Block(tuple(body), yields)

    def operands(self, between: str = "") -> Iterator[Operand]:
        """To the end of the line, or to the first attribute."""
        while self.place < len(self.tokens):
            if not between and self.place + 1 < len(self.tokens) and self.tokens[self.place + 1] == "=":
                return
            yield self.operand()
            if between and self.place < len(self.tokens):
                self.expect(between)

    def statement(self) -> Statement:
        word = self.peek()
        if word in ("for", "parallel", *_ON):
            return self.counted(self.take())
        if word == "while":
            return self.bounded()
        if word == "if":
            return self.branch([])
        if word == "store":
            self.take()
            buffer, index = self.name(), self.index()
            value = self.operand()
            self.end()
            return Store(buffer, index, value)
        return self.definition()

    def definition(self) -> Statement:
        """A temporary, or results of something."""
        name = self.name()
        self.expect(":")
        if self.peek() in _KINDS:
            buffer = self.buffer(name)
            self.end()
            return Alloc(buffer)
        made = [(name, self.type())]
        while self.accept(","):
            name = self.name()
            self.expect(":")
            made.append((name, self.type()))
        self.expect("=")
        word = self.name()
        if word == "if":
            self.place -= 1
            return self.branch(made)
        if word == "load":
            buffer, index = self.name(), self.index()
            self.end()
            if len(made) != 1:
                self.fail("`load` gives one value")
            return Load(self.define(*made[0]), buffer, index)
        if word not in OPS:
            self.fail(f"there is no operation `{word}`")
        operands, attrs = tuple(self.operands()), tuple(self.attributes())
        return Op(tuple(self.define(*item) for item in made), word, operands, attrs)

    def carried(self) -> list[tuple[Var, Operand, str]]:
        def item() -> tuple[Var, Operand, str]:
            name = self.name()
            self.expect(":")
            kind = self.type()
            self.expect("=")
            initial = self.operand()
            self.expect("->")
            return Var(name, kind), initial, self.name()

        return self.listed(item, ")") if self.accept("(") else []

    def _opened(self, carried: list[tuple[Var, Operand, str]]) -> None:
        self.expect("{")
        self.end()
        for inner, _, _ in carried:
            self.scope[inner.name] = inner

    def _closed(
        self, outside: dict[str, Var], carried: list[tuple[Var, Operand, str]]
    ) -> tuple[Carried, ...]:
        self.end()
        self.scope = outside
        return tuple(
            Carried(inner, initial, self.define(outer, inner.type)) for inner, initial, outer in carried
        )

    def counted(self, word: str) -> For:
        outside = dict(self.scope)
        name = self.name()
        self.expect("<")
        count, carried = self.integer(), self.carried()
        schedule = self.schedule(cast(On, word) if word in _ON else None)
        var = self.define(name, COUNTER)
        self._opened(carried)
        body = self.block("}")
        return For(var, count, self._closed(outside, carried), body, word != "for", None, schedule)

    def bounded(self) -> While:
        self.take()
        self.expect("max")
        outside, most, carried = dict(self.scope), self.integer(), self.carried()
        self._opened(carried)
        condition = self.block("}")
        self.expect("{")
        self.end()
        body = self.block("}")
        return While(most, self._closed(outside, carried), condition, body)

    def branch(self, made: list[tuple[str, Type]]) -> If:
        self.expect("if")
        condition = self.operand()
        self.expect("{")
        self.end()
        then = self.block("}")
        self.expect("else")
        self.expect("{")
        self.end()
        otherwise = self.block("}")
        self.end()
        return If(condition, then, otherwise, tuple(self.define(*item) for item in made))

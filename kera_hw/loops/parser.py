"""Reads what ``printer`` writes. Source lines stand in comments and are not read back.

Raises KeraError (K0820) with the line for any text that is no loop program; what the program means is for the
verifier to say.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar, cast, get_args

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
    Kind,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    affine,
)
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import BF16, BOOL, F16, F32, F64, FixType, IntType, Type

MAX_DEPTH = 100
"""Blocks within blocks."""
_TOKEN = re.compile(
    r"\s*(?:(?P<end>//[^\n]*|$)|(?P<word>[A-Za-z_][\w.]*)|(?P<number>0x[0-9a-f]+|\d\w*)"
    r"|(?P<text>\"[^\"\n]*\")|(?P<mark>->|[{}()\[\],:=<>*+\-]))"
)
_FLOATS = {str(kind): kind for kind in (F16, BF16, F32, F64)}
_KINDS: tuple[str, ...] = get_args(Kind)
T = TypeVar("T")


def parse_program(text: str) -> LoopProgram:
    """The program of a text."""
    return _Parser(text).program()


class _Parser:
    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.number = 0
        self.tokens: list[str] = []
        self.place = 0
        self.scope: dict[str, Var] = {}
        self.depth = 0

    # Tokens

    def fail(self, message: str) -> NoReturn:
        raise KeraError([Diagnostic("K0820", f"Line {self.number} is no loop program: {message}.")])

    def next_line(self) -> None:
        """On to the next line that holds something."""
        while self.number < len(self.lines):
            line = self.lines[self.number]
            self.number += 1
            self.tokens, self.place = list(self._split(line)), 0
            if self.tokens:
                return
        self.tokens, self.place = [], 0
        self.fail("the text ends too early")

    def _split(self, line: str) -> Iterator[str]:
        place = 0
        while place < len(line):
            found = _TOKEN.match(line, place)
            if found is None:
                self.fail(f"`{line[place:].strip()[:20]}` is no token")
            if found["end"] is not None:
                return
            yield found[0].strip()
            place = found.end()

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            self.fail("the line ends too early")
        self.place += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.place += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"`{token}` is wanted, not `{self.peek() or 'the end'}`")

    def name(self) -> str:
        token = self.take()
        if not re.fullmatch(r"[A-Za-z_][\w.]*", token):
            self.fail(f"a name is wanted, not `{token}`")
        return token

    def integer(self) -> int:
        negative, token = self.accept("-"), self.take()
        if not re.fullmatch(r"0x[0-9a-f]{1,16}|\d{1,19}", token):
            self.fail(f"a number is wanted, not `{token[:20]}`")
        value = int(token, 0) if token.startswith("0x") else int(token)
        return -value if negative else value

    def listed(self, item: Callable[[], T], close: str) -> list[T]:
        """Items between commas up to ``close``, which is taken."""
        found: list[T] = []
        if self.accept(close):
            return found
        while True:
            found.append(item())
            if self.accept(close):
                return found
            self.expect(",")

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
        kind = self.name()
        if kind not in _KINDS:
            self.fail(f"`{kind}` is no kind of buffer")
        element = self.type()
        shape = tuple(self.listed(self.integer, "]")) if self.accept("[") else ()
        data = b""
        if self.accept("="):
            digits = self.take()
            try:
                data = b"" if digits == "none" else bytes.fromhex(digits)
            except ValueError:
                self.fail("the contents are no hexadecimal digits")
        return Buffer(name, element, shape, cast(Kind, kind), data)

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
        if word in ("for", "parallel"):
            return self.counted(self.take() == "parallel")
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

    def counted(self, parallel: bool) -> For:
        outside = dict(self.scope)
        name = self.name()
        self.expect("<")
        count, carried = self.integer(), self.carried()
        var = self.define(name, COUNTER)
        self._opened(carried)
        body = self.block("}")
        return For(var, count, self._closed(outside, carried), body, parallel)

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

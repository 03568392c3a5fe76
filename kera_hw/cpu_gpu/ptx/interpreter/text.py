"""Reads PTX text: module variables and kernels, each instruction held against the table.

PTX ISA, chapters 4 (syntax), 5 (state spaces and types) and 11 (directives). What is not among the emitted
part of the language is refused (K0707) with its line, and nothing is skipped.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kera_hw.cpu_gpu.gpu.interpreter.host import Variable
from kera_hw.cpu_gpu.ptx.interpreter.tokens import Token, Tokens, refuse
from kera_hw.cpu_gpu.ptx.table import Instruction, instructions, rows, width_bits
from kera_hw.numerics.arrays import Array

SPECIAL = ("%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%ctaid.y", "%nctaid.y")
"""Registers that a thread finds, all u32."""
_TARGETS = re.compile(r"sm_[1-9][0-9]{1,2}a?")
_DATA = ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")


class Address(NamedTuple):
    """In brackets: a register, a parameter or a variable, and bytes behind it."""

    base: str
    offset: int


Operand = str | int | Address | Array
"""A register, variable or label by name; a constant; an address; a constant of floats as an array of one."""


class Statement(NamedTuple):
    """``guard``: a predicate register, and whether it has to be true."""

    instruction: Instruction
    operands: tuple[Operand, ...]
    guard: tuple[str, bool] | None
    line: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel. ``labels`` are numbers of statements. ``threads``: of a block, if that is said."""

    name: str
    params: Mapping[str, str]
    registers: Mapping[str, str]
    variables: Mapping[str, Variable]
    statements: tuple[Statement, ...]
    labels: Mapping[str, int]
    threads: int | None


@dataclass(frozen=True, slots=True)
class Module:
    variables: Mapping[str, Variable]
    entries: Mapping[str, Entry]


def read_module(text: str) -> Module:
    """The module. Raises KeraError (K0707)."""
    return _Reader(text).module()


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._variables: dict[str, Variable] = {}
        self._entries: dict[str, Entry] = {}

    def module(self) -> Module:
        self._header()
        while self._tokens.next.kind != "end":
            self._tokens.has(".visible")
            if self._tokens.next.text == ".entry":
                entry = self._entry()
                self._fresh(entry.name, self._entries)
                self._entries[entry.name] = entry
            else:
                variable = _variable(self._tokens, ("global",))
                self._fresh(variable.name, self._variables)
                self._variables[variable.name] = variable
        return Module(self._variables, self._entries)

    def _fresh(self, name: str, known: Mapping[str, object]) -> None:
        if name in known:
            refuse(self._tokens.next.line, f"`{name}` is there already.")

    def _header(self) -> None:
        self._tokens.sign(".version")
        self._tokens.take("version")
        self._tokens.sign(".target")
        target = self._tokens.take("word")
        if not _TARGETS.fullmatch(target.text):
            refuse(target.line, f"`{target.text}` is no target that is known.")
        self._tokens.sign(".address_size")
        self._tokens.number(64, 64)

    def _entry(self) -> Entry:
        self._tokens.sign(".entry")
        name = self._tokens.take("word").text
        params: dict[str, str] = {}
        self._tokens.sign("(")
        while not self._tokens.has(")"):
            if params:
                self._tokens.sign(",")
            self._tokens.sign(".param")
            kind = self._tokens.type(("u32", "u64", "f32", "f64"))
            param = self._tokens.take("word").text
            self._fresh(param, params)
            params[param] = kind
        threads = None
        if self._tokens.has(".reqntid"):
            threads = self._tokens.number(1, 1024)
            for _ in range(2):
                if self._tokens.has(","):
                    self._tokens.number(1, 1)
        return _Kernel(self._tokens, self._variables, name, params, threads).entry()


class _Kernel:
    """Reads one kernel's body."""

    def __init__(
        self, tokens: Tokens, outside: Mapping[str, Variable], name: str, params: dict[str, str],
        threads: int | None,
    ) -> None:
        self._tokens, self._outside = tokens, outside
        self._name, self._params, self._threads = name, params, threads
        self._registers: dict[str, str] = {}
        self._variables: dict[str, Variable] = {}
        self._labels: dict[str, int] = {}
        self._statements: list[Statement] = []

    def entry(self) -> Entry:
        tokens = self._tokens
        tokens.sign("{")
        while not tokens.has("}"):
            self._line()
        for statement in self._statements:
            for one, operand in zip(statement.instruction.operands, statement.operands):
                if one.role == "label" and operand not in self._labels:
                    refuse(statement.line, f"there is no label `{operand}`.")
        last = self._statements[-1] if self._statements else None
        if last is None or last.instruction.name not in ("ret", "bra", "bra.uni") or last.guard is not None:
            refuse(tokens.next.line, f"`{self._name}` does not end with `ret`.")
        return Entry(
            self._name, self._params, self._registers, self._variables, tuple(self._statements),
            self._labels, self._threads,
        )

    def _line(self) -> None:
        tokens = self._tokens
        token = tokens.next
        if token.text == ".reg":
            self._declare()
        elif token.text in (".shared", ".local"):
            variable = _variable(tokens, ("shared", "local"))
            if variable.name in self._variables or variable.name in self._registers:
                refuse(token.line, f"`{variable.name}` is there already.")
            if self._statements:
                refuse(token.line, f"`{variable.name}` has to stand before all statements.")
            if variable.data:
                refuse(token.line, f"`{variable.name}` can't begin with anything.")
            self._variables[variable.name] = variable
        elif token.text == "@":
            self._statement(self._guard())
        else:
            word = tokens.take("word")
            if tokens.has(":"):
                if word.text in self._labels:
                    refuse(word.line, f"the label `{word.text}` is there already.")
                self._labels[word.text] = len(self._statements)
            else:
                self._statement(None, word)

    def _declare(self) -> None:
        tokens = self._tokens
        tokens.sign(".reg")
        kind = tokens.type()
        while True:
            token = tokens.take("word")
            names = [token.text]
            if tokens.has("<"):
                names = [f"{token.text}{k}" for k in range(tokens.number(1, 1 << 24))]
                tokens.sign(">")
            for name in names:
                taken = (self._registers, self._params, self._variables, self._outside)
                if name.startswith(".") or "." in name or any(name in one for one in taken):
                    refuse(token.line, f"`{name}` can't be a register here.")
                self._registers[name] = kind
            if not tokens.has(","):
                break
        tokens.sign(";")

    def _guard(self) -> tuple[str, bool]:
        tokens = self._tokens
        tokens.sign("@")
        wanted = not tokens.has("!")
        token = tokens.take("word")
        if self._registers.get(token.text) != "pred":
            refuse(token.line, f"`{token.text}` is no predicate.")
        return token.text, wanted

    def _statement(self, guard: tuple[str, bool] | None, word: Token | None = None) -> None:
        tokens = self._tokens
        token = word or tokens.take("word")
        row = instructions().get(token.text) or self._generic(token)
        if row is None:
            known = any(one.split(".")[0] == token.text.split(".")[0] for one in rows())
            what = "modifiers or types of it that are not known" if known else "no instruction that is known"
            refuse(token.line, f"`{token.text}` is {what}." if not known else f"`{token.text}` has {what}.")
        operands: list[Operand] = []
        for k, one in enumerate(row.operands):
            if k:
                tokens.sign(",")
            if one.opens:
                tokens.sign("{")
            if one.address:
                operands.append(self._address(row))
            elif one.role == "label":
                operands.append(tokens.take("word").text)
            else:
                operands.append(self._operand(row, k, one.kind))
            if one.closes:
                tokens.sign("}")
        tokens.sign(";")
        self._statements.append(Statement(row, tuple(operands), guard, token.line))

    def _generic(self, token: Token) -> Instruction | None:
        """An access that names no space: to global memory, where the kernel has no other."""
        verb, _, rest = token.text.partition(".")
        found = instructions().get(f"{verb}.global.{rest}") if verb in ("ld", "st") else None
        if found is not None and self._variables:
            refuse(token.line, f"`{token.text}` may go to any of several spaces; say which.")
        return found

    def _address(self, row: Instruction) -> Address:
        tokens = self._tokens
        tokens.sign("[")
        token = tokens.take("word")
        space = row.chosen.get("space", "param")
        offset = 0
        if tokens.has("+"):
            offset = tokens.number(-(1 << 31), (1 << 31) - 1)
        elif tokens.next.kind == "number" and tokens.next.text.startswith("-"):
            offset = tokens.number(-(1 << 31), 0)
        tokens.sign("]")
        if space == "param":
            if offset or self._params.get(token.text) != row.kind:
                refuse(token.line, f"`{token.text}` is no parameter of type .{row.kind}.")
        elif token.text in self._registers:
            narrow = space != "global" and self._registers.get(token.text) in ("b32", "u32", "s32")
            self._register(token, "u32" if narrow else "u64", exact=True)
        elif self._variable(token).space != space:
            refuse(token.line, f"`{token.text}` does not lie in .{space}.")
        return Address(token.text, offset)

    def _variable(self, token: Token) -> Variable:
        found = self._variables.get(token.text) or self._outside.get(token.text)
        if found is None:
            refuse(token.line, f"there is no `{token.text}`.")
        return found

    def _operand(self, row: Instruction, place: int, kind: str) -> Operand:
        tokens = self._tokens
        writes = (place == 0 and not row.row.startswith(("st.", "bar."))) or row.operands[place].role == "d1"
        token = tokens.take()
        if token.kind == "word":
            if token.text in SPECIAL and row.name == "mov.u32" and not writes:
                return token.text
            named = token.text in self._registers or token.text.startswith("%")
            if not named and row.name in ("mov.u64", "mov.u32") and not writes:
                variable = self._variable(token)
                if row.name == "mov.u32" and variable.space == "global":
                    refuse(token.line, f"the address of `{token.text}` has 64 bits.")
                return variable.name
            exact = not row.row.startswith(("ld.", "st.", "cvt."))
            self._register(token, kind, exact)
            return token.text
        if writes or kind == "pred" or row.row.startswith("mma."):
            refuse(token.line, f"{token.text!r} is no register.")
        if token.kind == "float":
            word = np.dtype(f"<u{(len(token.text) - 2) // 2}")
            if kind != f"f{word.itemsize * 8}":
                refuse(token.line, f"`{token.text}` is no constant of type .{kind}.")
            return np.array([int(token.text[2:], 16)], word)
        if token.kind != "number" or kind[0] == "f":
            refuse(token.line, f"{token.text!r} is no operand of type .{kind}.")
        value, bits = int(token.text.rstrip("U"), 0), width_bits(kind)
        if not -(1 << (bits - 1)) <= value < 1 << bits:
            refuse(token.line, f"{value} has more than {bits} bits.")
        return value & ((1 << bits) - 1)

    def _register(self, token: Token, kind: str, exact: bool) -> None:
        """Types agree where they are equally wide and not of floats and integers; a register of more bits
        does for integers of loads, stores and conversions (chapter 9.4)."""
        declared = self._registers.get(token.text)
        if declared is None:
            refuse(token.line, f"there is no register `{token.text}`.")
        same = width_bits(declared) == width_bits(kind) and (declared == "pred") == (kind == "pred")
        mixed = {declared[0], kind[0]} in ({"f", "s"}, {"f", "u"})
        wider = not exact and kind[0] in "bus" and declared[0] in "bus" and (
            width_bits(declared) > width_bits(kind)
        )
        if (not same or mixed) and not wider:
            refuse(token.line, f"`{token.text}` of type .{declared} is no operand of type .{kind}.")


def _variable(tokens: Tokens, spaces: tuple[str, ...]) -> Variable:
    space = tokens.take("word")
    if space.text.removeprefix(".") not in spaces:
        refuse(space.line, f"`{space.text}` is no directive that is known here.")
    align = tokens.number(1, 1 << 12) if tokens.has(".align") else 0
    kind = tokens.type(_DATA)
    size = width_bits(kind) // 8
    name = tokens.take("word").text
    count = 1
    if tokens.has("["):
        count = tokens.number(1, 1 << 40)
        tokens.sign("]")
    data = b""
    if tokens.has("="):
        data = _initial(tokens, size)
        if len(data) > count * size:
            refuse(space.line, f"`{name}` is given more than it holds.")
    tokens.sign(";")
    align = align or size
    if align & (align - 1) or align < size:
        refuse(space.line, f"`{name}` can't be aligned to {align} bytes.")
    return Variable(name, space.text[1:], align, count * size, data)


def _initial(tokens: Tokens, size: int) -> bytes:
    bits = 8 * size
    least, most = -(1 << (bits - 1)), (1 << bits) - 1
    if not tokens.has("{"):
        return (tokens.number(least, most) & most).to_bytes(size, "little")
    values = [tokens.number(least, most)]
    while tokens.has(","):
        values.append(tokens.number(least, most))
    tokens.sign("}")
    return b"".join((value & most).to_bytes(size, "little") for value in values)

"""The instruction table: which instructions there are, with which modifiers, on operands of which types.

Rows are data (``instructions.toml``). The writer of kernels asks it for every instruction, the interpreter
reads text by it, and ptxas judges both in the tests.
"""
from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

WIDTHS_BITS = {"b": (8, 16, 32, 64), "u": (8, 16, 32, 64), "s": (8, 16, 32, 64), "f": (32, 64)}
TYPES = ("pred", *(f"{letter}{width}" for letter, widths in WIDTHS_BITS.items() for width in widths))


class Operand(NamedTuple):
    """``role``: d, a, b, ... as the manual has them. ``kind``: its type without a dot; "" of a label. Of a
    vector in braces the first ``opens`` it and the last ``closes`` it."""

    role: str
    kind: str
    address: bool = False
    opens: bool = False
    closes: bool = False

    def written(self, text: str) -> str:
        """In brackets or braces where it stands in some."""
        inner = f"[{text}]" if self.address else text
        return f"{'{' if self.opens else ''}{inner}{'}' if self.closes else ''}"


class Instruction(NamedTuple):
    """One row with its placeholders filled in. ``row``: as it stands in the table, by which its meaning is
    found; ``chosen``: what stands for each placeholder."""

    name: str
    row: str
    chosen: dict[str, str]
    operands: tuple[Operand, ...]

    @property
    def kind(self) -> str:
        """The type that the row is named for."""
        return self.name.rpartition(".")[2]


def width_bits(kind: str) -> int:
    """Of a type; a predicate has one bit."""
    return 1 if kind == "pred" else int(kind[1:])


def _rows() -> Iterator[Instruction]:
    data = tomllib.loads((files("kera_hw.cpu_gpu.ptx") / "instructions.toml").read_text(encoding="utf-8"))
    for line in "\n".join(data.values()).splitlines():
        if line.strip():
            yield from _expanded(line)


def _expanded(line: str) -> Iterator[Instruction]:
    syntax, *given = (part.strip() for part in line.split(";"))
    row, *operands = re.split(r"[ ,]+", syntax)
    places = [place.split("=") for place in given if place]
    names = [name.strip().removeprefix(".") for name, _ in places]
    for values in product(*(words.split() for _, words in places)):
        chosen = {name: value.removeprefix(".") for name, value in zip(names, values)}
        name = ".".join(chosen.get(part, part) for part in row.split("."))
        yield Instruction(name, row, chosen, tuple(_operand(text, chosen) for text in operands))


def _operand(text: str, chosen: dict[str, str]) -> Operand:
    if text.startswith("{") or text.endswith("}"):
        return _operand(text.strip("{}"), chosen)._replace(opens=text[0] == "{", closes=text[-1] == "}")
    address = text.startswith("[")
    role, _, kind = text.strip("[]").partition(".")
    if role == "label":
        return Operand(role, "")
    own = chosen.get("type") or chosen.get("ftype") or ""
    if address:
        return Operand(role, "u64", True)
    if kind == "wide":
        return Operand(role, f"{own[0]}{2 * width_bits(own)}")
    return Operand(role, chosen.get(kind, kind) if kind else own)


@cache
def instructions() -> dict[str, Instruction]:
    """All instructions by their full name."""
    return {row.name: row for row in _rows()}


@cache
def rows() -> frozenset[str]:
    """All rows, as they stand in the table."""
    return frozenset(row.row for row in instructions().values())

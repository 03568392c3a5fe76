"""Writes tables of constants as ``kera_hw.support.tables`` reads them."""
from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEAST_ENTRIES = 16
"""Shorter rows of numbers stay in the program, where they are read with it."""
_WIDTH = 110


@dataclass(frozen=True)
class TableText:
    """A table: ``real`` or ``integer`` columns of one length."""

    name: str
    kind: str
    columns: Sequence[Sequence[float | int]]

    def lines(self) -> list[str]:
        found = [f"{self.name} {self.kind} {len(self.columns)} {len(self.columns[0])}"]
        for column in self.columns:
            found += _filled(map(_real, column) if self.kind == "real" else (f"{word:x}" for word in column))
        return [*found, ""]


def _real(value: float | int) -> str:
    return struct.pack(">d", float(value)).hex()


def _filled(words: Iterable[str]) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [*lines, line]


def table_file(title: str, tables: Iterable[TableText]) -> str:
    """The text of a file."""
    return "\n".join([f"# {title}", "", *(line for table in tables for line in table.lines())])


def reading(table: TableText) -> str:
    """The line of a module that takes a table from its file."""
    kind, single = ("float" if table.kind == "real" else "int"), len(table.columns) == 1
    shape = f"tuple[{kind}, ...]" if single else f"tuple[tuple[{kind}, ...], ...]"
    call = {("real", True): "reals", ("real", False): "real_columns",
            ("integer", True): "integers", ("integer", False): "integer_columns"}[table.kind, single]
    return f'{table.name}: {shape} = _TABLES.{call}("{table.name}")'

"""Tables of constants as package data: numbers too many to be read as a program.

A file is text, beside the module whose constants it holds and called after it:

    # Comments begin with this sign.
    LOG_HIGH real 1 64
    bfd7cc7f79e00000 bfd713e31f1a0000 ...

A table begins with its name, the kind of its numbers, how many columns it has and how many numbers a column.
The numbers follow column by column, in hexadecimal: a `real` is the 64 bits of an f64, an `integer` has a
sign where it is negative. Lines may break between any two. `tools/table_files.py` writes such files.
"""
from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

SUFFIX = ".tables"
_FORMS = {"real": re.compile("[0-9a-f]{16}"), "integer": re.compile("-?[0-9a-f]+")}
"""How a number of each kind is spelt."""


@dataclass(frozen=True, slots=True)
class _Table:
    kind: str
    columns: tuple[tuple[str, ...], ...]


class Tables:
    """The tables of one file by name. Raises ValueError for a file that is not as described above."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._found: dict[str, _Table] = {}
        words = iter([word for line in text.splitlines() for word in line.partition("#")[0].split()])
        for name in words:
            if name in self._found:
                raise ValueError(f"{where}: two tables are called {name}")
            self._found[name] = self._table(name, words)

    def _table(self, name: str, words: Iterator[str]) -> _Table:
        kind = next(words, "")
        try:
            width, height = int(next(words, "")), int(next(words, ""))
        except ValueError:
            raise ValueError(f"{self._where}: {name} does not say its size") from None
        if kind not in _FORMS or width < 1 or height < 1:
            raise ValueError(f"{self._where}: {name} is a table of {width} times {height} {kind}")
        columns = tuple(tuple(word for _, word in zip(range(height), words)) for _ in range(width))
        for word in (word for column in columns for word in column):
            if not _FORMS[kind].fullmatch(word):
                raise ValueError(f"{self._where}: {name} holds `{word}`, which is no {kind} number")
        if len(columns[-1]) < height:
            raise ValueError(f"{self._where}: {name} ends before its {width} times {height} numbers")
        return _Table(kind, columns)

    def _of(self, name: str, kind: str) -> tuple[tuple[str, ...], ...]:
        table = self._found.get(name)
        if table is None or table.kind != kind:
            raise ValueError(f"{self._where} has no {kind} table {name}")
        return table.columns

    def integer_columns(self, name: str) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(int(word, 16) for word in column) for column in self._of(name, "integer"))

    def real_columns(self, name: str) -> tuple[tuple[float, ...], ...]:
        return tuple(
            struct.unpack(f">{len(column)}d", bytes.fromhex("".join(column)))
            for column in self._of(name, "real")
        )

    def integers(self, name: str) -> tuple[int, ...]:
        """A table of one column."""
        (column,) = self.integer_columns(name)
        return column

    def reals(self, name: str) -> tuple[float, ...]:
        """A table of one column."""
        (column,) = self.real_columns(name)
        return column


def read_tables(module: str) -> Tables:
    """The tables that belong to a module, by its full name."""
    package, _, stem = module.rpartition(".")
    name = stem + SUFFIX
    return Tables((files(package) / name).read_text(encoding="ascii"), name)

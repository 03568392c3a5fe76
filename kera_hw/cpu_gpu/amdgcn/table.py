"""The instruction table: which instructions there are, and which operands they take.

Rows are data (``instructions.toml``). The writer of kernels asks it for every instruction, the interpreter
reads text by it, and LLVM's assembler judges both in the tests.
"""
from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple


class Row(NamedTuple):
    """``kinds`` of operands as the table calls them; ``written``: how many of the first are results."""

    name: str
    kinds: tuple[str, ...]
    written: int

    @property
    def is_memory(self) -> bool:
        """Whether an offset may follow."""
        return self.name.startswith(("global_", "ds_"))


INLINE_INTEGERS = range(-16, 65)
"""Constants that any operand may be."""
INLINE_FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
GLOBAL_OFFSETS, SHARED_OFFSETS = range(-4096, 4096), range(65536)
"""Bytes that an instruction adds to an address."""
MOST_OUTSTANDING = 62
"""Accesses to memory that a wave can be told to wait for all but."""


def _rows() -> Iterator[Row]:
    data = tomllib.loads((files("kera_hw.cpu_gpu.amdgcn") / "instructions.toml").read_text(encoding="utf-8"))
    for line in "\n".join(data.values()).splitlines():
        if line.strip():
            name, *operands = re.split(r"[ ,]+", line.strip())
            parts = re.split(r"[{}]", name)
            written = sum(one.startswith("=") for one in operands)
            kinds = tuple(one.removeprefix("=") for one in operands)
            for chosen in product(*(part.split("|") for part in parts)):
                yield Row("".join(chosen), kinds, written)


@cache
def instructions() -> dict[str, Row]:
    """All instructions by name."""
    return {row.name: row for row in _rows()}

"""Names that go out, all of them: legal in every language and tool, unique, predictable.

A module is called as its function is, with one underscore more where some language or tool keeps the word,
with or without underscores behind it: ``std`` becomes ``std_``, ``std_`` becomes ``std__``, so that no two
functions come to share a name. The modules inside it have its name and two underscores before their own.
Ports begin with ``in_`` or ``out_``, signals end in their stage: neither can be a word of anybody's.
"""
from __future__ import annotations

import re
from collections.abc import Iterable

from kera_hw.rtl.emit.reserved import CPP_WORDS, PYTHON_WORDS, TOOL_WORDS, VERILOG_WORDS
from kera_hw.schedule.fpga.cells import Cell, Input, StateNext, StateOut
from kera_hw.schedule.fpga.netlist import Netlist

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MODULE_WORDS = VERILOG_WORDS | CPP_WORDS | TOOL_WORDS

# Cells that synthesis instantiates, and the compiler's own modules.
_ELEMENTS = re.compile(
    r"kera_.*|SB_.*|TRELLIS_.*|LUT[1-8]|CCU2C|PFUMX|L6MUX21|MULT(9X9|18X18)D|ALU54B|DP16KD|PDPW16KD"
    r"|FD1.*|OFS1.*|IFS1.*|ICESTORM_.*"
)
_INNER = re.compile(
    r"core|datapath|serial|instance|observed|iterative\d*|region\d+|memory|ram(_\w+)?"
    r"|ecp5_(add|chain|mul|lut|wide|mux|table|rom|ram)"
)
_HELPER = re.compile(r"\bkera_(ecp5_\w+|memory|ram)(?= #\()")

# What a view of Amaranth has for itself: a field of that name could not be reached with a dot.
_VIEW_WORDS = frozenset({"as_bits", "as_value", "eq", "lowermethod", "shape"})


def _kept(name: str, words: frozenset[str]) -> bool:
    """Whether a word is among ``words``, underscores behind it aside."""
    return name in words or name.rstrip("_") in words


def module_name(function: str) -> str:
    """What the top module of a function is called."""
    return function + "_" if _kept(function, _MODULE_WORDS) else function


def module_refusal(function: str) -> str | None:
    """Why a function can't be a top module, as the end of a sentence that begins with its name."""
    if not _IDENTIFIER.fullmatch(function):
        return "is no identifier of Verilog"
    if _ELEMENTS.fullmatch(function):
        return "names an element of circuits already"
    top, _, inner = function.rpartition("__")
    if top and _INNER.fullmatch(inner):
        return f"names a module inside the circuit of a function `{top}`"
    return None


def inner_name(top: str, part: str) -> str:
    """What a module inside the top module ``top`` is called, so that circuits can stand side by side."""
    assert _INNER.fullmatch(part)
    return f"{top}__{part}"


def with_own_helpers(top: str, verilog: str) -> str:
    """Verilog whose helper modules, ``kera_ecp5_lut`` and so on, belong to the module ``top``."""
    return _HELPER.sub(lambda found: inner_name(top, found[1]), verilog)


class Names:
    """The names of one module: those taken, and fresh ones."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def holds(self, name: str) -> bool:
        """Whether a name is taken."""
        return name in self._taken

    def fresh(self, name: str) -> str:
        """``name``, made unique; it is taken from now on."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def free_name(name: str, taken: set[str]) -> str:
    """A name for a signal or a class: no word of a language, none that is taken; it is taken from now on."""
    while name in taken or name in _MODULE_WORDS or name in PYTHON_WORDS:
        name += "_"
    taken.add(name)
    return name


def field_name(name: str) -> str:
    """What a parameter or a struct's field is called in Python, where it is reached with a dot."""
    return name + "_" if _kept(name, PYTHON_WORDS | _VIEW_WORDS) else name


def escaped(name: str) -> str:
    """The name of a port or signal as Verilog writes it: a name out of a file may be anything."""
    return name if _IDENTIFIER.fullmatch(name) and name not in VERILOG_WORDS else f"\\{name} "


def stem_of(cell: Cell, netlist: Netlist) -> str:
    """A readable beginning for the names of one cell's signals."""
    name = cell.name or (cell.origin.name if cell.origin else None)
    if isinstance(cell, StateOut | StateNext):
        name = netlist.states[cell.state].name
    elif isinstance(cell, Input) and not name:
        name = cell.bus.removeprefix("in_")
    return plain_name(name or "") or cell.look().stem


def plain_name(name: str) -> str:
    """A name as an identifier of every language; empty where nothing is left of it."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return "n" + cleaned if cleaned[:1].isdigit() else cleaned


def unique_stems(netlist: Netlist, reserved: frozenset[str]) -> list[str]:
    """One stem per cell: a second ``sum`` becomes ``sum_2``.

    Signals are named ``<stem>_s<stage>`` and the like, so stems must differ also as beginnings: ``x`` with
    ``x_2`` is fine since no stage suffix is a bare number.
    """
    taken, counts, stems = set(reserved), dict[str, int](), list[str]()
    for cell in netlist.cells:
        stem = stem_of(cell, netlist)
        name = stem
        while name in taken:
            counts[stem] = counts.get(stem, 1) + 1
            name = f"{stem}_{counts[stem]}"
        taken.add(name)
        stems.append(name)
    return stems

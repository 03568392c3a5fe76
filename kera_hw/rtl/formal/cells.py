"""What cells compute: Yosys's word-level operators and ECP5's device cells, as terms.

Each rule gives the outputs of a cell at one time from its inputs, read so many clock edges before as
``delays`` says. Registers are not here: they are the unrolling's own business.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

from kera_hw.rtl.formal.circuit import Cell
from kera_hw.rtl.formal.terms import Term, Terms

Pins = Mapping[str, Term]
Rule = Callable[[Terms, Cell, Pins], Mapping[str, Term]]


class NotModelled(Exception):
    """A cell, or a mode of one, whose meaning is not known here."""

    def __init__(self, cell: Cell, what: str = "") -> None:
        super().__init__(f"{cell.kind}{f' with {what}' if what else ''}")
        self.cell = cell


# Tables of bits


def table_term(terms: Terms, table: int, pins: tuple[Term, ...]) -> Term:
    """The function whose value at pins (p0, p1, ...) is bit p0 + 2 p1 + ... of the table; pins are words."""
    width = pins[0].width
    if table == 0:
        return terms.const(0, width)
    if table == (1 << (1 << len(pins))) - 1:
        return terms.const(-1, width)
    *below, pin = pins
    half = 1 << len(below)
    low, high = table & ((1 << half) - 1), table >> half
    if low == high:
        return table_term(terms, low, tuple(below))
    if not below:
        return pin if high else terms.bit_not(pin)
    if low == high ^ ((1 << half) - 1):
        return terms.bit_xor(table_term(terms, low, tuple(below)), pin)
    then, otherwise = (table_term(terms, part, tuple(below)) for part in (high, low))
    if width == 1:
        return terms.ite(pin, then, otherwise)
    chosen = terms.bit_and(pin, then)
    return terms.bit_or(chosen, terms.bit_and(terms.bit_not(pin), otherwise))


def _with_constants(table: int, pins: tuple[Term, ...]) -> tuple[int, tuple[Term, ...]]:
    """The table of the pins that are no constant words of equal bits."""
    values = [None if p.value is None else {0: 0, (1 << p.width) - 1: 1}.get(p.value) for p in pins]
    free = [k for k, value in enumerate(values) if value is None]
    result = 0
    for row in range(1 << len(free)):
        index = sum((value or 0) << k for k, value in enumerate(values))
        for place, k in enumerate(free):
            index |= (row >> place & 1) << k
        result |= (table >> index & 1) << row
    return result, tuple(pins[k] for k in free)


def lut(terms: Terms, table: int, pins: tuple[Term, ...]) -> Term:
    """``table_term`` after constants and repeated pins are settled."""
    table, free = _with_constants(table, pins)
    return table_term(terms, table, free) if free else terms.const(-(table & 1), pins[0].width)


def _lut4(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
    return {"Z": lut(terms, cell.number("INIT"), tuple(pins[name] for name in "ABCD"))}


# Carry chains


def _carry(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
    """A chain of CCU2C as one sum.

    A bit adds its carry to P = INIT[D, C, B, A] and passes on g = INIT[0, 0, B, A] where P is 0. Both hold
    as well for the sum of the words g and P ^ g: their bits differ where P is 1, and both are g elsewhere.
    """
    count = cell.number("SLICES")
    generated: list[Term] = []
    added: list[Term] = []
    for init, low, width in _equal_runs([cell.number(f"INIT{k}") for k in range(2 * count)]):
        inputs = tuple(terms.extract(pins[name], low, width) for name in "ABCD")
        nibble = init & 0xF
        generate = nibble * 0x1111
        generated.append(lut(terms, generate, inputs))
        added.append(lut(terms, init ^ generate, inputs))
    width = 2 * count + 1
    g, y = (terms.zext(terms.concat(parts), width) for parts in (generated, added))
    total = terms.arith("add", terms.arith("add", g, y), terms.zext(pins["CIN"], width))
    return {"S": terms.extract(total, 0, width - 1), "COUT": _carries(terms, total, g, y, count)}


def _equal_runs(tables: list[int]) -> list[tuple[int, int, int]]:
    """(table, first, how many) of neighbours that are equal."""
    runs: list[tuple[int, int, int]] = []
    for place, table in enumerate(tables):
        if runs and runs[-1][0] == table:
            runs[-1] = (table, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((table, place, 1))
    return runs


def _carries(terms: Terms, total: Term, g: Term, y: Term, count: int) -> Term:
    """The carry out of every slice: what the sum has and its operands' bits alone have not."""
    into = terms.bit_xor(total, terms.bit_xor(g, y))
    return terms.concat([terms.extract(into, 2 * k + 2, 1) for k in range(count)])


def _pfumx(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
    return {"Z": terms.ite(pins["C0"], pins["ALUT"], pins["BLUT"])}


def _l6mux(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
    return {"Z": terms.ite(pins["SD"], pins["D1"], pins["D0"])}


# Multiplier tiles

_TILE_BITS = 18


def tile_delays(cell: Cell) -> Mapping[str, int]:
    """Clock edges from each operand of a MULT18X18D to its product."""
    shared = sum(cell.word(f"REG_{rank}_CLK", "NONE") != "NONE" for rank in ("PIPELINE", "OUTPUT"))
    delays: dict[str, int] = {}
    for operand in "AB":
        edges = shared + (cell.word(f"REG_INPUT{operand}_CLK", "NONE") != "NONE")
        delays |= {f"{operand}{k}": edges for k in range(_TILE_BITS)}
    return delays


def _tile(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
    ranks = ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT")
    held = any(cell.word(f"REG_{rank}_CLK", "NONE") != "NONE" for rank in ranks)
    if held and (pins["CE0"].value != 1 or pins["RST0"].value != 0):
        raise NotModelled(cell, "an enable or a reset in use")
    if pins["SOURCEA"].value != 0 or pins["SOURCEB"].value != 0:
        raise NotModelled(cell, "a cascade")
    factors: list[Term] = []
    for operand in "AB":
        sign = pins[f"SIGNED{operand}"].value
        if sign is None:
            raise NotModelled(cell, "a signedness that changes")
        word = terms.concat([pins[f"{operand}{k}"] for k in range(_TILE_BITS)])
        factors.append(terms.resize(word, 2 * _TILE_BITS, signed=bool(sign)))
    product = terms.arith("mul", *factors)
    return {f"P{k}": terms.extract(product, k, 1) for k in range(2 * _TILE_BITS)}


# Yosys's operators


def _operands(terms: Terms, cell: Cell, pins: Pins, width: int) -> tuple[Term, Term]:
    signed = bool(cell.number("A_SIGNED") and cell.number("B_SIGNED"))
    a, b = (terms.resize(pins[name], max(width, pins[name].width), signed) for name in "AB")
    return a, b


def _output_width(cell: Cell) -> int:
    return len(cell.outputs["Y"])


def _word(op: Callable[[Terms, Term, Term], Term]) -> Rule:
    """An operator on operands extended to the result's width."""

    def rule(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
        width = _output_width(cell)
        a, b = (terms.extract(x, 0, width) for x in _operands(terms, cell, pins, width))
        return {"Y": op(terms, a, b)}

    return rule


def _arith(op: str) -> Rule:
    return _word(lambda terms, a, b: terms.arith(op, a, b))


def _unary(op: Callable[[Terms, Term], Term]) -> Rule:
    def rule(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
        return {"Y": op(terms, terms.resize(pins["A"], _output_width(cell), bool(cell.number("A_SIGNED"))))}

    return rule


def _compare(op: Callable[[Terms, Term, Term, bool], Term]) -> Rule:
    def rule(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
        a, b = _operands(terms, cell, pins, max(pins["A"].width, pins["B"].width))
        signed = bool(cell.number("A_SIGNED") and cell.number("B_SIGNED"))
        return {"Y": terms.zext(op(terms, a, b, signed), _output_width(cell))}

    return rule


def _nonzero(terms: Terms, x: Term) -> Term:
    return terms.bit_not(terms.eq(x, terms.const(0, x.width)))


def _parity(terms: Terms, x: Term) -> Term:
    total = terms.const(0, 1)
    for k in range(x.width):
        total = terms.bit_xor(total, terms.extract(x, k, 1))
    return total


def _reduced(op: Callable[[Terms, Term], Term]) -> Rule:
    def rule(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
        return {"Y": terms.zext(op(terms, pins["A"]), _output_width(cell))}

    return rule


def _logic(both: bool) -> Rule:
    def rule(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
        a, b = _nonzero(terms, pins["A"]), _nonzero(terms, pins["B"])
        result = terms.bit_and(a, b) if both else terms.bit_or(a, b)
        return {"Y": terms.zext(result, _output_width(cell))}

    return rule


def _mux(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
    return {"Y": terms.ite(pins["S"], pins["B"], pins["A"])}


def _pmux(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
    """One choice for each select bit; two at once are undefined in Verilog, and here the lowest wins."""
    result, width = pins["A"], pins["A"].width
    for k in reversed(range(pins["S"].width)):
        choice = terms.extract(pins["B"], k * width, width)
        result = terms.ite(terms.extract(pins["S"], k, 1), choice, result)
    return {"Y": result}


def _shift(op: str) -> Rule:
    def rule(terms: Terms, cell: Cell, pins: Pins) -> Mapping[str, Term]:
        if cell.kind in ("$shift", "$shiftx") and cell.number("B_SIGNED"):
            raise NotModelled(cell, "a signed amount")
        wanted = _output_width(cell)
        width = max(wanted, pins["A"].width, pins["B"].width)
        a = terms.resize(pins["A"], width, bool(cell.number("A_SIGNED")))
        shifted = terms.arith(op, a, terms.zext(pins["B"], width))
        return {"Y": terms.extract(shifted, 0, wanted)}

    return rule


RULES: Mapping[str, Rule] = {
    "LUT4": _lut4,
    "carry chain": _carry,
    "PFUMX": _pfumx,
    "L6MUX21": _l6mux,
    "MULT18X18D": _tile,
    "$add": _arith("add"),
    "$sub": _arith("sub"),
    "$mul": _arith("mul"),
    "$and": _word(Terms.bit_and),
    "$or": _word(Terms.bit_or),
    "$xor": _word(Terms.bit_xor),
    "$xnor": _word(lambda terms, a, b: terms.bit_not(terms.bit_xor(a, b))),
    "$not": _unary(Terms.bit_not),
    "$neg": _unary(Terms.neg),
    "$pos": _unary(lambda terms, x: x),
    "$eq": _compare(lambda terms, a, b, _: terms.eq(a, b)),
    "$ne": _compare(lambda terms, a, b, _: terms.bit_not(terms.eq(a, b))),
    "$lt": _compare(lambda terms, a, b, signed: terms.less(a, b, signed)),
    "$le": _compare(lambda terms, a, b, signed: terms.less(a, b, signed, or_equal=True)),
    "$gt": _compare(lambda terms, a, b, signed: terms.less(b, a, signed)),
    "$ge": _compare(lambda terms, a, b, signed: terms.less(b, a, signed, or_equal=True)),
    "$reduce_or": _reduced(_nonzero),
    "$reduce_bool": _reduced(_nonzero),
    "$reduce_and": _reduced(lambda terms, x: terms.eq(x, terms.const(-1, x.width))),
    "$reduce_xor": _reduced(_parity),
    "$reduce_xnor": _reduced(lambda terms, x: terms.bit_not(_parity(terms, x))),
    "$logic_not": _reduced(lambda terms, x: terms.bit_not(_nonzero(terms, x))),
    "$logic_and": _logic(both=True),
    "$logic_or": _logic(both=False),
    "$mux": _mux,
    "$pmux": _pmux,
    "$shl": _shift("shl"),
    "$sshl": _shift("shl"),
    "$shr": _shift("lshr"),
    "$sshr": _shift("ashr"),
    "$shift": _shift("lshr"),
    "$shiftx": _shift("lshr"),
}
"""Combinational cells by type."""


def delays(cell: Cell) -> Mapping[str, int]:
    """Clock edges between an input pin and what the cell shows of it; pins not named have none."""
    return tile_delays(cell) if cell.kind == "MULT18X18D" else {}

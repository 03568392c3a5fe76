"""A clocked circuit as terms: every output bit followed back in time to the inputs it depends on.

A register shows at time t what stood at its input at t - 1. Each input port is another variable in each
cycle, so a result that mixes items of different cycles differs from its specification. State registers
are cut at the time at which the item reads them. A memory in LUTs shows what was written last at its address,
which counters from power-up on must decide.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.rtl.formal.cells import RULES, NotModelled, delays
from kera_hw.rtl.formal.chains import joined_chains, single_carries
from kera_hw.rtl.formal.circuit import Bit, Cell, Circuit
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.support import toposort
from kera_hw.support.toposort import CycleError

_REGISTERS = frozenset({"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce", "TRELLIS_FF"})
_MEMORY = "TRELLIS_DPR16X4"
# What a bus shows at a time: name, time, width in bits.
Source = Callable[[str, int, int], Term]
Event = tuple[int, int]  # (cell, time)
Control = tuple[Term | None, Term | None, Term, bool]


@dataclass(frozen=True, slots=True)
class Cut:
    """A state register's bits at the time at which a variable stands for them."""

    bits: tuple[Bit, ...]
    time: int
    variable: Term


@dataclass(frozen=True, slots=True)
class Fault:
    """One output bit of one cell, inverted at all times."""

    cell: int
    port: str
    bit: int


class Unrolling:
    """The terms of one circuit's bits over time, from power-up at time 0.

    ``replace`` may give an equal term for the outputs of a cell before anything is made of them.
    """

    def __init__(
        self,
        terms: Terms,
        circuit: Circuit,
        source: Source,
        cuts: Iterable[Cut] = (),
        fault: Fault | None = None,
        replace: Callable[[Term], Term] | None = None,
    ) -> None:
        self.terms, self.circuit, self.source, self.fault = terms, circuit, source, fault
        self.replace = replace
        self._use(joined_chains(circuit))
        self._cut = {bit: (cut, place) for cut in cuts for place, bit in enumerate(cut.bits)}
        self._done: dict[Event, Mapping[str, Term]] = {}
        self._inputs = {
            bit: (bus, place) for bus, bits in circuit.inputs.items() for place, bit in enumerate(bits)
        }
        self._buses: dict[tuple[str, int], Term] = {}

    def _use(self, cells: tuple[Cell, ...]) -> None:
        self.cells = cells
        self._drivers: dict[Bit, tuple[int, str, int]] = {}
        for number, cell in enumerate(cells):
            if cell.kind not in RULES and cell.kind not in _REGISTERS and cell.kind != _MEMORY:
                raise NotModelled(cell)
            for port, bits in cell.outputs.items():
                for place, bit in enumerate(bits):
                    if isinstance(bit, int):
                        self._drivers[bit] = (number, port, place)

    def at(self, bits: Sequence[Bit], time: int) -> Term:
        """The word that bits show at a time."""
        roots = self._events(bits, time)
        try:
            order = toposort(roots, self._before)
        except CycleError:
            if self.cells == (cells := single_carries(self.circuit)):
                raise  # a loop without a register
            self._use(cells)
            self._done.clear()
            return self.at(bits, time)
        for event in order:
            if event not in self._done:
                self._done[event] = self._evaluate(*event)
        return self._word(bits, time)

    @property
    def events(self) -> Iterable[Event]:
        """(cell, time) of all that was evaluated so far."""
        return self._done

    # Dependences

    def _events(self, bits: Iterable[Bit], time: int) -> list[Event]:
        found: dict[Event, None] = {}
        for bit in bits:
            driver = self._drivers.get(bit)
            if driver is not None:
                found[(driver[0], time)] = None
        return list(found)

    def _before(self, event: Event) -> list[Event]:
        number, time = event
        if event in self._done:
            return []
        cell = self.cells[number]
        if cell.kind == _MEMORY:
            written = self._written(cell, time)
            return [] if written is None else self._events(cell.inputs["DI"], written)
        if cell.kind not in _REGISTERS:
            lag = delays(cell)
            return [
                item
                for port, bits in cell.inputs.items()
                for item in self._events(bits, time - lag.get(port, 0))
            ]
        if time <= 0 or self._is_cut(cell, time):
            return []
        pins = [bits for port, bits in cell.inputs.items() if port not in ("CLK", "M")]
        before = [item for bits in pins for item in self._events(bits, time - 1)]
        return [*before, (number, time - 1)] if _holds(cell) else before

    def _is_cut(self, cell: Cell, time: int) -> bool:
        """Whether a register's value is a variable at this time, for all of its bits."""
        found = [self._cut.get(bit) for bit in cell.outputs["Q"]]
        return all(item is not None and time <= item[0].time for item in found)

    # Values

    def _evaluate(self, number: int, time: int) -> Mapping[str, Term]:
        cell = self.cells[number]
        if cell.kind in _REGISTERS:
            result: Mapping[str, Term] = {"Q": self._register(number, time)}
        elif cell.kind == _MEMORY:
            written, data = self._written(cell, time), cell.inputs["DI"]
            held = self.terms.fresh("powerup", len(data)) if written is None else self._word(data, written)
            result = {"DO": held}
        else:
            lag = delays(cell)
            pins = {port: self._word(bits, time - lag.get(port, 0)) for port, bits in cell.inputs.items()}
            result = RULES[cell.kind](self.terms, cell, pins)
        if self.fault is not None and self.fault.cell == number:
            word = result[self.fault.port]
            flipped = self.terms.bit_xor(word, self.terms.const(1 << self.fault.bit, word.width))
            result = {**result, self.fault.port: flipped}
        if self.replace is not None and cell.kind not in _REGISTERS:
            result = self._replaced(result)
        return result

    def _replaced(self, result: Mapping[str, Term]) -> Mapping[str, Term]:
        """All outputs of a cell replaced as one word."""
        assert self.replace is not None
        word = self.replace(self.terms.concat(list(result.values())))
        changed: dict[str, Term] = {}
        low = 0
        for port, term in result.items():
            changed[port] = self.terms.extract(word, low, term.width)
            low += term.width
        return changed

    def _word(self, bits: Sequence[Bit], time: int) -> Term:
        parts: list[Term] = []
        run: tuple[Term, int, int] | None = None  # a word, and the slice of it that bits so far are
        for bit in bits:
            word, place = self._bit(bit, time)
            if run is not None and run[0] is word and run[1] + run[2] == place:
                run = (word, run[1], run[2] + 1)
                continue
            if run is not None:
                parts.append(self.terms.extract(*run))
            run = (word, place, 1)
        assert run is not None, "a word without bits"
        return self.terms.concat([*parts, self.terms.extract(*run)])

    def _bit(self, bit: Bit, time: int) -> tuple[Term, int]:
        """A word that holds the bit, and its place there."""
        if isinstance(bit, str):
            if bit in ("0", "1"):
                return self.terms.const(int(bit), 1), 0
            return self.terms.fresh("unknown", 1), 0
        driver = self._drivers.get(bit)
        if driver is not None:
            return self._done[(driver[0], time)][driver[1]], driver[2]
        if bit not in self._inputs:
            return self.terms.fresh("undriven", 1), 0
        bus, place = self._inputs[bit]
        key = (bus, time)
        if key not in self._buses:
            self._buses[key] = self.source(bus, time, len(self.circuit.inputs[bus]))
        return self._buses[key], place

    def _register(self, number: int, time: int) -> Term:
        cell = self.cells[number]
        bits = cell.outputs["Q"]
        self._check_clock(cell)
        if self._is_cut(cell, time):
            return self.terms.concat([self._cut_bit(bit, time) for bit in bits])
        if time <= 0:
            return self.terms.concat([self._first(cell, bit, time) for bit in bits])
        data = self._word(cell.inputs["DI" if cell.kind == "TRELLIS_FF" else "D"], time - 1)
        held = self._done[(number, time - 1)]["Q"] if _holds(cell) else None
        return self._loaded(cell, data, held, time - 1)

    def _written(self, cell: Cell, time: int) -> int | None:
        """When the word that a memory shows at a time was written; None if it is there from power-up."""
        self._check_clock(cell)
        asked = self._known(cell, "RAD", time)
        for before in range(time - 1, -1, -1):
            if self._known(cell, "WRE", before) and self._known(cell, "WAD", before) == asked:
                return before
        return None

    def _known(self, cell: Cell, port: str, time: int) -> int:
        value = self.at(cell.inputs[port], time).value
        if value is None:
            raise NotModelled(cell, "accesses that depend on items")
        return value

    def _cut_bit(self, bit: Bit, time: int) -> Term:
        cut, place = self._cut[bit]
        if time < cut.time:
            return self.terms.fresh("earlier", 1)
        return self.terms.extract(cut.variable, place, 1)

    def _first(self, cell: Cell, bit: Bit, time: int) -> Term:
        """The value at power-up; nobody knows what was before."""
        known = self.circuit.initial.get(bit)
        if cell.kind == "TRELLIS_FF" and cell.word("LSRMODE", "LSR") != "PRLD":
            known = int(cell.word("REGSET", "RESET") == "SET")
        return self.terms.fresh("powerup", 1) if known is None or time < 0 else self.terms.const(known, 1)

    def _loaded(self, cell: Cell, data: Term, held: Term | None, time: int) -> Term:
        """What the edge after ``time`` leaves in a register, by its enable and synchronous reset."""
        enable, reset, value, reset_first = self._control(cell, data.width, time)
        kept = data if enable is None or held is None else self.terms.ite(enable, data, held)
        if reset is None:
            return kept
        if reset_first or enable is None or held is None:
            return self.terms.ite(reset, value, kept)
        return self.terms.ite(enable, self.terms.ite(reset, value, data), held)

    def _control(self, cell: Cell, width: int, time: int) -> Control:
        """Enable, reset, the value of a reset, and whether a reset needs no enable."""
        if cell.kind == "TRELLIS_FF":
            return self._slice_control(cell, time)
        enable = self._line(cell, "EN", cell.number("EN_POLARITY", 1) == 0, time)
        reset = self._line(cell, "SRST", cell.number("SRST_POLARITY", 1) == 0, time)
        value = self.terms.const(cell.number("SRST_VALUE"), width)
        return enable, reset, value, cell.kind != "$sdffce"

    def _slice_control(self, cell: Cell, time: int) -> Control:
        mode = cell.word("CEMUX", "1")
        if mode == "0":
            raise NotModelled(cell, "an enable that is never on")
        enable = None if mode == "1" else self._line(cell, "CE", mode == "INV", time)
        reset = self._line(cell, "LSR", cell.word("LSRMUX", "LSR") == "INV", time)
        special = cell.word("SRMODE", "") == "ASYNC" or cell.word("LSRMODE", "LSR") == "PRLD"
        if reset is not None and special:
            raise NotModelled(cell, "an asynchronous reset or a preload")
        value = self.terms.const(int(cell.word("REGSET", "RESET") == "SET"), 1)
        return enable, reset, value, True

    def _line(self, cell: Cell, port: str, inverted: bool, time: int) -> Term | None:
        bits = cell.inputs.get(port)
        if not bits or (bits[0] == "0" and not inverted and port in ("SRST", "LSR")):
            return None
        line = self._word(bits, time)
        return self.terms.bit_not(line) if inverted else line

    def _check_clock(self, cell: Cell) -> None:
        pin = "WCK" if cell.kind == _MEMORY else "CLK"
        clock, mux = cell.inputs[pin], f"{pin}MUX"
        rising = cell.number("CLK_POLARITY", 1) == 1 and cell.word(mux, pin) == pin
        rising = rising and (cell.kind != _MEMORY or cell.word("WREMUX", "WRE") == "WRE")
        if clock != self.circuit.inputs.get("clk") or not rising:
            raise NotModelled(cell, "another clock")


def _holds(cell: Cell) -> bool:
    """Whether a register may keep its value over an edge."""
    return cell.kind in ("$dffe", "$sdffe", "$sdffce") or (
        cell.kind == "TRELLIS_FF" and cell.word("CEMUX", "1") not in ("1",)
    )

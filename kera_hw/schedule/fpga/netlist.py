"""The cell netlist: lowering gives it, the scheduler places it in cycles, the emitter writes it down.

Values are bit vectors. A cell has one output vector; inputs are ``Bits``: runs of bits of other cells and
constants, least significant first, so slices, concatenations, shifts by constants and extensions cost
nothing and need no cells. A cell is the unit of scheduling: its inputs must all be present in its stage.
Everything here is immutable and target-independent data; their meanings are:

* ``Lut``  out[i] = expr over one bit of each operand (width-1 operands broadcast); at most 4 operands on
  4-input devices: one LUT level, ``width`` LUTs.
* ``Add``  out = a + f(b, c, d) + carry_in (mod 2^width), with carry-out as bit ``width`` when asked. f is a
  bitwise expression over operands b, c, d (width-1 operands broadcast) absorbed in the carry cell.
* ``Chain``  an adder whose operands' logic lies wholly in its carry cells: see the class.
* ``Mul``  out = a * b modulo 2^width (operands sign- or zero-extended as said), on DSP tiles with
  ``latency_cycles`` internal register ranks (0: combinational).
* ``Mux``  out = choices[select] (a select past the end takes the last choice): 2^k:1 multiplexer trees.
* ``Rom``  out = contents[address] (0 past the end); from LUTs with ``latency_cycles`` 0, else from block RAM
  with that many register ranks inside (address, then output).
* ``Fold``  registers around one step's logic, which works ``count`` times for an item: see the class.
* ``StateOut``  the present value of a state register.
* ``StateNext``  the value that an item has left in a state register, in the stage after its write.
* ``Moves``, ``Restart``  what the control around the pipeline says in the stage that writes a state.
* ``RegisterPin``  one signal as the enable, or the synchronous reset, of registers: see ``StateControl``.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kera_hw.graph.node import Origin

# A bitwise expression over operand positions, as nested tuples:
# ("in", k) | ("not", e) | ("and", e, e, ...) | ("or", e, ...) | ("xor", e, ...) | ("mux", cond, then, else)
# | ("const", 0 or 1)
BitExpr = tuple[object, ...]


class Segment(NamedTuple):
    """``width`` bits of cell ``cell`` from bit ``low``; for ``cell is None`` the constant integer ``low``."""

    cell: int | None
    low: int
    width: int


Bits = tuple[Segment, ...]


def const_bits(value: int, width: int) -> Bits:
    """A constant vector."""
    return (Segment(None, value & ((1 << width) - 1), width),) if width else ()


def cell_bits(cell: int, width: int, low: int = 0) -> Bits:
    return (Segment(cell, low, width),) if width else ()


def bits_width(bits: Bits) -> int:
    return sum(segment.width for segment in bits)


def concat(parts: Iterable[Bits]) -> Bits:
    """Least significant first; neighbouring runs are merged."""
    out: list[Segment] = []
    for segment in (s for bits in parts for s in bits):
        if segment.width == 0:
            continue
        if out:
            last = out[-1]
            if last.cell is None and segment.cell is None:
                out[-1] = Segment(None, last.low | segment.low << last.width, last.width + segment.width)
                continue
            if last.cell is not None and last.cell == segment.cell and last.low + last.width == segment.low:
                out[-1] = Segment(last.cell, last.low, last.width + segment.width)
                continue
        out.append(segment)
    return tuple(out)


def slice_bits(bits: Bits, low: int, width: int) -> Bits:
    """Bits [low, low + width) of a vector."""
    if len(bits) == 1 and low >= 0 and 0 < width <= bits[0].width - low:
        only = bits[0]
        if only.cell is None:
            return const_bits(only.low >> low, width)
        return (Segment(only.cell, only.low + low, width),)
    parts: list[Bits] = []
    position = 0
    for segment in bits:
        first, last = max(low, position), min(low + width, position + segment.width)
        if first < last:
            skip, count = first - position, last - first
            if segment.cell is None:
                parts.append(const_bits(segment.low >> skip, count))
            else:
                parts.append(cell_bits(segment.cell, count, segment.low + skip))
        position += segment.width
    return concat(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Base of all cells: the output's ``width`` in bits, the source place ``origin``, a readable ``name``."""

    width: int
    origin: Origin | None = None
    name: str | None = None

    def operands(self) -> tuple[Bits, ...]:
        """All input vectors, in a fixed order."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(Cell):
    """A leaf of the parameters: ``bus`` names the port, bits [low, low + width) of it."""

    bus: str
    low: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lut(Cell):
    inputs: tuple[Bits, ...]
    expr: BitExpr

    def operands(self) -> tuple[Bits, ...]:
        return self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Cell):
    """``width`` counts the sum bits and, with ``carry_out``, one more for the carry."""

    a: Bits
    inputs: tuple[Bits, ...]  # b[, c[, d]]
    expr: BitExpr = ("in", 0)
    carry_in: Bits = ()  # empty: 0; constant or one bit
    carry_out: bool = False

    def operands(self) -> tuple[Bits, ...]:
        return (self.a, *self.inputs, self.carry_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(Add):
    """A carry chain of table cells, for devices that have such (``Device.carry_operands`` of 4).

    Bit i sees p = table[d c b a] and g = table[0 0 b a] of its own table, with (a, b, c, d) = ``a`` and three
    ``inputs``, all as wide as the sum. It gives p ^ carry and passes on carry where p is set, else g.
    ``tables``: runs of (bits, 16-bit table). ``expr`` has no meaning here.
    """

    tables: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mul(Cell):
    a: Bits
    b: Bits
    a_signed: bool
    b_signed: bool
    latency_cycles: int = 0

    def operands(self) -> tuple[Bits, ...]:
        return (self.a, self.b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mux(Cell):
    select: Bits
    choices: tuple[Bits, ...]

    def operands(self) -> tuple[Bits, ...]:
        return (self.select, *self.choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rom(Cell):
    address: Bits
    contents: tuple[int, ...]
    latency_cycles: int = 0

    def operands(self) -> tuple[Bits, ...]:
        return (self.address,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOut(Cell):
    """Present value of state register ``state`` (index into ``Netlist.states``)."""

    state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNext(Cell):
    """State register ``state`` in the stage after the one that writes it: the item's own next value.

    It is that of the item which left it, until a later item writes, just when this one moves on. So the
    register serves the results too; nothing but outputs reads it.
    """

    state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteControl(Cell):
    """A signal of the control around the pipeline, in the stage that writes state register ``state``."""

    state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves(WriteControl):
    """Whether that stage holds an item, and the pipeline moves: 1 for every item, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(WriteControl):
    """The design's reset: 0 while items pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterPin(Cell):
    """One bit as the reset, else the enable, of ``registers`` flip-flops: no logic, a wire and a setup."""

    bits: Bits
    registers: int
    reset: bool = False

    def operands(self) -> tuple[Bits, ...]:
        return (self.bits,)


@dataclass(frozen=True, slots=True)
class FoldRegister:
    """One register of a ``Fold``: its bus in the step, and the buses of its next value and of its enable.

    ``follow`` None: the value is only kept. ``enable`` None: it changes in every step, else in those where
    the enabling bit is ``enabled_by``.
    """

    bus: str
    follow: str | None
    enable: str | None
    enabled_by: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold(Cell):
    """A folded loop: in the cell's stage the registers load ``initial``, then step ``count`` times.

    ``step`` is a netlist without states or registers inside: inputs are the registers' buses, outputs the
    buses of next values and of enables (one bit). The output joins all registers, the first lowest. It holds
    for one stage; the next item may load in that stage at the earliest, so that the initiation interval is
    at least ``latency_cycles``.
    """

    initial: tuple[Bits, ...]
    registers: tuple[FoldRegister, ...]
    step: Netlist
    count: int

    @property
    def latency_cycles(self) -> int:
        """Register ranks from the cell's stage to its output's: one to load, one for each step."""
        return self.count + 1

    def operands(self) -> tuple[Bits, ...]:
        return self.initial


def is_leaf(cell: Cell) -> bool:
    """Whether a cell only shows what comes from elsewhere."""
    return isinstance(cell, Input | StateOut | StateNext | WriteControl)


def internal_ranks(cell: Cell) -> int:
    """Register ranks inside a cell: its output appears so many stages after the one it works in."""
    return cell.latency_cycles if isinstance(cell, Mul | Rom | Fold) else 0


def least_interval(netlist: Netlist) -> int:
    """The smallest initiation interval that folded loops leave room for."""
    return max((cell.latency_cycles for cell in netlist.cells if isinstance(cell, Fold)), default=1)


@dataclass(frozen=True, slots=True)
class StateControl:
    """How bits [low, low + width) of a state change; ``reset`` and ``enable`` are ``RegisterPin`` cells.

    They return to their initial values when ``reset`` is high, else take the next value when ``enable`` is.
    An enable is low where ``Moves`` is, and so is a reset unless ``Restart`` is high. Without an enable they
    change with every item, without a reset the design's own resets them.
    """

    low: int
    width: int
    enable: int | None = None
    reset: int | None = None


@dataclass(frozen=True, slots=True)
class StateReg:
    """A state register: initial value, the cell that reads it, the vector it takes for the next item.

    ``controls``, lowest first, name bits that do not simply change with every item.
    """

    name: str
    width: int
    initial: int
    out: int
    next: Bits
    controls: tuple[StateControl, ...] = ()

    def groups(self) -> Iterator[StateControl]:
        """All bits, those between the controls as well."""
        low = 0
        for control in (*self.controls, StateControl(self.width, 0)):
            if low < control.low:
                yield StateControl(low, control.low - low)
            if control.width:
                yield control
            low = control.low + control.width

    def pins(self) -> Iterator[int]:
        """The cells that control its flip-flops, each once."""
        named = (pin for control in self.controls for pin in (control.enable, control.reset))
        return iter(dict.fromkeys(pin for pin in named if pin is not None))

    def operands(self) -> tuple[Bits, ...]:
        """All that is read in the stage that writes the register."""
        return (self.next, *(cell_bits(pin, 1) for pin in self.pins()))


@dataclass(frozen=True, slots=True)
class Output:
    """One output bus in packing order (`out_data`, or `out_0`, ...)."""

    bus: str
    bits: Bits


@dataclass(frozen=True, slots=True)
class Netlist:
    """Cells in topological order (state reads are sources). ``cells[i]`` has id i."""

    name: str
    inputs: tuple[tuple[str, int], ...]  # bus name, width in bits
    cells: tuple[Cell, ...]
    outputs: tuple[Output, ...]
    states: tuple[StateReg, ...] = ()
    device: str = "generic"
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"<Netlist {self.name}: {len(self.cells)} cells for {self.device}>"

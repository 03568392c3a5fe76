"""What every cell states about itself; a class of cells is one module of this package, with all its facts.

The models (delay, area, simulation), messages and pictures ask the cell. Emitters have tables keyed by class,
which a test compares with ``CELLS``.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

from kera_hw.graph.node import Origin
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.device import Device, Timing
from kera_hw.schedule.fpga.values import Value

Paint = Literal["logic", "add", "mul", "mux", "table", "state", "input"]
"""The colours of pictures."""


class Look(NamedTuple):
    """How a class is spelt: what names of its signals begin with, its noun in lists of costs, its colour."""

    stem: str
    noun: str
    paint: Paint


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(ABC):
    """Base of all cells: the output's ``width`` in bits, the source place ``origin``, a readable ``name``.

    A cell is the unit of scheduling: its inputs must all be present in its stage.
    """

    width: int
    origin: Origin | None = None
    name: str | None = None

    leaf: ClassVar[bool] = False
    """Whether it only shows what comes from elsewhere."""
    free: ClassVar[bool] = False
    """Whether it costs nothing."""
    near: ClassVar[bool] = True
    """Whether placement brings it close to what it reads, where that is the slowest path: chains and blocks
    stay where they are."""

    # Words and pictures

    @abstractmethod
    def look(self) -> Look:
        """How its class is spelt."""

    @abstractmethod
    def describe(self) -> str:
        """What it does, in a few words with its width."""

    # Operands

    def operands(self) -> tuple[Bits, ...]:
        """All input vectors, in a fixed order."""
        return ()

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        """The cell with every vector it reads exchanged."""
        assert not self.operands(), "a class with operands says how they are exchanged"
        return self

    def loads(self) -> list[tuple[Bits, int]]:
        """Each operand with the number of loads that one of its bits sees in this cell."""
        return [(bits, 1) for bits in self.operands()]

    def entry(self, operand: int) -> int:
        """The position at which bit 0 of an operand enters; see ``logic_ps``."""
        return 0

    # Time

    def inner_stages(self) -> int:
        """Pipeline registers inside: its output appears so many stages after the one it works in."""
        return 0

    @abstractmethod
    def logic_ps(self, device: Device, position: int = 0) -> int:
        """Time through the cell alone until all its bits have settled; 0 for leaves.

        ``position``: where it is entered, a bit of an operand from its ``entry`` on. With registers inside
        the time is the setup of its inputs beyond that of a flip-flop.
        """

    def early_ps(self, device: Device, bit: int) -> int:
        """How much earlier than the whole cell its output bit ``bit`` settles."""
        return 0

    def wire_ps(self, timing: Timing) -> float:
        """Time over a wire to the cell from a driver with one load."""
        return timing.route_lut_ps

    def clk_to_q_ps(self, device: Device, wire_ps: int) -> int:
        """Time from the clock edge until a register shows its value; ``wire_ps``: the way to it."""
        return round(device.timing.clk_to_q_ps)

    def from_block(self, device: Device) -> bool:
        """Whether a register inside a DSP block shows its value, from which it is far to other cells."""
        return False

    # Area

    @abstractmethod
    def luts(self, device: Device, read: int = -1) -> float:
        """LUTs that it asks for, before synthesis shares and merges across cells.

        ``read`` is the mask of output bits that somebody reads: the others are left out, and carry chains end
        at the highest of them.
        """

    def keeps_luts(self, device: Device) -> bool:
        """Whether synthesis leaves its LUTs as they are."""
        return False

    def flip_flops(self) -> int:
        """Flip-flops of the fabric inside it."""
        return 0

    def dsps(self, device: Device) -> int:
        """DSP tiles that it takes."""
        return 0

    # Meaning

    @abstractmethod
    def evaluate(self, operands: Sequence[Value]) -> Value:
        """Its output from its operands, in the order of ``operands()``."""


def levels(count: int) -> int:
    """ceil(log2(count)), 0 for one."""
    return max(0, (count - 1).bit_length())


def wide_ps(device: Device, doublings: int) -> int:
    """Time through a function that multiplexes 2^doublings LUTs."""
    timing = device.timing
    extra = timing.mux_level_ps * doublings + timing.mux_exit_ps if doublings > 0 else 0.0
    return round(timing.lut_ps + extra)


def luts_of_function(inputs: int, device: Device) -> int:
    """LUTs for one bit of a function of that many signals (one signal: absorbed by neighbours)."""
    if inputs <= 1:
        return 0
    return 1 << max(0, inputs - device.lut_inputs)

"""The classes of cells, a module each."""
from __future__ import annotations

from kera_hw.schedule.fpga.cells.add import Add
from kera_hw.schedule.fpga.cells.call import Call, Unit
from kera_hw.schedule.fpga.cells.cell import Cell
from kera_hw.schedule.fpga.cells.chain import Chain
from kera_hw.schedule.fpga.cells.lut import Lut
from kera_hw.schedule.fpga.cells.mul import Mul
from kera_hw.schedule.fpga.cells.mux import Mux
from kera_hw.schedule.fpga.cells.pin import RegisterPin
from kera_hw.schedule.fpga.cells.rom import Rom
from kera_hw.schedule.fpga.cells.sources import (
    Input,
    Moves,
    Restart,
    Source,
    StateNext,
    StateOut,
    WriteControl,
)

CELLS: tuple[type[Cell], ...] = (
    Input, Lut, Add, Chain, Mul, Mux, Rom, Call, StateOut, StateNext, Moves, Restart, RegisterPin,
)
"""All that a netlist may hold."""

__all__ = [
    "CELLS", "Add", "Call", "Cell", "Chain", "Input", "Lut", "Moves", "Mul", "Mux", "RegisterPin", "Restart",
    "Rom", "Source", "StateNext", "StateOut", "Unit", "WriteControl",
]

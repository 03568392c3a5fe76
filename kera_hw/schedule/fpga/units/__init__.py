"""The classes of units, a module each: what stands for itself in a circuit and works for calls."""
from __future__ import annotations

from kera_hw.schedule.fpga.cells.call import Unit
from kera_hw.schedule.fpga.units.iterative import IterativeUnit
from kera_hw.schedule.fpga.units.memory import Memory
from kera_hw.schedule.fpga.units.operator import Operator
from kera_hw.schedule.fpga.units.storage import Port, ReadPort, Storage, WritePort

UNITS: tuple[type[Unit], ...] = (IterativeUnit, Memory, Operator, ReadPort, WritePort)
"""All that a call may name."""

__all__ = ["UNITS", "IterativeUnit", "Memory", "Operator", "Port", "ReadPort", "Storage", "WritePort"]

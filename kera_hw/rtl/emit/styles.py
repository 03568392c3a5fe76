"""The rules by which cells and units are written as Verilog text, a set for each style."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kera_hw.rtl.emit.cells import PLAIN_CELLS, ModuleRule, UnitWriter, Writers
from kera_hw.rtl.emit.ecp5 import ECP5_CELLS
from kera_hw.rtl.emit.ecp5_memory import write_blocks
from kera_hw.rtl.emit.iterative import write_iterative, write_iterative_module
from kera_hw.rtl.emit.memory import write_memory
from kera_hw.rtl.emit.operators import operator_writer
from kera_hw.schedule.fpga.cells import Unit
from kera_hw.schedule.fpga.units import IterativeUnit, Memory, Operator

Style = Literal["ecp5", "generic"]

_MODULES: Mapping[type[Unit], ModuleRule] = {
    IterativeUnit: ModuleRule("iterative", write_iterative_module),
}
_UNITS: dict[type[Unit], UnitWriter] = {IterativeUnit: write_iterative}
TEXT_STYLES: Mapping[Style, Writers] = {
    "generic": Writers(
        PLAIN_CELLS, _UNITS | {Memory: write_memory, Operator: operator_writer(PLAIN_CELLS)}, _MODULES
    ),
    "ecp5": Writers(
        ECP5_CELLS, _UNITS | {Memory: write_blocks, Operator: operator_writer(ECP5_CELLS)}, _MODULES
    ),
}

"""The rules by which cells and units are built in Amaranth, a set for each style."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kera_hw.rtl.emit.amaranth_cells import PLAIN_CELLS, Builders, Place, Start, build_memory
from kera_hw.rtl.emit.amaranth_ecp5 import ECP5_CELLS, build_blocks
from kera_hw.rtl.emit.amaranth_iterative import build_iterative
from kera_hw.rtl.emit.amaranth_operators import build_operator
from kera_hw.rtl.emit.styles import Style
from kera_hw.schedule.fpga.units import IterativeUnit, Memory, Operator

_PLAIN_STEP, _ECP5_STEP = Builders(PLAIN_CELLS, {}), Builders(ECP5_CELLS, {})


def _iterative(unit: IterativeUnit, start: Start, place: Place) -> None:
    build_iterative(unit, start, place, _PLAIN_STEP)


def _ecp5_iterative(unit: IterativeUnit, start: Start, place: Place) -> None:
    build_iterative(unit, start, place, _ECP5_STEP)


def _operator(unit: Operator, start: Start, place: Place) -> None:
    build_operator(unit, start, place, _PLAIN_STEP)


def _ecp5_operator(unit: Operator, start: Start, place: Place) -> None:
    build_operator(unit, start, place, _ECP5_STEP)


AMARANTH_STYLES: Mapping[Style, Builders] = {
    "generic": replace(_PLAIN_STEP, units={
        IterativeUnit: _iterative, Memory: build_memory, Operator: _operator,
    }),
    "ecp5": replace(_ECP5_STEP, units={
        IterativeUnit: _ecp5_iterative, Memory: build_blocks, Operator: _ecp5_operator,
    }),
}

"""Devices as data: the parts Kera knows, with the timing and area tables of their family.

Tables are package data (``devices/*.toml``), part of the program like its modules; nothing else is read.
"""
from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

TABLES = ("ecp5-6", "ice40-hx", "ice40-up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Delays of one family and speed grade in ps; the tables' comments say what each of them means."""

    clk_to_q_ps: float
    setup_ps: float
    enable_setup_ps: float
    reset_setup_ps: float
    lut_ps: float
    mux_level_ps: float
    mux_exit_ps: float
    carry_base_ps: float
    carry_bit_ps: float
    carry_in_ps: float
    dsp_ps: float
    dsp_tile_ps: float
    dsp_setup_ps: float
    dsp_clk_to_q_ps: float
    route_lut_ps: float
    route_carry_ps: float
    route_dsp_ps: float
    route_fanout_ps: float
    crowd: float
    bram_setup_ps: float = 0.0
    bram_clk_to_q_ps: float = 0.0
    bram_wire_ps: float = 0.0
    block_spread_ps: float = 0.0
    block_farthest_ps: float = 0.0
    block_across_ps: float = 0.0
    blocks_near: int = 0
    block_stretch: float = 0.0
    near_share: float = 1.0
    near_share_doubling: float = 0.0
    near_share_block: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """How many device cells the cells of a netlist take."""

    lut_factor: float
    keeps_luts: bool
    carry_bits_per_cell: int
    luts_per_carry_cell: int
    dsp_width: int
    least_controlled: int
    bram_bits: int = 0
    bram_width: int = 0
    bram_stages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One part: capacities, package, and its family's tables."""

    name: str
    family: str
    speed: str
    package: str
    lut_inputs: int
    wide_inputs: int
    carry_operands: int
    lut: int
    ff: int
    dsp: int
    bram: int
    timing: Timing
    area: Area

    @property
    def carry_logic(self) -> bool:
        """Whether a carry cell holds a function of four signals."""
        return self.carry_operands >= 4


@cache
def _parts() -> dict[str, Device]:
    parts: dict[str, Device] = {}
    for table in TABLES:
        text = (files("kera_hw.schedule.fpga") / "devices" / f"{table}.toml").read_text(encoding="utf-8")
        data: dict[str, Any] = tomllib.loads(text)
        timing, area = Timing(**data["timing"]), Area(**data["area"])
        shared = ("family", "speed", "lut_inputs", "wide_inputs", "carry_operands")
        common = {key: data[key] for key in shared}
        for name, part in data["parts"].items():
            parts[name] = Device(name=name, timing=timing, area=area, **common, **part)
    return parts


def device_names() -> tuple[str, ...]:
    """All parts, in table order."""
    return tuple(_parts())


def find_device(name: str) -> Device | None:
    """The part called ``name`` (as in ``--target fpga:NAME``), or None."""
    return _parts().get(name)

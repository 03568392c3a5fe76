"""Clocks to try for a loop whose rounds wait for each other, where none was asked for."""
from __future__ import annotations

from kera_hw.driver.design import DEFAULT_CLOCK_MHZ, SLOWEST_MHZ
from kera_hw.driver.options import TargetOptions
from kera_hw.schedule.fpga.device import Device

_STEP = 0.8
_STEPS = 7


def clocks_of(options: TargetOptions, device: Device) -> list[float]:
    """The clock asked for alone; else the default one and slower ones, in MHz."""
    if options.clock_mhz is not None:
        return [options.clock_mhz]
    first = DEFAULT_CLOCK_MHZ[device.family]
    clocks = (round(first * _STEP**k, 1) for k in range(_STEPS))
    return [clock for clock in clocks if clock >= SLOWEST_MHZ]

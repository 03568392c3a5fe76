"""What software has to know of a design behind AXI4-Lite: a C header and a driver in Python."""

from __future__ import annotations

from kera_hw.driver.registers.header import header_text
from kera_hw.driver.registers.python import driver_text

__all__ = ["driver_text", "header_text"]

"""Other ways to simulate a planned circuit: after synthesis, and in a second simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kera_hw.driver.rtl_target import RtlExecutor, traffics
from kera_hw.rtl.sim.axi_lite import SoftwareBench
from kera_hw.rtl.sim.bench import Bench
from kera_hw.rtl.sim.gates import synthesised
from kera_hw.rtl.sim.replay import replay
from kera_hw.rtl.sim.words import Words
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.rtl.toolchain.tools import require
from kera_hw.support import Diagnostic, KeraError

REPLAYED_ITEMS = 200
"""Items that the second simulator sees, which is a thousand times slower."""


class NetlistExecutor(RtlExecutor):
    """The circuit in the device's cells, as synthesis leaves it, in the same bench."""

    def __init__(self, rtl: RtlExecutor) -> None:
        """Raises KeraError for a tool that is missing or fails."""
        try:
            gates = synthesised(rtl.design.emitted, CHIPS[rtl.design.device.name])
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None
        self.design = rtl.design.with_verilog(gates.verilog)
        self._counts = gates.counts

    @property
    def plan(self) -> Mapping[str, Any]:
        return {**super().plan, "level": "netlist", "cells": self._counts.to_json()}


class IcarusExecutor(RtlExecutor):
    """The runs of another executor's circuit, and their beginnings again in Icarus, cycle by cycle."""

    def __init__(self, of: RtlExecutor) -> None:
        """Raises KeraError: K0950 where there is no Icarus, K0908 for ports that software drives."""
        if of.design.emitted.interface == "axi-lite":
            message = "Accesses by `--interface axi-lite` are not replayed by `--simulator icarus`."
            raise KeraError([Diagnostic("K0908", message)])
        try:
            require("iverilog")
        except ToolError as lack:
            raise KeraError([lack.diagnostic]) from None
        self.design, self._of = of.design, of

    @property
    def plan(self) -> Mapping[str, Any]:
        return {**self._of.plan, "simulator": "icarus"}

    def run_checked(
        self, bench: Bench | SoftwareBench, batch: int, latencies: NDArray[np.uint64] | None
    ) -> tuple[Words, ...]:
        """As for the other one. Raises KeraError, also (K0924) where the simulators do not agree."""
        outputs = super().run_checked(bench, batch, latencies)
        assert isinstance(bench, Bench)
        record = bench.work / "record.bin"
        for traffic in traffics(self.design.emitted, batch):
            bench.run(traffic, count=min(batch, REPLAYED_ITEMS), record=record)
            found = replay(self.design.emitted, bench.work, record)
            if found is not None:
                message = f"Verilator and Icarus Verilog differ on `{self.design.export.name}`: {found}."
                raise KeraError([Diagnostic("K0924", message)])
        return outputs

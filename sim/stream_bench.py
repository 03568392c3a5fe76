"""cocotb tests of a design with valid/ready ports: random bubbles and stalls, and a reset in mid-flight.

The environment variable KERA_VECTORS names a JSON file with the buses, the planned figures, the items and
the expected results (see ``sim.runner``); KERA_SEED seeds the traffic.
"""
from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

VECTORS: dict[str, Any] = json.loads(Path(os.environ["KERA_VECTORS"]).read_text())
PERIOD_NS = 10
SETTLE_NS = 2


class Neighbour:
    """Both neighbours of the design: offers items, takes results, watches the rules of the handshake."""

    def __init__(self, dut: Any, seed: int, valid_percent: int, ready_percent: int) -> None:
        self.dut = dut
        self.random = random.Random(seed)
        self.valid_percent, self.ready_percent = valid_percent, ready_percent
        self.sent = self.taken = self.cycle = 0
        self.offering = False
        self.held: list[int] | None = None
        self.accept_cycles: list[int] = []
        self.emit_cycles: list[int] = []

    async def reset(self) -> None:
        """Two cycles of reset; afterwards nothing may be left of what was in flight."""
        await FallingEdge(self.dut.clk)
        self.dut.rst.value = 1
        self.dut.in_valid.value = 1
        self.dut.out_ready.value = 1
        for _ in range(2):
            await Timer(SETTLE_NS, "ns")
            assert int(self.dut.in_ready.value) == 0, "in_ready is high while rst is"
            await FallingEdge(self.dut.clk)
        self.dut.rst.value = 0
        self.dut.in_valid.value = 0
        self.sent = self.taken = 0
        self.offering, self.held = False, None
        self.accept_cycles, self.emit_cycles = [], []

    def _chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def _results(self) -> list[int]:
        return [int(getattr(self.dut, bus).value) for bus in VECTORS["outputs"]]

    async def cycle_once(self) -> None:
        """One clock cycle: drive after the falling edge, look before the rising one."""
        items = VECTORS["items"]
        await FallingEdge(self.dut.clk)
        self.cycle += 1
        self.offering = self.sent < len(items) and (self.offering or self._chance(self.valid_percent))
        ready = self._chance(self.ready_percent)
        self.dut.in_valid.value = int(self.offering)
        for bus, width in VECTORS["inputs"].items():
            value = items[self.sent][bus] if self.offering else self.random.getrandbits(width)
            getattr(self.dut, bus).value = value
        self.dut.out_ready.value = int(not ready)
        await Timer(SETTLE_NS, "ns")
        offered_before = int(self.dut.out_valid.value)
        self.dut.out_ready.value = int(ready)
        await Timer(SETTLE_NS, "ns")
        offered = int(self.dut.out_valid.value)
        assert offered == offered_before, "out_valid depends on out_ready"
        if self.held is not None:
            assert offered, "an offer was withdrawn"
            assert self._results() == self.held, "data changed while valid and not ready"
        self.held = self._results() if offered and not ready else None
        if offered and ready:
            self._take()
        if self.offering and int(self.dut.in_ready.value):
            self.accept_cycles.append(self.cycle)
            self.sent += 1
            self.offering = False
        await RisingEdge(self.dut.clk)

    def _take(self) -> None:
        assert self.taken < self.sent, "a result came that no item had asked for"
        expected = VECTORS["expected"][self.taken]
        wanted = [expected[bus] for bus in VECTORS["outputs"]]
        assert self._results() == wanted, f"result {self.taken} is wrong"
        self.emit_cycles.append(self.cycle)
        self.taken += 1

    async def finish(self) -> None:
        """Run until every result is there, then a little longer: nothing more may come."""
        count = len(VECTORS["items"])
        limit = 400 * VECTORS["initiation_interval"] * (count + 10) + 400 * VECTORS["latency_cycles"]
        while self.taken < count:
            assert self.cycle < limit, f"only {self.taken} of {count} results came in {limit} cycles"
            await self.cycle_once()
        for _ in range(VECTORS["latency_cycles"] + 2):
            await self.cycle_once()


async def _start(dut: Any, valid_percent: int, ready_percent: int) -> Neighbour:
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    neighbour = Neighbour(dut, int(os.environ.get("KERA_SEED", "1")), valid_percent, ready_percent)
    await neighbour.reset()
    return neighbour


@cocotb.test()
async def runs_at_full_rate(dut: Any) -> None:
    """Nothing stalls: every item takes the planned latency, and items follow at the planned interval."""
    neighbour = await _start(dut, 100, 100)
    await neighbour.finish()
    waits = {out - into for into, out in zip(neighbour.accept_cycles, neighbour.emit_cycles)}
    assert waits == {VECTORS["latency_cycles"]}
    steps = {b - a for a, b in zip(neighbour.accept_cycles, neighbour.accept_cycles[1:])}
    assert steps <= {VECTORS["initiation_interval"]}


@cocotb.test()
async def survives_bubbles_and_stalls(dut: Any) -> None:
    """Random gaps on both sides: order, values and offers stay right."""
    neighbour = await _start(dut, 60, 50)
    await neighbour.finish()


@cocotb.test()
async def forgets_at_reset(dut: Any) -> None:
    """A reset in mid-flight drops what is inside and restores the initial state."""
    neighbour = await _start(dut, 80, 60)
    for _ in range(3 * VECTORS["latency_cycles"] + 17):
        await neighbour.cycle_once()
    await neighbour.reset()
    await neighbour.finish()

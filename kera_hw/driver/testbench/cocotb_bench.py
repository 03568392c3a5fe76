"""Self-checking cocotb tests of a kernel: they drive its ports as a neighbour would and compare every result.

    python NAME_cocotb.py             # with Icarus; SIM=verilator for Verilator

``NAME_vectors.json`` beside this file (or the file that KERA_VECTORS names) holds the buses, the planned
figures, the items, and the results that Kera's reference interpreter gives; KERA_SEED seeds the traffic.
"""

from __future__ import annotations

import json
import os
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

_HERE = Path(__file__).resolve()
_BESIDE = _HERE.with_name(_HERE.stem.removesuffix("_cocotb") + "_vectors.json")
VECTORS: dict[str, Any] = json.loads(Path(os.environ.get("KERA_VECTORS", _BESIDE)).read_text())
# "stream": valid and ready on both sides; "valid": valid alone; "none": an item in every cycle.
PROTOCOL: str = VECTORS["protocol"]
LATENCY: int = VECTORS["latency_cycles"]
INTERVAL: int = VECTORS["initiation_interval"]
# Of each item, where they are not the same for all, and the cycles to the next, unhindered.
LATENCIES: list[int] | None = VECTORS["latencies"]
GAPS: list[int] | None = VECTORS["gaps"]
# After a reset no item is taken for so many cycles: memories get their initial words.
RESET: int = VECTORS["reset_cycles"]
PERIOD_NS = 10
SETTLE_NS = 2


def latency_of(item: int) -> int:
    """The cycles that an item takes."""
    return LATENCY if LATENCIES is None else LATENCIES[item]


def interval_after(item: int) -> int:
    """The cycles from an item to the next."""
    return INTERVAL if GAPS is None else GAPS[item]


class Neighbour:
    """Both neighbours of the design: offers items, takes results, watches the rules of its protocol."""

    def __init__(self, dut: Any, seed: int, valid_percent: int, ready_percent: int) -> None:
        self.dut = dut
        self.random = random.Random(seed)
        self.valid_percent = 100 if PROTOCOL == "none" else valid_percent
        self.ready_percent = ready_percent if PROTOCOL == "stream" else 100
        self.cycle = self.started = 0
        self._forget()

    def _forget(self) -> None:
        self.sent = self.taken = 0
        self.offering = False
        self.held: list[int] | None = None
        self.accept_cycles: list[int] = []
        self.emit_cycles: list[int] = []

    async def reset(self) -> None:
        """Two cycles of reset; afterwards nothing may be left of what was in flight."""
        self._forget()
        if PROTOCOL == "none":
            return
        await FallingEdge(self.dut.clk)
        self.dut.rst.value = 1
        self.dut.in_valid.value = 1
        if PROTOCOL == "stream":
            self.dut.out_ready.value = 1
        for _ in range(2):
            await Timer(SETTLE_NS, "ns")
            if PROTOCOL == "stream":
                assert int(self.dut.in_ready.value) == 0, "in_ready is high while rst is"
            await FallingEdge(self.dut.clk)
        self.dut.rst.value = 0
        self.dut.in_valid.value = 0
        self.started = self.cycle + 1

    def _chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def _results(self) -> list[int]:
        return [int(getattr(self.dut, bus).value) for bus in VECTORS["outputs"]]

    def _due(self) -> bool:
        """Whether reset and last item are long enough ago; without ready, what comes earlier is ignored."""
        if self.cycle - self.started < RESET:
            return False
        return not self.accept_cycles or self.cycle - self.accept_cycles[-1] >= interval_after(
            self.sent - 1
        )

    async def cycle_once(self) -> None:
        """One clock cycle: drive after the falling edge, look before the rising one."""
        items = VECTORS["items"]
        await FallingEdge(self.dut.clk)
        self.cycle += 1
        self.offering = self.sent < len(items) and (self.offering or self._chance(self.valid_percent))
        if PROTOCOL != "none":
            self.dut.in_valid.value = int(self.offering)
        present = self.offering and (PROTOCOL == "stream" or self._due())
        for bus, width in VECTORS["inputs"].items():
            value = items[self.sent][bus] if present else self.random.getrandbits(width)
            getattr(self.dut, bus).value = value
        ready = self._chance(self.ready_percent)
        offered = await self._offered(ready)
        if self.held is not None:
            assert offered, "an offer was withdrawn"
            assert self._results() == self.held, "data changed while valid and not ready"
        self.held = self._results() if offered and not ready else None
        if offered and ready:
            self._take()
        accepts = int(self.dut.in_ready.value) if PROTOCOL == "stream" else self._due()
        if self.offering and accepts:
            self.accept_cycles.append(self.cycle)
            self.sent += 1
            self.offering = False
        await RisingEdge(self.dut.clk)

    async def _offered(self, ready: bool) -> bool:
        """Whether a result is offered in this cycle."""
        if PROTOCOL != "stream":
            await Timer(SETTLE_NS, "ns")
            if PROTOCOL == "valid":
                return bool(int(self.dut.out_valid.value))
            return self.taken < self.sent and self.cycle - self.accept_cycles[self.taken] == LATENCY
        self.dut.out_ready.value = int(not ready)
        await Timer(SETTLE_NS, "ns")
        before = int(self.dut.out_valid.value)
        self.dut.out_ready.value = int(ready)
        await Timer(SETTLE_NS, "ns")
        offered = int(self.dut.out_valid.value)
        assert offered == before, "out_valid depends on out_ready"
        return bool(offered)

    def _take(self) -> None:
        assert self.taken < self.sent, "a result came that no item had asked for"
        expected = VECTORS["expected"][self.taken]
        wanted = [expected[bus] for bus in VECTORS["outputs"]]
        assert self._results() == wanted, f"result {self.taken} is {self._results()} and not {wanted}"
        self.emit_cycles.append(self.cycle)
        self.taken += 1

    async def finish(self) -> None:
        """Run until every result is there, then a little longer: nothing more may come."""
        count = len(VECTORS["items"])
        limit = self.cycle + RESET + 400 * INTERVAL * (count + 10) + 400 * LATENCY
        while self.taken < count:
            assert self.cycle < limit, f"only {self.taken} of {count} results came in {limit} cycles"
            await self.cycle_once()
        for _ in range(LATENCY + 2):
            await self.cycle_once()


async def _start(dut: Any, valid_percent: int, ready_percent: int) -> Neighbour:
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    neighbour = Neighbour(dut, int(os.environ.get("KERA_SEED", "1")), valid_percent, ready_percent)
    await neighbour.reset()
    return neighbour


@cocotb.test()
async def keeps_the_planned_cycles(dut: Any) -> None:
    """Unhindered, every item takes the planned latency, at the planned interval."""
    neighbour = await _start(dut, 100, 100)
    await neighbour.finish()
    waits = [out - into for into, out in zip(neighbour.accept_cycles, neighbour.emit_cycles)]
    assert waits == [latency_of(item) for item in range(len(waits))]
    steps = [b - a for a, b in zip(neighbour.accept_cycles, neighbour.accept_cycles[1:])]
    assert steps == [interval_after(item) for item in range(len(steps))]


@cocotb.test()
async def survives_bubbles_and_stalls(dut: Any) -> None:
    """Random gaps on both sides, as far as there is a protocol: order, values and offers stay right."""
    neighbour = await _start(dut, 60, 50)
    await neighbour.finish()


@cocotb.test(skip=PROTOCOL == "none")
async def forgets_at_reset(dut: Any) -> None:
    """A reset in mid-flight drops what is inside and restores the initial state."""
    neighbour = await _start(dut, 80, 60)
    for _ in range(3 * LATENCY + 17):
        await neighbour.cycle_once()
    await neighbour.reset()
    await neighbour.finish()


def main() -> int:
    """Builds the kernel with a simulator and runs the tests above; 1 if any failed."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    work, simulator = _HERE.parent / "sim_build", os.environ.get("SIM", "icarus")
    runner = get_runner(simulator)
    options = ["-Wno-fatal"] if simulator == "verilator" else []
    runner.build(
        sources=[_HERE.with_name(f"{VECTORS['top']}.v")], hdl_toplevel=VECTORS["top"], build_dir=work,
        always=True, build_args=options, timescale=("1ns", "1ps"),
    )
    results = work / "results.xml"
    with suppress(SystemExit):  # so the runner says that tests failed; the file says which
        runner.test(
            hdl_toplevel=VECTORS["top"], test_module=_HERE.stem, build_dir=work, test_dir=_HERE.parent,
            results_xml=str(results), timescale=("1ns", "1ps"),
        )
    ran, failed = get_results(results)
    print(f"{'FAIL' if failed else 'PASS'}: {VECTORS['top']}, {ran} tests, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

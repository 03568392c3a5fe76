"""Simulate emitted Verilog with Verilator at millions of cycles a second, every cycle's protocol checked.

The bench drives random valid and ready patterns on every channel and, if asked, a reset in mid-flight; it
compares the handshake with what the plan predicts in each cycle, and sees that offered data are held, that
offers depend on no answer, that an item's last beat is marked, and that no result comes unasked. Where there
is no ready, it also offers what must be ignored, with other data. The results are returned to be compared.
"""
from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kera_hw.rtl.emit.naming import escaped
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim.axi_lite import SoftwareBench
from kera_hw.rtl.sim.beats import BundleWords
from kera_hw.rtl.sim.runs import FAULT_PORT, UNHINDERED, Fault, SimRun, Traffic
from kera_hw.rtl.sim.words import Words, words_of
from kera_hw.rtl.toolchain.process import run_tool, scratch
from kera_hw.rtl.toolchain.verilator import Optimisation, Trace, build

_MIN_WORDS = 3  # Verilator keeps vectors from 65 bits on as arrays of words, which the bench relies on
_HEADER_WORDS = 5
_LARGE_TEXT = 100_000  # characters of Verilog
_LARGE_WORK = 10_000_000_000  # characters times items
FAULTS = {
    1: "out_valid changed with out_ready",
    2: "the result was not held while valid and not ready",
    3: "a result came that no item had asked for",
    4: "in_ready was not as the plan predicts",
    5: "out_valid was not as the plan predicts",
    6: "results were still missing when the time was up",
    7: "the last beat of a result was not marked, or another one was",
    8: "after a reset a result was another one than before",
}
_PADDING = "what pads a beat was not zero"


def simulate(
    emitted: Emitted,
    items: Sequence[Words],
    traffic: Traffic = UNHINDERED,
    *,
    count: int | None = None,
    trace: Path | None = None,
    timeout_s: float = 600.0,
    latencies: NDArray[np.uint64] | None = None,
) -> SimRun:
    """Run ``items`` (one array [items, words] for each data input, in port order) through the design.

    ``count`` is how many items there are; a design without data inputs needs to be told.
    ``trace`` writes a waveform, VCD or FST by its suffix. ``latencies`` are those predicted of each item
    where the circuit inside gives each its own (``Core.own_pace``). Builds are cached by content.
    Raises ToolMissing, ToolFailed or ToolTimeout.
    """
    count = (len(items[0]) if items else 0) if count is None else count
    kind: Trace = "none" if trace is None else ("fst" if trace.suffix == ".fst" else "vcd")
    with scratch("sim") as work:
        bench = make_bench(emitted, work, items, count, kind, latencies=latencies)
        return bench.run(traffic, trace=trace, timeout_s=timeout_s)


def make_bench(
    emitted: Emitted, work: Path, items: Sequence[Words], count: int, trace: Trace = "none",
    *, latencies: NDArray[np.uint64] | None = None, faulty: bool = False,
) -> Bench | SoftwareBench:  # fmt: skip
    """The bench for the interface. Raises ToolMissing, ToolFailed or ToolTimeout where it cannot be built."""
    if emitted.interface == "axi-lite":
        return SoftwareBench(emitted, work, items, count, trace, faulty=faulty)
    return Bench(emitted, work, items, count, trace, latencies=latencies, faulty=faulty)


class Bench:
    """A design ready to be simulated on some items, as often as one likes, in the directory ``work``.

    With ``faulty`` its Verilog has an input FAULT_PORT of 32 bits, which says which fault is in effect.
    Raises ToolMissing, ToolFailed or ToolTimeout where it cannot be built.
    """

    def __init__(
        self, emitted: Emitted, work: Path, items: Sequence[Words], count: int, trace: Trace = "none",
        *, latencies: NDArray[np.uint64] | None = None, faulty: bool = False,
    ) -> None:  # fmt: skip
        assert emitted.own_pace == (latencies is not None), "latencies are given where they differ"
        self._emitted, self.work, self._count = emitted, work, count
        self._program = build_bench(emitted, work, trace, _optimisation(emitted, count), faulty=faulty)
        self._rows, self._latencies = rows_of(emitted, items, count), latencies
        self._written: int | None = None

    def run(
        self, traffic: Traffic = UNHINDERED, *, count: int | None = None, trace: Path | None = None,
        fault: int | None = None, record: Path | None = None, timeout_s: float = 600.0,
    ) -> SimRun:  # fmt: skip
        """What comes of the items, or the first ``count``, at that pace.

        ``record`` gets every port of the wrapper in every cycle. Raises ToolFailed or ToolTimeout.
        """
        count = self._count if count is None else count
        self._write(count)
        limit = _cycle_limit(self._emitted, count, traffic)
        reset = -1 if traffic.reset_at_cycle is None else traffic.reset_at_cycle
        chances = traffic.valid_percent, traffic.ready_percent
        given = (count, traffic.seed, *chances, int(traffic.in_turn), reset, traffic.resets, limit)
        argv = [
            str(self._program), "input.bin", "output.bin", *map(str, given),
            *([str(trace.resolve())] if trace else []), *([f"+fault={fault}"] if fault is not None else []),
            *([f"+record={record.resolve()}"] if record is not None else []),
        ]
        run_tool("simulation", argv, cwd=self.work, timeout_s=timeout_s)
        return _results(self._emitted, (self.work / "output.bin").read_bytes(), count)

    def _write(self, count: int) -> None:
        """The first ``count`` items, and behind them their latencies where those differ."""
        if self._written == count:
            return
        own = b"" if self._latencies is None else np.asarray(self._latencies[:count], dtype="<u8").tobytes()
        (self.work / "input.bin").write_bytes(self._rows[:count].tobytes() + own)
        self._written = count


def _cycle_limit(emitted: Emitted, items: int, traffic: Traffic) -> int:
    """Cycles after which results count as missing: far more than the slowest traffic takes."""
    slow = 100 / max(1, min(traffic.valid_percent, traffic.ready_percent))
    begin = (traffic.reset_at_cycle or 0) + emitted.reset_cycles
    start = 2 * (traffic.resets + 1) * begin + 100
    pace, sides = emitted.pace, 1
    if traffic.in_turn:
        sides = len(emitted.port_plan.channels)
    item = sides * max(pace.initiation_interval, pace.item_cycles - pace.latency_cycles)
    return int(start + 40 * slow * item * (items + 10) + 40 * slow * pace.item_cycles)


def sides_of(emitted: Emitted) -> tuple[list[BundleWords], list[BundleWords]]:
    """How the words of inputs and outputs travel."""
    bundles = emitted.port_plan.bundles
    inputs = [BundleWords(bundle) for bundle in bundles if bundle.channel.direction == "input"]
    return inputs, [BundleWords(bundle) for bundle in bundles if bundle.channel.direction == "output"]


def rows_of(emitted: Emitted, items: Sequence[Words], count: int) -> Words:
    """The items as the bench reads them: the beats of all channels one behind the other."""
    ports = emitted.data_inputs
    if len(items) != len(ports):
        raise ValueError(f"the design has {len(ports)} input buses, {len(items)} were given")
    words = {port.name: np.asarray(item, dtype="<u4") for port, item in zip(ports, items)}
    inputs, _ = sides_of(emitted)
    return np.ascontiguousarray(np.concatenate([side.cut(words, count) for side in inputs], axis=1), "<u4")


def _optimisation(emitted: Emitted, items: int) -> Optimisation:
    """Large designs take g++ longer to optimise than short runs take to simulate."""
    size = len(emitted.verilog)
    return "-O0" if size > _LARGE_TEXT and size * items < _LARGE_WORK else "-O1"


def build_bench(
    emitted: Emitted, work: Path, trace: Trace = "none", optimisation: Optimisation = "-O1",
    *, faulty: bool = False,
) -> Path:  # fmt: skip
    """The program that simulates a design. Raises ToolMissing, ToolFailed or ToolTimeout."""
    design, wrapper, header = work / "design.v", work / "kera_bench_top.v", work / "kera_bench.h"
    design.write_text(emitted.verilog, encoding="utf-8")
    wrapper.write_text(_wrapper(emitted, faulty), encoding="utf-8")
    inputs, outputs = sides_of(emitted)
    plan, core = emitted.port_plan, emitted.core
    values: dict[str, int | str] = {
        "IN_CHANNELS": _table(inputs), "OUT_CHANNELS": _table(outputs), "OUT_BUS": bus_words(outputs),
        "IN_ROW": sum(side.row_words for side in inputs), "OUT_ROW": sum(side.row_words for side in outputs),
        "STROBES": int(emitted.protocol != "none"), "READY": int(emitted.protocol == "stream"),
        "PREDICTED": int(core is not None), "SETTLE": emitted.latency_cycles + 4,
        "PATIENCE": 8 * (emitted.pace.item_cycles + emitted.initiation_interval),
        "LATENCY": 1 if core is None else core.latency_cycles,
        "INTERVAL": 1 if core is None else core.initiation_interval,
        "OWN_PACE": int(emitted.own_pace), "UNITS": 1 if core is None else core.units,
        "COLLECTS_WHOLE": int(plan.collects_whole), "REGISTERED_READY": int(plan.registered_ready),
        "RESET_CYCLES": emitted.reset_cycles,
    }
    header.write_text("".join(f"#define {name} {value}\n" for name, value in values.items()))
    source = resources.files("kera_hw.rtl.sim").joinpath("bench.cpp").read_text("utf-8")
    # Registers start with arbitrary contents, as in a device: nothing may rely on zeros.
    options = ["--x-initial", "unique", "--x-assign", "unique"]
    return build(
        source, [design, wrapper], "kera_bench_top", work / "build",
        headers=[header], options=options, optimisation=optimisation, trace=trace,
    )


def bus_words(sides: Sequence[BundleWords]) -> int:
    """Words of the bus with the data of all channels of a side."""
    return max(_MIN_WORDS, sum(side.beat_words for side in sides))


def control_words(sides: Sequence[BundleWords]) -> int:
    """Words of a bus with a bit a channel."""
    return max(_MIN_WORDS, words_of(len(sides)))


def _table(sides: Sequence[BundleWords]) -> str:
    """The channels as C++ has them."""
    rows: list[str] = []
    row = bus = 0
    for side in sides:
        last = int(side.bundle.last is not None)
        rows.append(f"{{{side.bundle.channel.beats}, {side.beat_words}, {row}, {bus}, {last}}}")
        row, bus = row + side.row_words, bus + side.beat_words
    return f"{{{', '.join(rows)}}}"


def _wrapper(emitted: Emitted, faulty: bool) -> str:
    """A top level with fixed port names: the data of all channels on one bus a side, word by word.

    Bit k of a control bus is channel k's; those are wide, too, so that the bench sees arrays of words.
    """
    plan = emitted.port_plan
    ports, connections = ["input wire clk"], [f".{plan.clock}(clk)"]
    if plan.reset is not None:
        ports.append("input wire rst")
        connections.append(f".{plan.reset.name}({'~' if plan.reset.active_low else ''}rst)")
    assigns: list[str] = []
    inputs, outputs = sides_of(emitted)
    for side, bundles, way, back in (("in", inputs, "input", "output"), ("out", outputs, "output", "input")):
        width = 32 * bus_words(bundles)
        control = 32 * control_words(bundles)
        ports.append(f"{way} wire [{width - 1}:0] data_{side}")
        for what, direction in (("valid", way), ("last", way), ("ready", back)):
            ports.append(f"{direction} wire [{control - 1}:0] {side}_{what}")
        low = 0
        for k, bundle in enumerate(item.bundle for item in bundles):
            signals = {"valid": bundle.valid, "last": bundle.last, "ready": bundle.ready}
            for what, name in signals.items():
                if name is not None:
                    connections.append(f".{name}({side}_{what}[{k}])")
            for port in bundle.payload:
                connections.append(f".{escaped(port.name)}(data_{side}[{low + port.width - 1}:{low}])")
                top = low + 32 * words_of(port.width)
                if way == "output" and top > low + port.width:
                    assigns.append(f"  assign data_out[{top - 1}:{low + port.width}] = 0;")
                low = top
        if way == "output" and width > low:
            assigns.append(f"  assign data_out[{width - 1}:{low}] = 0;")
    lines = [f"module kera_bench_top({', '.join(ports)});"]
    if faulty:
        lines.append("  integer fault = 0;")
        lines.append('  initial if (!$value$plusargs("fault=%d", fault)) fault = 0;')
        connections.append(f".{FAULT_PORT}(fault)")
    lines.append(f"  {escaped(emitted.name)} dut({', '.join(connections)});")
    return "\n".join([*lines, *assigns, "endmodule", ""])


def result_words(emitted: Emitted) -> int:
    """Words of a row of results."""
    return sum(side.row_words for side in sides_of(emitted)[1])


def split_rows(emitted: Emitted, rows: Words) -> tuple[tuple[Words, ...], str | None]:
    """Rows of results as the words of each output bus, and what is wrong with them, if anything is."""
    outputs: dict[str, Words] = {}
    low, padded = 0, True
    for side in sides_of(emitted)[1]:
        joined, clean = side.join(rows[:, low : low + side.row_words])
        outputs |= joined
        padded, low = padded and clean, low + side.row_words
    return tuple(outputs[port.name] for port in emitted.data_outputs), None if padded else _PADDING


def _results(emitted: Emitted, data: bytes, count: int) -> SimRun:
    header = np.frombuffer(data, dtype="<u8", count=_HEADER_WORDS)
    words = result_words(emitted)
    offset = 8 * _HEADER_WORDS
    rows = np.frombuffer(data, dtype="<u4", count=count * words, offset=offset).reshape(count, words)
    offset += 4 * count * words
    accepts, emits, finishes = np.frombuffer(data, "<u8", 3 * count, offset).reshape(3, count)
    results, wrong = split_rows(emitted, rows)
    code = int(header[0])
    fault = Fault(FAULTS[code], int(header[1]), int(header[2])) if code else None
    if fault is None and wrong is not None:
        fault = Fault(wrong, int(header[3]), count)
    return SimRun(results, accepts, emits, finishes, int(header[3]), fault)

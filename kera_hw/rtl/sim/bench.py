"""Simulate emitted Verilog with Verilator at millions of cycles a second, every cycle's protocol checked.

The bench drives random valid and ready patterns and, if asked, a reset in mid-flight; it compares
``in_ready`` and ``out_valid`` with what the plan predicts in each cycle, and sees that offered data are held,
that offers depend on no answer, and that no result comes unasked. Where there is no ready, it also offers
what must be ignored, with other data. The results are returned to be compared.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kera_hw.rtl.emit.naming import escaped
from kera_hw.rtl.emit.ports import Port
from kera_hw.rtl.emit.verilog import Emitted
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
}


@dataclass(frozen=True, slots=True)
class Traffic:
    """How the neighbours behave: chances of valid and ready (percent), seed, cycle of a reset in mid-flight.

    After that reset the items are driven again from the first; what was in flight must be gone.
    """

    valid_percent: int = 100
    ready_percent: int = 100
    seed: int = 1
    reset_at_cycle: int | None = None

    @property
    def unhindered(self) -> bool:
        """Whether nothing ever stalls, so that every item takes exactly the planned latency."""
        return self.valid_percent >= 100 and self.ready_percent >= 100


@dataclass(frozen=True, slots=True)
class Fault:
    """What the bench saw go wrong, the cycle, and the number of results that had come until then."""

    message: str
    cycle: int
    item: int


@dataclass(frozen=True, slots=True)
class SimRun:
    """Results per output bus as [items, words]; when each item was accepted and its result taken (cycles)."""

    outputs: tuple[Words, ...]
    accept_cycles: NDArray[np.uint64]
    emit_cycles: NDArray[np.uint64]
    cycles: int
    fault: Fault | None


def simulate(
    emitted: Emitted,
    items: Sequence[Words],
    traffic: Traffic = Traffic(),
    *,
    count: int | None = None,
    trace: Path | None = None,
    timeout_s: float = 600.0,
) -> SimRun:
    """Run ``items`` (one array [items, words] for each data input, in port order) through the design.

    ``count`` is how many items there are; a design without data inputs needs to be told.
    ``trace`` writes a waveform, VCD or FST by its suffix. Builds are cached by content.
    Raises ToolMissing, ToolFailed or ToolTimeout.
    """
    count = (len(items[0]) if items else 0) if count is None else count
    kind: Trace = "none" if trace is None else ("fst" if trace.suffix == ".fst" else "vcd")
    with scratch("sim") as work:
        program = build_bench(emitted, work, kind, _optimisation(emitted, count))
        rows = rows_of(items, emitted.data_inputs, count)
        (work / "input.bin").write_bytes(rows.tobytes())
        limit = _cycle_limit(emitted, count, traffic)
        reset = -1 if traffic.reset_at_cycle is None else traffic.reset_at_cycle
        argv = [
            str(program), "input.bin", "output.bin",
            *map(str, (count, traffic.seed, traffic.valid_percent, traffic.ready_percent, reset, limit)),
            *([str(trace.resolve())] if trace else []),
        ]
        run_tool("simulation", argv, cwd=work, timeout_s=timeout_s)
        return _results(emitted, (work / "output.bin").read_bytes(), count)


def _cycle_limit(emitted: Emitted, items: int, traffic: Traffic) -> int:
    """Cycles after which results count as missing: far more than the slowest traffic takes."""
    slow = 100 / max(1, min(traffic.valid_percent, traffic.ready_percent))
    start = (traffic.reset_at_cycle or 0) + 100
    initiation_interval = emitted.initiation_interval
    return int(start + 40 * slow * initiation_interval * (items + 10) + 40 * slow * emitted.latency_cycles)


def rows_of(items: Sequence[Words], ports: Sequence[Port], count: int) -> Words:
    """The items as the bench reads them: the words of all buses side by side."""
    if len(items) != len(ports):
        raise ValueError(f"the design has {len(ports)} input buses, {len(items)} were given")
    nothing = np.zeros((count, 0), "<u4")
    rows = np.concatenate([nothing, *(np.asarray(item, dtype="<u4") for item in items)], axis=1)
    missing = _MIN_WORDS - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing > 0 else np.ascontiguousarray(rows)


def bus_words(ports: Sequence[Port]) -> int:
    """Words of a row that holds all these buses."""
    return max(_MIN_WORDS, sum(words_of(port.width) for port in ports))


def _optimisation(emitted: Emitted, items: int) -> Optimisation:
    """Large designs take g++ longer to optimise than short runs take to simulate."""
    size = len(emitted.verilog)
    return "-O0" if size > _LARGE_TEXT and size * items < _LARGE_WORK else "-O1"


def build_bench(
    emitted: Emitted, work: Path, trace: Trace = "none", optimisation: Optimisation = "-O1"
) -> Path:
    """The program that simulates a design. Raises ToolMissing, ToolFailed or ToolTimeout."""
    design, wrapper, header = work / "design.v", work / "kera_bench_top.v", work / "kera_bench.h"
    design.write_text(emitted.verilog, encoding="utf-8")
    wrapper.write_text(_wrapper(emitted), encoding="utf-8")
    values = {
        "IN_WORDS": bus_words(emitted.data_inputs), "OUT_WORDS": bus_words(emitted.data_outputs),
        "STROBES": int(emitted.protocol != "none"), "READY": int(emitted.protocol == "stream"),
        "LATENCY": emitted.latency_cycles, "INTERVAL": emitted.initiation_interval,
    }
    header.write_text("".join(f"#define {name} {value}\n" for name, value in values.items()))
    source = resources.files("kera_hw.rtl.sim").joinpath("bench.cpp").read_text("utf-8")
    # Registers start with arbitrary contents, as in a device: nothing may rely on zeros.
    options = ["--x-initial", "unique", "--x-assign", "unique"]
    return build(
        source, [design, wrapper], "kera_bench_top", work / "build",
        headers=[header], options=options, optimisation=optimisation, trace=trace,
    )


def _wrapper(emitted: Emitted) -> str:
    """A top level with fixed port names: all data inputs on one bus, all outputs on another, word by word."""
    ports, connections = ["input wire clk"], [".clk(clk)"]
    for port in emitted.control:
        ports.append(f"{port.direction} wire {port.name}")
        connections.append(f".{port.name}({port.name})")
    ports.append(f"input wire [{32 * bus_words(emitted.data_inputs) - 1}:0] data_in")
    ports.append(f"output wire [{32 * bus_words(emitted.data_outputs) - 1}:0] data_out")
    low = 0
    for port in emitted.data_inputs:
        connections.append(f".{escaped(port.name)}(data_in[{low + port.width - 1}:{low}])")
        low += 32 * words_of(port.width)
    wires, low = list[str](), 0
    parts: list[str] = []
    for index, port in enumerate(emitted.data_outputs):
        wires.append(f"  wire [{port.width - 1}:0] out{index};")
        connections.append(f".{escaped(port.name)}(out{index})")
        padding = 32 * words_of(port.width) - port.width
        parts += [f"out{index}", *([f"{padding}'d0"] if padding else [])]
        low += 32 * words_of(port.width)
    if 32 * bus_words(emitted.data_outputs) > low:
        parts.append(f"{32 * bus_words(emitted.data_outputs) - low}'d0")
    lines = [f"module kera_bench_top({', '.join(ports)});", *wires]
    lines.append(f"  {escaped(emitted.name)} dut({', '.join(connections)});")
    lines.append("  assign data_out = {" + ", ".join(reversed(parts)) + "};")
    return "\n".join([*lines, "endmodule", ""])


def split_row(emitted: Emitted, rows: Words) -> tuple[Words, ...]:
    """Rows of results as the words of each output bus."""
    outputs: list[Words] = []
    low = 0
    for port in emitted.data_outputs:
        outputs.append(rows[:, low : low + words_of(port.width)])
        low += words_of(port.width)
    return tuple(outputs)


def _results(emitted: Emitted, data: bytes, count: int) -> SimRun:
    header = np.frombuffer(data, dtype="<u8", count=_HEADER_WORDS)
    words = bus_words(emitted.data_outputs)
    offset = 8 * _HEADER_WORDS
    rows = np.frombuffer(data, dtype="<u4", count=count * words, offset=offset).reshape(count, words)
    offset += 4 * count * words
    accepts = np.frombuffer(data, dtype="<u8", count=count, offset=offset)
    emits = np.frombuffer(data, dtype="<u8", count=count, offset=offset + 8 * count)
    code = int(header[0])
    fault = Fault(FAULTS[code], int(header[1]), int(header[2])) if code else None
    return SimRun(split_row(emitted, rows), accepts, emits, int(header[3]), fault)

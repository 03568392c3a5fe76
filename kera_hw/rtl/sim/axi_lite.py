"""Simulates a design through its AXI4-Lite port, as software would run it: write, start, wait, read."""
from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from kera_hw.rtl.emit.naming import escaped
from kera_hw.rtl.emit.register_map import (
    CONTROL,
    GLOBAL_INTERRUPT,
    INTERRUPT_ENABLE,
    INTERRUPT_STATUS,
    START_BIT,
    WORD_BYTES,
    Entry,
    RegisterMap,
)
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim.beats import bits_of, words_of_bits
from kera_hw.rtl.sim.runs import FAULT_PORT, UNHINDERED, Fault, SimRun, Traffic
from kera_hw.rtl.sim.words import WORD_BITS, Words, words_of
from kera_hw.rtl.toolchain.process import run_tool
from kera_hw.rtl.toolchain.verilator import Trace, build

WRITE, READ, AWAIT, DELAY = 0, 1, 2, 3
_ALL = (1 << WORD_BYTES) - 1
_HEADER = 3
_FAULTS = {
    1: "an answer on the AXI4-Lite port was not held while valid and not ready",
    2: "an answer on the AXI4-Lite port came that nobody had asked for",
    3: "results were still missing when the time was up",
    4: "the AXI4-Lite port was ready in reset",
}
_REFUSED = "an access on the AXI4-Lite port was answered with an error"
_EXTENSION = "the bits above a value were not its extension"
Access = tuple[int, int, int, int]
"""Kind, address, data, strobes."""


class AccessBench:
    """A design ready for lists of accesses, as often as one likes, in the directory ``work``.

    With ``faulty`` its Verilog has an input FAULT_PORT of 32 bits, which says which fault is in effect.
    Raises ToolMissing, ToolFailed or ToolTimeout where it cannot be built.
    """

    def __init__(self, emitted: Emitted, work: Path, trace: Trace = "none", *, faulty: bool = False) -> None:
        self._emitted, self._work = emitted, work
        design, wrapper = work / "design.v", work / "kera_bench_top.v"
        design.write_text(emitted.verilog, encoding="utf-8")
        wrapper.write_text(_wrapper(emitted, faulty), encoding="utf-8")
        source = resources.files("kera_hw.rtl.sim").joinpath("axi_lite.cpp").read_text("utf-8")
        options = ["--x-initial", "unique", "--x-assign", "unique"]
        self._program = build(
            source, [design, wrapper], "kera_bench_top", work / "build", options=options, trace=trace
        )

    def run(
        self, accesses: Words, traffic: Traffic = UNHINDERED, *, trace: Path | None = None,
        fault: int | None = None, timeout_s: float = 600.0,
    ) -> tuple[Words, Fault | None, int]:  # fmt: skip
        """Runs ``accesses`` (rows of an Access) one after the other.

        For each: what was read, or the cycle of a write or the interrupt, and the response; then what went
        wrong, and the cycles. Raises ToolFailed or ToolTimeout.
        """
        count = len(accesses)
        (self._work / "input.bin").write_bytes(np.ascontiguousarray(accesses, "<u4").tobytes())
        slow = 100 / max(1, min(traffic.valid_percent, traffic.ready_percent))
        reset = -1 if traffic.reset_at_cycle is None else traffic.reset_at_cycle
        cycles = 1000 + max(0, reset) + 40 * slow * count * (1 + self._emitted.latency_cycles)
        given = (count, traffic.seed, traffic.valid_percent, traffic.ready_percent, reset, int(cycles))
        argv = [
            str(self._program), "input.bin", "output.bin", *map(str, given),
            *([str(trace.resolve())] if trace else []), *([f"+fault={fault}"] if fault is not None else []),
        ]
        run_tool("simulation", argv, cwd=self._work, timeout_s=timeout_s)
        data = (self._work / "output.bin").read_bytes()
        number, cycle, access = np.frombuffer(data, "<u8", _HEADER).tolist()
        found = np.frombuffer(data, "<u4", 2 * count, 8 * _HEADER).reshape(count, 2)
        return found, Fault(_FAULTS[number], cycle, access) if number else None, cycle


def _wrapper(emitted: Emitted, faulty: bool) -> str:
    """The design under a name that the bench knows."""
    ports: list[str] = []
    connections: list[str] = []
    for port in emitted.ports:
        ports.append(f"{port.direction} wire [{port.width - 1}:0] {port.name}")
        connections.append(f".{port.name}({port.name})")
    lines = [f"module kera_bench_top({', '.join(ports)});"]
    if faulty:
        lines += ["  integer fault = 0;", '  initial if (!$value$plusargs("fault=%d", fault)) fault = 0;']
        connections.append(f".{FAULT_PORT}(fault)")
    return "\n".join([*lines, f"  {escaped(emitted.name)} dut({', '.join(connections)});", "endmodule", ""])


class SoftwareBench:
    """A design and items for it, which are run one by one; see ``kera_hw.rtl.sim.bench.Bench``.

    The cycles of a run are those of the write that starts an item and of the interrupt.
    """

    def __init__(
        self, emitted: Emitted, work: Path, items: Sequence[Words], count: int, trace: Trace = "none",
        *, faulty: bool = False,
    ) -> None:  # fmt: skip
        self._emitted, self._count = emitted, count
        self._bench = AccessBench(emitted, work, trace, faulty=faulty)
        self._entries = RegisterMap.of(emitted.port_plan).entries
        given = {port.name: np.asarray(item, "<u4") for port, item in zip(emitted.data_inputs, items)}
        places = [(entry, word) for entry in self._entries for word in range(entry.words)]
        self._writes = [place for place in places if place[0].is_parameter]
        self._reads = [place for place in places if not place[0].is_parameter]
        row: list[Access] = [
            (WRITE, entry.offset + WORD_BYTES * word, 0, _ALL) for entry, word in self._writes
        ]
        row += [(WRITE, CONTROL, 1 << START_BIT, 1), (AWAIT, 0, 0, 0), (WRITE, INTERRUPT_STATUS, 1, _ALL)]
        row += [(READ, entry.offset + WORD_BYTES * word, 0, 0) for entry, word in self._reads]
        self._rows = np.tile(np.array(row, "<u4"), (count, 1, 1))
        for entry in self._entries:
            columns = [k for k, (owner, _) in enumerate(self._writes) if owner is entry]
            if columns:
                self._rows[:, columns, 2] = memory_words(entry, given[entry.value.bus])

    def run(
        self, traffic: Traffic = UNHINDERED, *, count: int | None = None, trace: Path | None = None,
        fault: int | None = None, timeout_s: float = 600.0,
    ) -> SimRun:  # fmt: skip
        """What comes of the items, or the first ``count``. Raises ToolFailed or ToolTimeout."""
        count = self._count if count is None else count
        setup = np.array([
            (DELAY, 0, self._emitted.reset_cycles, 0), (WRITE, GLOBAL_INTERRUPT, 1, _ALL),
            (WRITE, INTERRUPT_ENABLE, 1, _ALL),
        ], "<u4")
        size = self._rows.shape[1]
        accesses = np.concatenate([setup, self._rows[:count].reshape(count * size, 4)])
        found, seen, cycles = self._bench.run(
            accesses, traffic, trace=trace, fault=fault, timeout_s=timeout_s
        )
        refused = np.flatnonzero(found[:, 1] * (accesses[:, 0] <= READ))
        if seen is None and len(refused):
            seen = Fault(_REFUSED, cycles, int(refused[0]))
        answers = found[len(setup) :, 0].reshape(count, size)
        outputs: dict[str, Words] = {}
        for entry in (entry for entry in self._entries if not entry.is_parameter):
            first = size - len(self._reads)
            columns = [first + k for k, (owner, _) in enumerate(self._reads) if owner is entry]
            words = answers[:, columns]
            outputs[entry.value.bus] = value_words(entry, words)
            if seen is None and not np.array_equal(memory_words(entry, outputs[entry.value.bus]), words):
                seen = Fault(_EXTENSION, cycles, 0)
        starts, ends = (answers[:, len(self._writes) + k].astype(np.uint64) for k in (0, 1))
        results = tuple(outputs[port.name] for port in self._emitted.data_outputs)
        return SimRun(results, starts, ends, ends, cycles, seen)


def memory_words(entry: Entry, words: Words) -> Words:
    """The words that software sees of values given as words of their bits."""
    bits = bits_of(words, entry.value.width)
    seen = np.zeros((len(bits), entry.words, WORD_BITS), np.uint8)
    for number in range(entry.words):
        for piece in entry.pieces(number):
            end = piece.word_low + piece.width
            seen[:, number, piece.word_low : end] = bits[:, piece.value_low : piece.value_low + piece.width]
            if piece.signed:
                seen[:, number, end : piece.extended] = bits[:, piece.value_low + piece.width - 1, None]
    return words_of_bits(seen.reshape(len(bits), entry.words * WORD_BITS), entry.words)


def value_words(entry: Entry, words: Words) -> Words:
    """The inverse; what lies above a value is left out."""
    seen = bits_of(words, entry.words * WORD_BITS)
    bits = np.zeros((len(seen), entry.value.width), np.uint8)
    for number in range(entry.words):
        for piece in entry.pieces(number):
            low = number * WORD_BITS + piece.word_low
            bits[:, piece.value_low : piece.value_low + piece.width] = seen[:, low : low + piece.width]
    return words_of_bits(bits, words_of(entry.value.width))

"""A recorded simulation once more in Icarus Verilog, cycle by cycle: the same ports in, the same ports out.

The bench for Verilator decides what happens in each cycle, with its random stalls and resets, and records
what it drives and sees. Icarus is given the former; what it answers has to be the latter, where that means
something: data while they are valid, and all of it known, where Verilator has no unknown values.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim.bench import bus_words, control_words, sides_of
from kera_hw.rtl.sim.words import words_of
from kera_hw.rtl.toolchain.icarus import run_icarus

_BITS = NDArray[np.uint8]
_BENCH = """\
module kera_replay;
  reg [{stimulus}:0] given [0:{last}];
  reg [{stimulus}:0] now = 0;
  reg clk = 1'b0;
  wire [{response}:0] answer;
  integer k, file;
  kera_bench_top top(.clk(clk){connections});
  initial begin
    $readmemh("given.hex", given);
    file = $fopen("answers.txt", "w");
    for (k = 0; k <= {last}; k = k + 1) begin
      now = given[k];
      #5 $fdisplay(file, "%b", answer);
      clk = 1'b1;
      #5 clk = 1'b0;
    end
    $fclose(file);
    $finish;
  end
endmodule
"""


@dataclass(frozen=True, slots=True)
class _Field:
    """A port of the bench's wrapper: its words in a record, and whether the design drives it."""

    name: str
    words: int
    driven: bool


def replay(emitted: Emitted, work: Path, record: Path) -> str | None:
    """How Icarus departs from a record of the bench in ``work``, in words; None where it does not.

    Raises ToolMissing, ToolFailed or ToolTimeout.
    """
    fields = _fields(emitted)
    words = np.fromfile(record, "<u4").reshape(-1, sum(field.words for field in fields))
    given = sum(field.words for field in fields if not field.driven)
    stimulus, wanted = words[:, :given], words[:, given:]
    lines = (row[::-1].astype(">u4").tobytes().hex() for row in stimulus)
    (work / "given.hex").write_text("\n".join(lines) + "\n", encoding="ascii")
    bench = work / "kera_replay.sv"
    bench.write_text(_bench(fields, len(words)), encoding="utf-8")
    run_icarus([work / "design.v", work / "kera_bench_top.v", bench], "kera_replay", work)
    lines = (work / "answers.txt").read_text("ascii").split()
    if len(lines) != len(words):
        return f"Icarus ended after {len(lines)} of {len(words)} cycles"
    found = np.frombuffer("".join(lines).encode(), np.uint8).reshape(len(words), -1)[:, ::-1]
    return _difference(emitted, fields, wanted, found)


def _fields(emitted: Emitted) -> list[_Field]:
    """The wrapper's ports in the order in which the bench records them, those driven by it first."""
    inputs, outputs = sides_of(emitted)
    given = [] if emitted.port_plan.reset is None else [_Field("rst", 1, False)]
    given += [_Field(f"in_{what}", control_words(inputs), False) for what in ("valid", "last")]
    given += [_Field("data_in", bus_words(inputs), False), _Field("out_ready", control_words(outputs), False)]
    answers = [_Field(f"out_{what}", control_words(outputs), True) for what in ("valid", "last")]
    return [
        *given, *answers, _Field("in_ready", control_words(inputs), True),
        _Field("data_out", bus_words(outputs), True),
    ]  # fmt: skip


def _bench(fields: list[_Field], cycles: int) -> str:
    connections: list[str] = []
    lows = {False: 0, True: 0}
    for field in fields:
        low = lows[field.driven]
        lows[field.driven] = low + 32 * field.words
        width = 1 if field.name == "rst" else 32 * field.words
        bus = "answer" if field.driven else "now"
        connections.append(f", .{field.name}({bus}[{low + width - 1}:{low}])")
    return _BENCH.format(
        stimulus=lows[False] - 1, response=lows[True] - 1, last=cycles - 1, connections="".join(connections)
    )


def _difference(
    emitted: Emitted, fields: list[_Field], wanted: NDArray[np.uint32], found: _BITS
) -> str | None:
    """The first cycle and port in which the answers are others, or unknown."""
    octets = np.ascontiguousarray(wanted).view(np.uint8)
    expected = np.unpackbits(octets, axis=1, bitorder="little") + ord("0")
    wrong = expected != found
    lows: dict[str, int] = {}
    low = 0
    for field in (field for field in fields if field.driven):
        lows[field.name], low = low, low + 32 * field.words
    inputs, outputs = sides_of(emitted)
    # Before the first clock nothing has been reset; without valid bits the pipeline has to fill.
    settled = np.arange(len(wrong)) >= (1 if emitted.protocol != "none" else emitted.latency_cycles)
    checks: list[tuple[str, NDArray[np.bool_]]] = []
    for k, side in enumerate(inputs):
        if side.bundle.ready is not None:
            checks.append((side.bundle.ready, wrong[:, lows["in_ready"] + k] & settled))
    data = lows["data_out"]
    for k, side in enumerate(outputs):
        shown = settled
        if side.bundle.valid is not None:
            checks.append((side.bundle.valid, wrong[:, lows["out_valid"] + k] & settled))
            shown = settled & (expected[:, lows["out_valid"] + k] == ord("1"))
        if side.bundle.last is not None:
            checks.append((side.bundle.last, wrong[:, lows["out_last"] + k] & shown))
        for port in side.bundle.payload:
            checks.append((port.name, wrong[:, data : data + port.width].any(axis=1) & shown))
            data += 32 * words_of(port.width)
    odd = [(int(np.flatnonzero(row)[0]), name) for name, row in checks if row.any()]
    if not odd:
        return None
    cycle, name = min(odd)
    return f"{name} is another in cycle {cycle}"

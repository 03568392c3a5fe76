"""Writes docs/reference/formal.md: how proofs are made, and the table of those on record.

Reads ``tests/conformance/results/formal.json``. With ``--check`` nothing is written; the exit status is 1 if
the page is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "reference" / "formal.md"
RESULTS = ROOT / "tests" / "conformance" / "results" / "formal.json"

_TEXT = """# Formal proofs
<!-- Made by tools/gen_formal.py from the results of tests/conformance/formal.py. -->

`kera verify FILE --formal` proves that the circuit of a function computes what its graph says, for every
input. The [guide](../guide/verification.md#proofs-for-all-inputs) shows its use; this page says what is
compared, what a proof rests on, and which proofs of the floating-point units are on record.

## What is compared
| | made from | as terms |
|---|---|---|
| specification | the source's graph, before any pass | bit-vectors, and SMT-LIB's FloatingPoint (RNE) |
| lowered graph | what the mapper is given, floats taken apart | bit-vectors |
| Verilog | the emitted file as Yosys reads it, device cells included | bit-vectors over time |

A float result counts as equal when its pattern stands for the theory's number, and for a NaN is the one
canonical pattern. The cells are LUT4, CCU2C, PFUMX, L6MUX21, MULT18X18D, Yosys's operators and registers.

The Verilog is that of `--interface none`: the datapath is the same with a handshake, which is checked by
simulation. Every output bit is followed back in time, a register to its input one cycle earlier. Each
input port is another variable in every cycle, so that a result that mixes two items differs from its
specification. A stream's state is a variable at the time at which the item reads it; the proof shows that
the next item finds the state that the graph says, and that the first item finds the initial one, whatever
stood at the ports before.

## How a proof is found
1. A netlist is held against the lowered graph, once that is proved: cell by cell from the inputs on, bits
   that behave like bits of the graph in simulation are proved equal to them and replaced.
2. Otherwise, and where that does not end, the solver gets the whole claim about the graph.
3. Claims about floats are split into cases by exponents: all zeros, all ones, or the place of the first bit
   that differs from the highest. So a significand is known to have its leading one, or not; the theory's
   multiplier and ours then have the same operands, and fall together before solving. Subnormal numbers are
   split further by their leading ones, other exponents bit by bit, where a case is still hard. The two halves
   of a split exclude each other and together are the whole, so the cases cover every input exactly once. What
   is known in a case is part of the terms that stand for the inputs, so that it folds away before solving.

## What a proof rests on
- **A planted fault.** For each proof one bit in the implementation is inverted at random. The solver must
  then find an input that shows it, the interpreter must agree that the result is wrong there, and that
  without the fault it is right. Otherwise the outcome is *not proved* (K0962). So neither contradictory
  assumptions nor a comparison of a thing with itself can pass.
- **The models of operations and cells.** The operations' are held against the interpreter on random
  graphs, the cells' against it wherever a fault is planted. Specification and lowering share no code.
- **Bitwuzla**, which decides the claims, and Yosys, which reads the Verilog.

## Outcomes
| outcome | exit status | |
|---|---|---|
| proved | 0 | at every level |
| refuted | 1 | with an input, replayed in simulation and shrunk as `verify` does |
| not finished | 4 | K0960: the time limit was too short; nothing is known to be wrong |
| no meaning | 4 | K0961: an operation without a theory (such as `exp`), or a cell without a model |
| not confirmed | 4 | K0962: the planted fault was not refuted |

With `--json` each level has `result`, `seconds`, `cases`, `time_limit_s`, `solver` and `planted_fault`.

## Floating-point units
Made by `python -m tests.conformance.formal`. Seconds are those of the clock on a shared machine, with the
processor's own beside them; a row that is not finished says how many cases were proved before the limit.

| unit | level | against | result | cases | seconds (processor) | limit | planted fault |
|---|---|---|---|---|---|---|---|
"""


def formal_page(data: dict[str, Any]) -> str:
    """The page as markdown."""
    return _TEXT + "\n".join(_line(row) for row in data["rows"]) + "\n\n" + _closing(data)


def _line(row: dict[str, Any]) -> str:
    from tests.conformance.formal import graph_of

    fault = row["planted_fault"]
    verb, kind = row["unit"].split("-")
    result = {"unfinished": "not finished", "unconfirmed": "not confirmed"}.get(row["result"], row["result"])
    result += "" if row.get("graph") == graph_of(RESULTS.stem, row) else " **stale**"
    seconds = f"{row['seconds']:.0f} ({row['cpu_s']:.0f})"
    planted = "-" if fault is None else f"refuted in {fault['seconds']:.1f} s"
    limit = f"{row['time_limit_s']:.0f} s"
    cells = (f"{verb} {kind}", row["level"], row["against"], result, row["cases"], seconds, limit, planted)
    return "| " + " | ".join(map(str, cells)) + " |"


def _closing(data: dict[str, Any]) -> str:
    solvers = ", ".join(sorted({row["solver"] for row in data["rows"]}))
    return (
        f"Solver: {solvers}. `graph` in the results is the hash of the lowered region that was proved.\n"
        "Beside these, `make test` proves every arithmetic unit in formats of 6 and 8 bits (`fma` of 8 bits\n"
        "in `make check-long`), which the same code makes.\n"
    )


def main() -> int:
    """Writes or checks the page."""
    text = formal_page(json.loads(RESULTS.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
        if stale:
            print("docs/reference/formal.md is stale: run tools/gen_formal.py")
        return int(stale)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

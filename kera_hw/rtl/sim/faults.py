"""Faults planted in a design, all of them in one simulation, one in effect at a time; and which are none.

Yosys's `mutate` picks places all over the circuit and changes one bit there: inverted, stuck, or mixed with
another bit of its bus. Each change waits for its number on an input of its own, so that a design is compiled
once however many faults it is tried with.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim.bench import FAULT_PORT
from kera_hw.rtl.toolchain.process import ToolFailed, ToolTimeout, scratch
from kera_hw.rtl.toolchain.yosys import run_script

_BITS = 32
_PROOF_S = 20.0
_INDUCTION_STEPS = 4
# Without the bits that no output depends on; arithmetic stays in words.
_BIT_BY_BIT = ("simplemap", "splitnets", "opt -purge", "opt_clean -purge")
# Faults of a datapath's values, as opposed to enables, resets and what moves its registers.
_DATA = re.compile(r" -(cell|wire) datapath\.")
_CONTROL = re.compile(
    r" -port (E|EN|R|SRST|S|ce|clear) | -wire (advance|ce|datapath\.(ce|advance|valid\w*))\b"
)
_CELL_MODELS = "*_ecp5_*"
_SPARE = 2
_CLOCKED = re.compile(r" -port (C|CLK) ")
_WHAT = {
    "inv": "inverted", "const0": "stuck at 0", "const1": "stuck at 1",
    "cnot0": "inverted where another is 0", "cnot1": "inverted where another is 1",
}


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """One change: its number on the input, the command that makes it, and what it is, for people."""

    number: int
    command: str

    @property
    def text(self) -> str:
        found = dict(re.findall(r"-(mode|cell|port|portbit) (\S+)", self.command))
        place = found.get("cell", "").removeprefix("$flatten\\").removeprefix("\\")
        return f"{place} {found['port']}[{found['portbit']}] {_WHAT.get(found['mode'], found['mode'])}"

    @property
    def sources(self) -> tuple[str, ...]:
        """Places in the source and in the Verilog that the change belongs to."""
        return tuple(re.findall(r"-src (\S+)", self.command))


@dataclass(frozen=True, slots=True)
class FaultyDesign:
    """The Verilog of a design with all faults in it, none of them in effect at 0; and what it was without."""

    top: str
    verilog: str
    faults: tuple[PlantedFault, ...]
    original: str
    flowing: tuple[str, ...] = ()
    """Options of Yosys's `sat` by which items flow through, where a datapath is a plain pipeline."""

    def is_none(self, fault: PlantedFault) -> bool:
        """Whether the change is proved to change nothing that anybody can see."""
        flat = ["setattr -mod -unset keep_hierarchy *", "flatten", "simplemap"]
        both = [
            "read_rtlil original.il", fault.command, *flat, f"rename {self.top} kera_gate",
            "design -stash gate", "read_rtlil original.il", *flat, f"rename {self.top} kera_gold",
            "design -copy-from gate kera_gate",
        ]  # fmt: skip
        ways = [[
            # The same results and next contents of all registers, whatever is in these.
            "dffunmap", "opt_clean", "expose -evert-dff kera_gold kera_gate",
            "miter -equiv -flatten -make_outputs kera_gold kera_gate kera_both", "hierarchy -top kera_both",
            f"sat -verify -prove trigger 0 -timeout {_PROOF_S:.0f} kera_both",
        ], [
            # By induction, where registers differ that nobody looks at in time.
            "opt -purge", "equiv_make kera_gold kera_gate kera_both", "hierarchy -top kera_both",
            "equiv_struct -icells", f"equiv_simple -seq {_INDUCTION_STEPS}",
            f"equiv_induct -seq {_INDUCTION_STEPS}", "equiv_status -assert",
        ]]  # fmt: skip
        if self.flowing and _DATA.search(fault.command) and not _CONTROL.search(fault.command):
            # Whatever items came before, the same result; stalls only repeat states: control is not changed.
            ways.insert(1, [
                "miter -equiv -flatten -make_outputs kera_gold kera_gate kera_both",
                "hierarchy -top kera_both", "opt -fast",
                f"sat -verify -prove trigger 0 {' '.join(self.flowing)} -timeout {_PROOF_S:.0f} kera_both",
            ])  # fmt: skip
        with scratch("equal") as work:
            (work / "original.il").write_text(self.original, encoding="utf-8")
            return any(_succeeds([*both, *way], work) for way in ways)


def _succeeds(passes: Sequence[str], work: Path) -> bool:
    try:
        run_script(passes, work, timeout_s=2 * _PROOF_S)
    except (ToolFailed, ToolTimeout):
        return False
    return True


def plant_faults(emitted: Emitted, count: int, seed: int) -> FaultyDesign:
    """``count`` faults all over the design. Raises ToolMissing, ToolFailed or ToolTimeout."""
    top = emitted.name
    with scratch("faults") as work:
        (work / "design.v").write_text(emitted.verilog, encoding="utf-8")
        # As it is simulated, so without the cells of synthesis. What nobody reads is no place for a fault,
        # and neither is the inside of a model of a device's cell.
        run_script([
            "read_verilog -sv -nosynthesis design.v", f"hierarchy -check -top {top}", "proc",
            f"setattr -mod -set keep_hierarchy 1 {_CELL_MODELS}", "flatten",
            "opt -purge", "wreduce", *_BIT_BY_BIT, "write_rtlil original.il",
            f"mutate -list {_SPARE * count} -seed {seed} -module {top} -o faults.txt",
        ], work)  # fmt: skip
        lines = (work / "faults.txt").read_text("utf-8").splitlines()
        # A fault in a clock makes another clock of it, which no simulation without delays orders.
        chosen = [line for line in lines if line.startswith("mutate ") and not _CLOCKED.search(line)]
        faults = tuple(PlantedFault(k, line) for k, line in enumerate(_spread(chosen, count), 1))
        planted = (
            fault.command.replace("mutate ", f"mutate -ctrl {FAULT_PORT} {_BITS} {fault.number} ", 1)
            for fault in faults
        )
        run_script(["read_rtlil original.il", *planted, "write_verilog -noattr faulty.v"], work)
        verilog, original = ((work / name).read_text("utf-8") for name in ("faulty.v", "original.il"))
        return FaultyDesign(top, verilog, faults, original, _flowing(emitted))


def _flowing(emitted: Emitted) -> tuple[str, ...]:
    """An item in every cycle, nothing stalled, until all that was there at first is gone; then compare.

    Nothing for a design that keeps something, or where an item is not taken in every cycle.
    """
    keeps = emitted.own_pace or emitted.states or emitted.port_plan.in_beats
    plain = emitted.core is not None and not keeps
    names = {port.name for port in emitted.ports}
    if not plain or emitted.initiation_interval > 1 or not {"rst", "in_valid", "out_ready"} <= names:
        return ()
    steps = emitted.latency_cycles + 2
    inputs = ("-set in_rst 0", "-set in_in_valid 1", "-set in_out_ready 1")
    return (f"-seq {steps}", f"-prove-skip {steps - 1}", *inputs)


def _spread(lines: Sequence[str], count: int) -> list[str]:
    """So many of the lines, evenly spaced; all where there are no more."""
    count = min(count, len(lines))
    return [lines[k * len(lines) // count] for k in range(count)]

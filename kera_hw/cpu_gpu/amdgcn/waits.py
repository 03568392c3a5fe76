"""Waits for memory and between instructions, which the machine leaves to the code.

What an access to memory loads may be touched only after a wait for it; accesses to global memory come back in
their order, so that later ones need not be waited for. Before labels, branches and barriers all are waited
for, so that every way to an instruction has none outstanding. AMD Instinct MI200 ISA reference, chapters 4.4
and 4.5; MI300 ISA reference, chapter 4.5.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kera_hw.cpu_gpu.amdgcn.code import SKIP
from kera_hw.cpu_gpu.amdgcn.table import MOST_OUTSTANDING


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction with its operands as text, and which registers it touches; or a label with neither.

    ``name`` of a label is empty. ``written``: the registers among ``touched`` that it writes.
    """

    name: str
    operands: tuple[str, ...]
    touched: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    comment: str = ""

    @property
    def is_control(self) -> bool:
        return not self.name or self.name.startswith(("s_cbranch", "s_branch", "s_barrier", SKIP))


@dataclass(frozen=True, slots=True)
class Hazard:
    """So many instructions lie between one that writes and a vector one that reads what it wrote.

    ``only``: of what is written, where not all counts.
    """

    writers: tuple[str, ...]
    only: frozenset[str]
    between: int

    def writes(self, line: Line) -> frozenset[str]:
        if not line.name.startswith(self.writers):
            return frozenset()
        return line.written & self.only if self.only else line.written


HAZARDS: dict[str, tuple[Hazard, ...]] = {
    "gfx90a": (),
    "gfx942": (
        Hazard(("v_cmp", "v_add_co", "v_addc", "v_sub_co", "v_subb", "v_mad_"), frozenset({"vcc"}), 2),
        Hazard(("v_rcp", "v_rsq"), frozenset(), 1),
    ),
}
"""By processor. None reads a lane of another or a scalar register for an address, where more are known."""


def with_waits(lines: Iterable[Line], processor: str) -> Iterator[Line]:
    """The same with what has to be waited for."""
    global_: list[frozenset[str]] = []  # what each outstanding access loads, in order
    others: set[str] = set()
    any_other = False
    for line in _spaced(lines, HAZARDS[processor]):
        counts: list[str] = []
        if line.is_control:
            counts = (["vmcnt(0)"] if global_ else []) + (["lgkmcnt(0)"] if any_other else [])
            global_, others, any_other = [], set[str](), False
        else:
            behind = [k for k, loads in enumerate(global_) if loads & line.touched]
            if behind:
                most = min(len(global_) - 1 - behind[-1], MOST_OUTSTANDING)
                counts.append(f"vmcnt({most})")
                global_ = global_[len(global_) - most :]
            if others & line.touched:
                counts.append("lgkmcnt(0)")
                others, any_other = set[str](), False
        if counts:
            yield Line("s_waitcnt", (" ".join(counts),))
        yield line
        if line.name.startswith("global_"):
            global_.append(line.written)
        elif line.name.startswith(("ds_", "s_load")):
            others |= line.written
            any_other = True


def _spaced(lines: Iterable[Line], hazards: tuple[Hazard, ...]) -> Iterator[Line]:
    """With as many idle steps as a processor asks for."""
    recent: list[Line] = []
    longest = max((one.between for one in hazards), default=0)
    for line in lines:
        missing = 0
        for back, before in enumerate(reversed(recent)) if line.name.startswith("v_") else ():
            for hazard in hazards:
                if hazard.writes(before) & (line.touched - (line.written - _read(line))):
                    missing = max(missing, hazard.between - back)
        if missing:
            yield Line("s_nop", (str(missing - 1),))
        yield line
        if longest and line.name:
            recent = [*recent, *[Line("s_nop", ("0",))] * missing, line][-longest:]


def _read(line: Line) -> frozenset[str]:
    """Registers that are read besides being written: whatever stands behind the results."""
    reads = line.operands[1:] if line.name.startswith("v_cmp") else line.operands[2:]
    return frozenset({"vcc"}) if "vcc" in reads else frozenset()

"""The processors that there is code for: how it is written, and what Linux says that one has."""
from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kera_hw.cpu_gpu.aarch64.finish import ArmBackend
from kera_hw.cpu_gpu.aarch64.isa import Arm
from kera_hw.cpu_gpu.aarch64.machine import NEON
from kera_hw.cpu_gpu.elf import ElfMachine
from kera_hw.cpu_gpu.machine.code import Code
from kera_hw.cpu_gpu.machine.finish import Machine, finish
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.riscv64.finish import RiscvBackend
from kera_hw.cpu_gpu.riscv64.isa import Riscv
from kera_hw.cpu_gpu.riscv64.machine import RVV, without_repeats
from kera_hw.cpu_gpu.select.function import select
from kera_hw.cpu_gpu.select.streams import BlockCode
from kera_hw.cpu_gpu.x86_64.finish import X86Backend
from kera_hw.cpu_gpu.x86_64.isa import X86
from kera_hw.cpu_gpu.x86_64.machine import LEVELS as X86_LEVELS
from kera_hw.cpu_gpu.x86_64.machine import X86Level
from kera_hw.loops.program import For, LoopProgram
from kera_hw.schedule.software.layout import Layout
from kera_hw.schedule.software.vector_loops import Plan

Write = Callable[[LoopProgram, Layout, Plan, Level, For | None, BlockCode | None], Machine]
"""The function of a program, or of some rounds of one of its loops (``select.function``)."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """``machines``: what Python calls it; ``levels`` from the least to the most; ``feature_line``: what names
    the features of a processor in /proc/cpuinfo, and ``names`` what there stands after it."""

    name: str
    machines: frozenset[str]
    levels: tuple[Level, ...]
    write: Write
    elf: ElfMachine
    feature_line: str
    names: Callable[[str], Sequence[str]] = str.split


def _x86(
    program: LoopProgram, layout: Layout, plan: Plan, level: Level, divided: For | None,
    blocks: BlockCode | None,
) -> Machine:
    assert isinstance(level, X86Level)
    isa = X86(Code(), level)
    select(isa, program, layout, plan, divided, blocks)
    return finish(isa.code, X86Backend(level))


def _arm(
    program: LoopProgram, layout: Layout, plan: Plan, level: Level, divided: For | None,
    blocks: BlockCode | None,
) -> Machine:
    isa = Arm(Code(), level)
    select(isa, program, layout, plan, divided, blocks)
    return finish(isa.code, ArmBackend())


def _riscv(
    program: LoopProgram, layout: Layout, plan: Plan, level: Level, divided: For | None,
    blocks: BlockCode | None,
) -> Machine:
    isa = Riscv(Code(), level)
    select(isa, program, layout, plan, divided, blocks)
    isa.code.items = without_repeats(isa.code.items)
    return finish(isa.code, RiscvBackend())


def isa_letters(isa: str) -> Sequence[str]:
    """The extensions in what RISC-V calls a processor, such as `rv64imafdcv_zicsr`."""
    letters, *longer = isa.strip().removeprefix("rv64").split("_")
    return [*letters, *longer]


ARCHITECTURES: Mapping[str, Architecture] = {
    one.name: one
    for one in (
        Architecture(
            "x86-64", frozenset({"x86_64", "AMD64"}), X86_LEVELS, _x86, ElfMachine(62, {8: 1, 4: 10}), "flags"
        ),
        Architecture(
            "aarch64", frozenset({"aarch64"}), (NEON,), _arm, ElfMachine(183, {8: 257, 4: 258}), "Features"
        ),
        Architecture(
            "riscv64", frozenset({"riscv64"}), (RVV,), _riscv, ElfMachine(243, {8: 2, 4: 1}, 4), "isa",
            isa_letters,
        ),
    )
}
LEVELS = tuple(level for one in ARCHITECTURES.values() for level in one.levels)
"""Of each architecture from the least to the most."""


def host_architecture() -> str | None:
    """Whose code this process can run, by the convention that it is written for."""
    if sys.platform != "linux" or sys.maxsize <= 1 << 32:
        return None
    machine = platform.machine()
    return next((one.name for one in ARCHITECTURES.values() if machine in one.machines), None)


@cache
def host_features() -> frozenset[str]:
    """What Linux says of this processor and lets programs use."""
    host = host_architecture()
    if host is None:
        return frozenset()
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    begins = ARCHITECTURES[host].feature_line
    line = next((line for line in text.splitlines() if line.startswith(begins)), "")
    return frozenset(ARCHITECTURES[host].names(line.partition(":")[2]))

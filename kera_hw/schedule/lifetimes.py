"""How long values are kept, and in which registers: those that move in every cycle, or are enabled.

At an initiation interval above 1 a value that waits d cycles needs no d registers: one that is enabled when
its item comes by holds the value for a whole interval. Its enable is a gate for each stage that loads such
registers, so few bits that wait for short move in every cycle all the same. A state register needs no copy of
its value before it is written. With the intervals of all values a multiple of one, this is the register
allocation of Rau et al., "Register allocation for software pipelined loops", PLDI 1992, without rotation.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

from kera_hw.schedule.fpga.cells import StateOut
from kera_hw.schedule.plan import Lifetime
from kera_hw.schedule.problem import Problem

_LEAST_SAVED = 3
"""Register bits that the registers loaded in one stage must save to be worth the gate of their enable."""


def lifetimes(problem: Problem, stage: Sequence[int], initiation_interval: int) -> tuple[Lifetime, ...]:
    """Every run of bits with its registers when nodes work in ``stage``."""
    latency: list[int] = problem.latency.tolist()
    found: list[Lifetime] = []
    for run in problem.runs:
        cell = problem.netlist.cells[run.cell]
        available, standing = stage[run.cell] + latency[run.cell], 0
        last = max(stage[reader] for reader in run.readers)
        if isinstance(cell, StateOut):
            standing = max(0, min(last, stage[problem.write_node(cell.state)]) - available)
        waits = last - available - standing
        found.append(Lifetime(run.cell, run.low, run.width, available, waits, standing))
    return tuple(_enabled(found, initiation_interval)) if initiation_interval > 1 else tuple(found)


def register_bits(problem: Problem, stage: Sequence[int], initiation_interval: int = 1) -> int:
    """Pipeline and output register bits of a schedule; ``stage`` is indexed by node, the end included."""
    return sum(life.register_bits for life in lifetimes(problem, stage, initiation_interval))


def enabled_stages(lives: Sequence[Lifetime]) -> set[int]:
    """The stages whose items enable registers."""
    return set(chain.from_iterable(life.loads() for life in lives if life.stages_each > 1))


def _enabled(lives: Sequence[Lifetime], interval: int) -> list[Lifetime]:
    """The lifetimes with registers that hold where those loaded in a stage save enough bits together."""
    held = {k: _held(life, interval) for k, life in enumerate(lives) if life.registers > 1}
    while held:
        saved: dict[int, int] = defaultdict(int)
        for k, life in held.items():
            bits = lives[k].register_bits - life.register_bits
            for load in life.loads():
                saved[load] += bits
        poor = {load for load, bits in saved.items() if bits < _LEAST_SAVED}
        kept = {k: life for k, life in held.items() if not poor.intersection(life.loads())}
        if len(kept) == len(held):
            break
        held = kept
    return [held.get(k, life) for k, life in enumerate(lives)]


def _held(life: Lifetime, interval: int) -> Lifetime:
    count = -(-life.registers // interval)
    return Lifetime(
        life.cell, life.low, life.width, life.available, count, life.standing,
        stages_each=-(-life.registers // count),
    )

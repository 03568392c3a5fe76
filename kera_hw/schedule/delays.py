"""Which registers of a plan become delay lines in LUT RAM: those that move in every cycle and nobody reads.

Registers and LUTs stand in pairs, so a circuit takes as many sites as it has of the one it has more of. Where
that is flip-flops, those that keep a value for long go into LUTs that would lie idle, the longest first,
until both are as many. A pipeline moves as a whole or not at all, so a delay line holds any bits that wait
for as long, whatever stages they are in: they are put together by how long they wait, four a memory.

A line never makes the longest path longer: it is fed directly by what settles early, else by a register, and
what it shows comes from a register too.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, log2

from kera_hw.schedule.fpga.cells import StateNext
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.lut_ram import (
    ADDRESS_LOADS,
    BITS,
    LONGEST,
    LUTS,
    counter,
    delay_ffs,
    delay_luts,
    has_lut_ram,
)
from kera_hw.schedule.plan import DelayLine, DelayPart, Lifetime
from kera_hw.schedule.problem import Problem
from kera_hw.schedule.timing import Arrivals

SHORTEST = 3
"""Registers in a row from which on a delay line is worth its LUTs."""
_MOST_MEMORIES = 16
"""Memories that one counter serves, so that they may stand near it."""
_LEAST_GAIN = 0.04
"""Share of the sites that all delay lines together must save, since routing has a part in it."""


@dataclass(frozen=True, slots=True)
class Row:
    """Bits of a cell that wait for a stage, ``end``, without being read on the last ``length`` registers."""

    length: int
    cell: int
    low: int
    width: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """Rows side by side in one memory, which is as long as the shortest."""

    rows: tuple[Row, ...]

    @property
    def length(self) -> int:
        return min(row.length for row in self.rows)

    @property
    def bits(self) -> int:
        return sum(row.width for row in self.rows)


def delay_lines(
    problem: Problem, stage: Sequence[int], lives: Sequence[Lifetime], arrivals: Arrivals,
    luts: int, ffs: int, most_luts: int | None,
) -> tuple[DelayLine, ...]:
    """The delay lines for which a circuit of so many LUTs and flip-flops takes the fewest sites.

    It has no more than ``most_luts`` then, if that is not None, unless it has without delay lines.
    """
    model = problem.model
    if ffs <= luts or not has_lut_ram(model.device):
        return ()
    longest_ps = max([0, *arrivals.settled_ps, *arrivals.output_ps])
    memories = _MOST_MEMORIES
    while memories and _read_ps(model, memories) > longest_ps:
        memories //= 2
    if not memories:
        return ()
    late_ps = longest_ps - _write_ps(model)
    words = _words(sorted(
        _rows(problem, stage, lives, arrivals, late_ps), key=lambda row: (-row.length, row.cell, row.low)
    ))
    limit = inf if most_luts is None else most_luts
    low, high = 0, len(words)
    while low < high:  # LUTs grow with the words taken, flip-flops fall
        middle = (low + high) // 2
        more, fewer = _change(_parted(words[: middle + 1], memories))
        low, high = (middle + 1, high) if min(limit, ffs - fewer) >= luts + more else (low, middle)
    near = range(max(0, low - 1), min(len(words), low + 1) + 1)
    tried = (_parted(words[:count], memories) for count in near)
    within = [lines for lines in tried if luts + _change(lines)[0] <= limit]
    best = min(within, key=lambda lines: _sites(lines, luts, ffs), default=())
    return best if _sites(best, luts, ffs) <= (1 - _LEAST_GAIN) * ffs else ()


def _read_ps(model: DelayModel, memories: int) -> int:
    """From the counter of so many memories through one of them to the register behind it."""
    timing = model.device.timing
    wires = 2 * timing.route_lut_ps + timing.route_fanout_ps * log2(ADDRESS_LOADS * memories)
    return round(timing.clk_to_q_ps + model.scale * wires + timing.lut_ps)


def _write_ps(model: DelayModel) -> int:
    """What the wire to a write port takes, where a register could stand beside what drives it."""
    return round(model.scale * model.device.timing.route_lut_ps)


def _sites(lines: Sequence[DelayLine], luts: int, ffs: int) -> int:
    more, fewer = _change(lines)
    return max(luts + more, ffs - fewer)


def _change(lines: Sequence[DelayLine]) -> tuple[int, int]:
    """LUTs that lines take, and flip-flops that they save."""
    more = sum(delay_luts(line.width) for line in lines)
    return more, sum(line.width * line.stages - delay_ffs(line.stages, line.width) for line in lines)


def _rows(
    problem: Problem, stage: Sequence[int], lives: Sequence[Lifetime], arrivals: Arrivals, late_ps: int
) -> Iterator[Row]:
    """All rows of registers that a memory could stand for, none longer than it can be."""
    for run, life in zip(problem.runs, lives):
        moves = life.stages_each == 1 and life.registers >= SHORTEST
        if not moves or isinstance(problem.netlist.cells[life.cell], StateNext):
            continue
        last = life.unregistered_until
        late = arrivals.output_ps[life.cell] > late_ps
        for end in sorted({stage[reader] for reader in run.readers if stage[reader] > last}):
            first, there = last + late, end
            while there - first >= SHORTEST:
                length = min(there - first, LONGEST)
                yield Row(length, life.cell, life.low, life.width, there)
                there -= length
            last, late = end, False


def _words(rows: Sequence[Row]) -> list[Word]:
    """Rows cut and put together to words, in order."""
    words: list[Word] = []
    taken: list[Row] = []
    for row in rows:
        low, end = row.low, row.low + row.width
        while low < end:
            width = min(end - low, BITS - sum(other.width for other in taken))
            taken.append(Row(row.length, row.cell, low, width, row.end))
            low += width
            if sum(other.width for other in taken) == BITS:
                words.append(Word(tuple(taken)))
                taken = []
    return [*words, Word(tuple(taken))] if taken else words


def _parted(words: Sequence[Word], memories: int) -> tuple[DelayLine, ...]:
    """Words, longest first, as delay lines of few lengths: each length has counters of its own.

    A word in a shorter line has registers before it for the rest; the best parting of all into stretches of
    one length is found stretch by stretch.
    """
    ends = [k for k, word in enumerate(words, start=1) if k == len(words) or words[k].length != word.length]
    best: dict[int, tuple[int, int]] = {0: (0, 0)}  # after so many words: flip-flops saved, the end before
    bits = [0]
    for word in words:
        bits.append(bits[-1] + word.bits)
    for end in ends:
        length = words[end - 1].length
        choices: list[tuple[int, int]] = []
        for before, (saved, _) in best.items():
            counters = -(-(end - before) // memories)
            own = (bits[end] - bits[before]) * (length - 1) - counters * (counter(length - 1).bits + 1)
            choices.append((saved + own, before))
        best[end] = max(choices)
    lines: list[DelayLine] = []
    end = len(words)
    while end:
        before = best[end][1]
        length = words[end - 1].length
        parts = [words[first : min(first + memories, end)] for first in range(before, end, memories)]
        lines += [_line(part, length) for part in parts]
        end = before
    return tuple(reversed(lines))


def _line(words: Sequence[Word], length: int) -> DelayLine:
    rows = (row for word in words for row in word.rows)
    return DelayLine(length, tuple(DelayPart(r.cell, r.low, r.width, r.end - length) for r in rows))


def lines_note(lines: Sequence[DelayLine], luts: int, ffs: int) -> str:
    """What delay lines there are, and why."""
    bits, lengths = sum(line.width for line in lines), [line.stages for line in lines]
    span = f"{lengths[0]}" if len(set(lengths)) == 1 else f"{min(lengths)} to {max(lengths)}"
    memories = sum(-(-line.width // BITS) for line in lines)
    return (
        f"{bits:,} bits that wait for {span} cycles are in LUT RAM ({memories} memories of {LUTS} LUTs, "
        f"{len(lines)} {'counter' if len(lines) == 1 else 'counters'}): {_sites(lines, luts, ffs):,} sites "
        f"in place of {max(luts, ffs):,} in flip-flops."
    )

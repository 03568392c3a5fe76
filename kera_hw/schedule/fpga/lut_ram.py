"""LUTs as memory (ECP5's DPR16X4), and delay lines made of them: what they take.

A delay line is a circular buffer: in every cycle the word at one place is read and a new one put there, which
comes out again when a counter has been round. It is a memory that is read at once, and a register behind it,
which hides that LUTs are slower than flip-flops. The counter goes round a cycle of the shift register's graph
(de Bruijn): such a cycle of every length exists, and each step shifts in one bit, the one LUT of the counter.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache

from kera_hw.schedule.fpga.device import Device

ENTRIES, BITS = 16, 4
"""Words of one memory, and bits of each."""
LUTS = 6
"""LUTs that it is made of: four hold the words, the two of another slice bring address and data to write."""
LONGEST = ENTRIES + 1
"""Registers in a row that one delay line stands for."""
ADDRESS_LOADS = BITS + 1
"""Of an address bit in a memory: the LUTs that hold words, and the write port."""


def has_lut_ram(device: Device) -> bool:
    """Whether its LUTs can be written."""
    return device.family == "ecp5"


@dataclass(frozen=True, slots=True)
class Counter:
    """A shift register of ``bits`` that is the same again after some steps; bit s of ``following`` is shifted
    in after state s. From states that it never has it comes back to those that it has."""

    bits: int
    start: int
    following: int


@cache
def counter(period: int) -> Counter:
    """What goes round in so many steps."""
    bits = max(1, (period - 1).bit_length())
    cycle = next(found for start in range(1 << bits) if (found := _cycle(start, period, bits)))
    mask = (1 << bits) - 1
    shifted = {state: after & 1 for state, after in zip(cycle, [*cycle[1:], cycle[0]])}
    reached = deque(cycle)
    while reached:
        state = reached.popleft()
        for before in (state >> 1, state >> 1 | 1 << bits - 1):
            if before not in shifted:
                shifted[before] = state & 1
                reached.append(before)
    assert shifted.keys() == set(range(mask + 1))
    return Counter(bits, cycle[0], sum(bit << state for state, bit in shifted.items()))


def _cycle(start: int, period: int, bits: int) -> list[int] | None:
    """A way of ``period`` different states from one state back to it."""
    mask, path = (1 << bits) - 1, [start]

    def extended() -> bool:
        followers = [(path[-1] << 1 | bit) & mask for bit in (0, 1)]
        if len(path) == period:
            return start in followers
        for state in followers:
            if state not in path:
                path.append(state)
                if extended():
                    return True
                path.pop()
        return False

    return path if extended() else None


def delay_luts(width: int) -> int:
    """LUTs of a delay line: its memories, and the counter's."""
    return LUTS * -(-width // BITS) + 1


def delay_ffs(stages: int, width: int) -> int:
    """Flip-flops of a delay line: the registers behind it, and the counter's."""
    return width + counter(stages - 1).bits

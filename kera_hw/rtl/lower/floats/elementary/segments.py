"""Tables of 16-bit functions: the result's bits as straight lines over the argument's bits.

For neighbouring floats of one format the bits of x count up by one, and the bits of f(x) follow a smooth
curve with kinks at powers of two. Blocks of 64 arguments are cut into equal segments until in each one line
c0 + c1 d, floored, meets the reference on every argument. So a table is right by construction, whatever the
function; blocks that look alike share their lines, those far down an odd function relative to x itself.

The reference is ``numerics.elementary``. Everything here is exact integer arithmetic.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from kera_hw.numerics.elementary import evaluate
from kera_hw.ops.spec import Array
from kera_hw.types import FloatType, numpy_dtype

BLOCK_BITS = 6
FRACTION_BITS = 8
"""Fraction bits of lines; the lowest two of a constant term are 0."""
_STEP = 4
SLOPE_BITS = 12
ODD = frozenset({"sin", "tanh", "erf"})
EVEN = frozenset({"cos"})
_SLOPES = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7)


@dataclass(frozen=True, slots=True)
class Segments:
    """Of every block: its first line, into how many (2^cuts) lines it is cut, whether x is added.

    Of every line: the constant term's integer part, and the rest: its fraction's upper bits below the slope
    (signed). ``rest`` is shorter than ``whole``: what lies past its end is 0, a line of one argument.
    """

    first: tuple[int, ...]
    cuts: tuple[int, ...]
    relative: tuple[int, ...]
    whole: tuple[int, ...]
    rest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of one block: (constant, slope) each."""

    relative: bool
    lines: tuple[tuple[int, int], ...]


def values(name: str, kind: FloatType) -> Array:
    """The reference's bits on all arguments, as 64-bit integers."""
    words = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(kind))
    return evaluate(name, words, kind).view(np.uint16).astype(np.int64)


@cache
def segments(name: str, kind: FloatType) -> Segments:
    """The table of a function on a 16-bit format; on odd and even functions for positive arguments only."""
    count = 1 << 15 if name in ODD | EVEN else 1 << 16
    words = np.arange(count, dtype=np.int64)
    infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
    results = values(name, kind)[:count]
    for sign in range(0, count, 1 << 15):  # nobody looks at NaNs: as the infinity before them
        results[sign + infinity + 1 : sign + (1 << 15)] = results[sign + infinity]
    shape = (-1, 1 << BLOCK_BITS)
    absolute, relative = results.reshape(shape), (results - words).reshape(shape)
    blocks = list(zip(_cut(absolute, False), _cut(relative, True)))
    # Of two new blocks as long, which is likelier to be met again depends on the function.
    return min((_collect(blocks, prefer) for prefer in (False, True)), key=lambda table: len(table.whole))


def _cut(targets: Array, relative: bool) -> list[_Block]:
    """Every block of a table of targets in the fewest equal segments."""
    found: list[_Block | None] = [None] * len(targets)
    for cuts in range(BLOCK_BITS + 1):
        open_blocks = [i for i, block in enumerate(found) if block is None]
        if not open_blocks:
            break
        size = 1 << BLOCK_BITS - cuts
        constant, slope, fits = _fit(targets[open_blocks].reshape(-1, size), cuts)
        for place, index in enumerate(open_blocks):
            rows = slice(place << cuts, place + 1 << cuts)
            if fits[rows].all():
                lines = zip(constant[rows].tolist(), slope[rows].tolist())
                found[index] = _Block(relative, tuple(lines))
    return [block for block in found if block is not None]


def _fit(targets: Array, cuts: int) -> tuple[Array, Array, Array]:
    """For rows of targets: a line (constant, slope) each, and whether it fits."""
    size = targets.shape[1]
    if size == 1:
        values = targets[:, 0] << FRACTION_BITS
        return values, np.zeros_like(values), np.ones(len(values), dtype=bool)
    offsets = np.arange(size, dtype=np.int64) << cuts
    low = targets << FRACTION_BITS
    high = low + (1 << FRACTION_BITS) - 1
    chord = (low[:, -1] - low[:, 0]) // int(offsets[-1])
    constant: Array = np.zeros_like(chord)
    slope: Array = np.zeros_like(chord)
    fits: Array = np.zeros(len(targets), dtype=bool)
    for step in _SLOPES:
        trial = chord + step
        lines = trial[:, None] * offsets
        least, most = (low - lines).max(axis=1), (high - lines).min(axis=1)
        middle: Array = (least + most) // (2 * _STEP) * _STEP
        middle += np.where(middle < least, _STEP, 0)
        good: Array = (middle <= most) & (np.abs(trial) < 1 << SLOPE_BITS - 1) & ~fits
        constant[good], slope[good] = middle[good], trial[good]
        fits |= good
    return constant, slope, fits


def _collect(pairs: list[tuple[_Block, _Block]], prefer_relative: bool) -> Segments:
    """One list of lines for all blocks: equal blocks share, single arguments come last."""
    chosen: list[_Block] = []
    known: set[_Block] = set()
    for pair in pairs:
        block = min(
            pair, key=lambda item: (item not in known, len(item.lines), item.relative != prefer_relative),
        )
        known.add(block)
        chosen.append(block)
    order = sorted(dict.fromkeys(chosen), key=lambda block: len(block.lines) == 1 << BLOCK_BITS)
    first: dict[_Block, int] = {}
    lines: list[tuple[int, int]] = []
    for block in order:
        first[block] = len(lines)
        lines.extend(block.lines)
    rest = [(slope << FRACTION_BITS - 2) | (constant >> 2 & 63) for constant, slope in lines]
    while len(rest) > 1 and rest[-1] == 0:
        rest.pop()
    return Segments(
        tuple(first[block] for block in chosen),
        tuple(len(block.lines).bit_length() - 1 for block in chosen),
        tuple(int(block.relative) for block in chosen),
        tuple(constant >> FRACTION_BITS & 0xFFFF for constant, _ in lines),
        (*rest, 0),
    )

"""Whole items as the beats of a bundle, and back: rows of words, every port on a word boundary."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kera_hw.rtl.emit.ports import Bundle, Value
from kera_hw.rtl.sim.words import WORD_BITS, Words, words_of

_Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BundleWords:
    """How the values of a bundle travel: ``beat_words`` at a time, ``row_words`` an item."""

    bundle: Bundle

    @property
    def beat_words(self) -> int:
        """Words of one beat."""
        return sum(words_of(port.width) for port in self.bundle.payload)

    @property
    def row_words(self) -> int:
        """Words of an item."""
        return self.beat_words * self.bundle.channel.beats

    @property
    def _values(self) -> tuple[Value, ...]:
        return self.bundle.channel.values

    @property
    def _bus_each(self) -> bool:
        """Whether every value has a port of its own."""
        return not self.bundle.packed and not self.bundle.channel.in_beats

    def cut(self, words: Mapping[str, Words], count: int) -> Words:
        """The rows of ``count`` items, from the words of every value by bus."""
        parts = [words[value.bus] for value in self._values]
        if self._bus_each:
            return np.concatenate([np.zeros((count, 0), "<u4"), *parts], axis=1)
        bits = [bits_of(part, value.width) for part, value in zip(parts, self._values)]
        whole = np.concatenate([np.zeros((count, 0), np.uint8), *bits], axis=1)
        beats, width = self.bundle.channel.beats, self.bundle.channel.beat_bits
        filled = np.pad(whole, ((0, 0), (0, beats * width - whole.shape[1]))).reshape(count, beats, width)
        return words_of_bits(filled, self.beat_words).reshape(count, self.row_words)

    def join(self, rows: Words) -> tuple[dict[str, Words], bool]:
        """The words of every value, from rows; and whether what pads the beats was zero."""
        found, low = dict[str, Words](), 0
        if self._bus_each:
            for value in self._values:
                found[value.bus] = rows[:, low : low + words_of(value.width)]
                low += words_of(value.width)
            return found, True
        count, beats, width = len(rows), self.bundle.channel.beats, self.bundle.channel.beat_bits
        bits = bits_of(rows.reshape(count * beats, self.beat_words), WORD_BITS * self.beat_words)
        padding = bits[:, width:].any()
        whole = bits[:, :width].reshape(count, beats * width)
        for value in self._values:
            found[value.bus] = words_of_bits(whole[:, low : low + value.width], words_of(value.width))
            low += value.width
        return found, not (padding or whole[:, low:].any())


def bits_of(words: Words, width: int) -> _Bits:
    """Bits [items, width], least significant first."""
    data = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return np.unpackbits(data, axis=-1, bitorder="little")[..., :width]


def words_of_bits(bits: _Bits, count: int) -> Words:
    """The inverse, in ``count`` words."""
    missing = [(0, 0)] * (bits.ndim - 1) + [(0, WORD_BITS * count - bits.shape[-1])]
    data = np.packbits(np.pad(bits, missing), axis=-1, bitorder="little")
    return np.ascontiguousarray(data).view("<u4")

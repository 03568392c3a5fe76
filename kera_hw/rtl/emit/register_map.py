"""Where the values of a design lie in the address space of its AXI4-Lite port.

Control is in four words, then every small value in words of its own, then a window of memory for each tensor
that is a channel of its own. An element of a tensor has a *container*: the least of 1, 2 or 4 bytes that
holds it, or 4 times a power of two; other values fill words from the lowest bit on. Signed integers and fixed
point are extended to their container; other bits above a value are zeros. All is little-endian.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kera_hw.rtl.emit.ports import BYTE_BITS, WORD_BITS, Channel, PortPlan, Value, container_bytes

WORD_BYTES = WORD_BITS // BYTE_BITS

CONTROL, GLOBAL_INTERRUPT, INTERRUPT_ENABLE, INTERRUPT_STATUS = 0x0, 0x4, 0x8, 0xC
FIRST_VALUE = 0x10
START_BIT, DONE_BIT, IDLE_BIT, READY_BIT, AUTO_RESTART_BIT = 0, 1, 2, 3, 7


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits of a value in a word: ``width`` from ``value_low`` on, at ``word_low``.

    With ``signed`` the highest one is repeated up to bit ``extended`` of the word; a piece that ``repeats``
    is a sign that stands in a word before.
    """

    value_low: int
    width: int
    word_low: int
    extended: int
    signed: bool
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A value in the address space: ``size_bytes`` from ``offset``.

    A value with ``memory`` has a window of memory, which a channel of beats fills or empties.
    """

    value: Value
    channel: Channel
    offset: int
    size_bytes: int

    @property
    def name(self) -> str:
        """What the value is called in software: as the parameter, or ``result``, ``result_0``, ..."""
        if self.channel.direction == "input":
            return self.value.bus.removeprefix("in_")
        number = self.value.bus.removeprefix("out_")
        return "result" if number == "data" else f"result_{number}"

    @property
    def memory(self) -> bool:
        """Whether it lies in memory."""
        return self.channel.in_beats

    @property
    def is_parameter(self) -> bool:
        """Whether software writes it."""
        return self.channel.direction == "input"

    @property
    def words(self) -> int:
        """Words that it takes."""
        return self.size_bytes // WORD_BYTES

    @property
    def container(self) -> int:
        """Bytes from an element to the next; of a value that is no tensor, all its bytes."""
        return container_bytes(self.value.element_bits) if self.value.tensor else self.size_bytes

    @property
    def parts(self) -> int:
        """Words of a beat."""
        return max(1, self.container // WORD_BYTES)

    @property
    def beats_a_word(self) -> int:
        """Beats of a word, where it has several."""
        return max(1, WORD_BYTES // (self.container * max(1, self.channel.lanes)))

    def to_json(self) -> dict[str, object]:
        """Plain JSON object."""
        return {
            "name": self.name, "direction": self.channel.direction, "offset": self.offset,
            "size_bytes": self.size_bytes, "container_bytes": self.container, "memory": self.memory,
        }

    def pieces(self, word: int) -> tuple[Piece, ...]:
        """The bits of the value in one of its words."""
        return tuple(self._pieces(word * WORD_BITS))

    def _pieces(self, first: int) -> Iterator[Piece]:
        value, stride = self.value, self.container * BYTE_BITS
        width = value.element_bits
        for element in range(first // stride, min(value.elements, -(-(first + WORD_BITS) // stride))):
            low, end = element * stride, element * stride + width  # of the element, in bits from the offset
            start, stop = max(low, first), min(end, first + WORD_BITS)
            top = min(low + stride, first + WORD_BITS) - first
            if start < stop:
                last = stop == end and value.signed
                yield Piece(element * width + start - low, stop - start, start - first, top, last)
            elif value.signed and low < first:
                yield Piece((element + 1) * width - 1, 1, 0, top, True, True)


@dataclass(frozen=True, slots=True)
class RegisterMap:
    """The address space of a design."""

    entries: tuple[Entry, ...]
    size_bytes: int

    @property
    def address_bits(self) -> int:
        """Bits of an address."""
        return (self.size_bytes - 1).bit_length()

    @property
    def registers(self) -> tuple[Entry, ...]:
        """Values in registers."""
        return tuple(entry for entry in self.entries if not entry.memory)

    @property
    def memories(self) -> tuple[Entry, ...]:
        """Values in memory."""
        return tuple(entry for entry in self.entries if entry.memory)

    @staticmethod
    def of(plan: PortPlan) -> RegisterMap:
        """The map: registers, then windows, each at a multiple of the power of two that holds it."""
        entries: list[Entry] = []
        offset = FIRST_VALUE
        pairs = [(value, channel) for channel in plan.channels for value in channel.values]
        for value, channel in pairs:
            if not channel.in_beats:
                size = _size(value)
                offset = -(-offset // min(size & -size, 8)) * min(size & -size, 8)
                entries.append(Entry(value, channel, offset, size))
                offset += size
        for value, channel in pairs:
            if channel.in_beats:
                size = _size(value)
                window = 1 << (size - 1).bit_length()
                offset = -(-offset // window) * window
                entries.append(Entry(value, channel, offset, size))
                offset += size
        return RegisterMap(tuple(entries), max(offset, FIRST_VALUE))


def _size(value: Value) -> int:
    """Bytes that a value takes, whole words."""
    packed = -(-value.width // BYTE_BITS)
    size = container_bytes(value.element_bits) * value.elements if value.tensor else packed
    return -(-size // WORD_BYTES) * WORD_BYTES


def beat_entry(entry: Entry) -> Entry:
    """The value of one beat in the memory of a tensor, as if it stood alone."""
    value, lanes = entry.value, entry.channel.lanes
    beat = replace(value, width=lanes * value.element_bits, elements=lanes)
    return replace(entry, value=beat, offset=0, size_bytes=_size(beat))

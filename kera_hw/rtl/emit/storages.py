"""Memories of a datapath in Verilog: the signals of their ports, and the instances that keep the words.

Ports that several calls share take turns: a signal is that of the call whose stage holds an item.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kera_hw.rtl.emit.layout import Control, StoragePlace, valid_name
from kera_hw.rtl.emit.styles import Style
from kera_hw.rtl.emit.text import constant, declared_range
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Storage
from kera_hw.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class StorageParameters:
    """What the helper module ``kera_memory`` is told of a memory."""

    width: int
    entries: int
    address_bits: int
    reads: int
    latency_cycles: int
    forwards: bool
    blocks: bool
    uniform: bool
    fill: int
    initial: int

    @property
    def initial_bits(self) -> int:
        return self.width if self.uniform else self.width * self.entries


def storage_parameters(storage: Storage, reads: int, style: Style) -> StorageParameters:
    """The parameters on a device whose cells have that style."""
    words = storage.initial or (0,)
    joined = 0
    if not storage.uniform:
        for word in reversed(words):
            joined = joined << storage.word_bits | word
    return StorageParameters(
        storage.word_bits, storage.entries, storage.address_bits, max(1, reads), storage.read_latency_cycles,
        storage.forwards, style == "ecp5" and storage.style == "block", storage.uniform, words[0], joined,
    )


def folded(given: StorageParameters, words: int) -> StorageParameters:
    """With room for so many words alone, a power of two."""
    return replace(given, entries=words, address_bits=max(1, (words - 1).bit_length()))


def storage_instance(place: StoragePlace, control: Control, style: Style, name: str) -> list[str]:
    """The memory itself, connected to its signals."""
    given = storage_parameters(place.storage, len(place.reads), style)
    settings = {
        "WIDTH": str(given.width), "ENTRIES": str(given.entries), "ADDRESS": str(given.address_bits),
        "READS": str(given.reads), "LATENCY": str(given.latency_cycles), "FORWARD": str(int(given.forwards)),
        "BLOCKS": str(int(given.blocks)), "UNIFORM": str(int(given.uniform)),
        "FILL": constant(given.fill, given.width), "INITIAL": constant(given.initial, given.initial_bits),
    }
    clears = place.storage.initial is not None and control.clear_cycles > 0
    stem, bits = place.stem, given.address_bits
    pins = {
        "clk": "clk", "ce": "advance" if control.advance else "1'b1",
        "clear": "clear" if clears else "1'b0",
        "clear_address": clear_address(control, bits) if clears else constant(0, bits),
        "write": f"{stem}_write", "write_address": f"{stem}_write_address",
        "write_data": f"{stem}_write_data", "read_address": f"{stem}_read_address", "q": f"{stem}_q",
    }
    parameters = ", ".join(f".{key}({value})" for key, value in settings.items())
    ports = ", ".join(f".{key}({value})" for key, value in pins.items())
    return [f"kera_memory #({parameters}) {name} (", f"  {ports}", ");"]


def clear_address(control: Control, bits: int) -> str:
    """The low bits of the counter that initialises memories, for one that has as many or fewer."""
    own = control.clear_bits
    if bits == own:
        return "clear_address"
    if bits < own:
        return f"clear_address[{bits - 1}:0]" if bits > 1 else "clear_address[0]"
    return "{" + f"{constant(0, bits - own)}, clear_address" + "}"


@dataclass(frozen=True, slots=True)
class StorageSignals:
    """Writes ports' signals: ``read`` spells a vector in a stage, ``moves`` that a stage's item goes on."""

    netlist: Netlist
    plan: Plan
    read: Callable[[Bits, int], str]
    moves: Callable[[int], str]

    def declarations(self, place: StoragePlace) -> list[str]:
        """What reads show, before any stage; signals that are ports of the module are none of these."""
        width = place.storage.word_bits * max(1, len(place.reads))
        return [f"wire {declared_range(width)}{place.stem}_q;"]

    def assignments(self, place: StoragePlace) -> dict[str, tuple[int, str]]:
        """Every signal that drives a port by its suffix: its width, and what it is."""
        storage = place.storage
        enables = [
            f"({self.moves(self._stage(call))} && {self._operand(call, 2)})" for call in place.writes
        ]
        addresses = [self._turns(calls, 0) for calls in reversed(place.reads)]
        address = addresses[0] if len(addresses) == 1 else "{" + ", ".join(addresses) + "}"
        bits = storage.address_bits
        return {
            "_write": (1, " || ".join(enables) or "1'b0"),
            "_write_address": (bits, self._turns(place.writes, 0) if enables else constant(0, bits)),
            "_write_data": (
                storage.word_bits,
                self._turns(place.writes, 1) if enables else constant(0, storage.word_bits),
            ),
            "_read_address": (bits * max(1, len(addresses)), address if addresses else constant(0, bits)),
        }

    def shown(self, place: StoragePlace, call: int) -> str:
        """The word that a reading call gets."""
        width, count = place.storage.word_bits, len(place.reads)
        if count == 1:
            return f"{place.stem}_q"
        port = next(k for k, calls in enumerate(place.reads) if call in calls)
        low = port * width
        return f"{place.stem}_q[{low + width - 1}:{low}]" if width > 1 else f"{place.stem}_q[{low}]"

    def _stage(self, call: int) -> int:
        return self.plan.stage[call]

    def _operand(self, call: int, position: int) -> str:
        return self.read(self.netlist.arguments(call)[position], self._stage(call))

    def _turns(self, calls: Sequence[int], position: int) -> str:
        chosen = self._operand(calls[-1], position)
        for call in reversed(calls[:-1]):
            chosen = f"({valid_name(self._stage(call))} ? {self._operand(call, position)} : {chosen})"
        return chosen

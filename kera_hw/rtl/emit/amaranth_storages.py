"""Memories of a datapath in Amaranth: by instances of the helper modules, or as Amaranth's own.

The latter is what ``kera_memory`` is in Verilog, for Amaranth's simulator: copies of the words, one for each
read port, whose data are handed what is written while they are on their way.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amaranth.hdl import (
    Array,
    Cat,
    ClockSignal,
    Const,
    Instance,
    MemoryData,
    MemoryInstance,
    Module,
    Mux,
    Signal,
    Value,
)

from kera_hw.rtl.emit.layout import Control, StoragePlace, valid_name
from kera_hw.rtl.emit.storages import storage_parameters
from kera_hw.rtl.emit.styles import Style
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Storage
from kera_hw.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class StorageBuilder:
    """Builds a datapath's memories: ``read`` gives a vector in a stage, ``moves`` whether it goes on."""

    netlist: Netlist
    plan: Plan
    control: Control
    given: dict[str, Signal]
    read: Callable[[Bits, int], Value]
    moves: Callable[[int], Value]

    def build(self, m: Module, place: StoragePlace, style: Style) -> list[tuple[int, Value]]:
        """The memory in a module; of every reading call the word that it gets."""
        storage, stem = place.storage, place.stem
        bits, width, count = storage.address_bits, storage.word_bits, max(1, len(place.reads))
        write = Signal(name=f"{stem}_write")
        address, data = Signal(bits, name=f"{stem}_write_address"), Signal(width, name=f"{stem}_write_data")
        asked = [Signal(bits, name=f"{stem}_read_address_{k}") for k in range(count)]
        shown = [Signal(width, name=f"{stem}_q_{k}") for k in range(count)]
        enables = [self.moves(self._stage(call)) & self._operand(call, 2) for call in place.writes]
        if enables:
            m.d.comb += [
                write.eq(Cat(*enables).any()), address.eq(self._turns(place.writes, 0)),
                data.eq(self._turns(place.writes, 1)),
            ]
        for signal, calls in zip(asked, place.reads):
            m.d.comb += signal.eq(self._turns(calls, 0))
        port = _Port(write, address, data, tuple(asked), tuple(shown), *self._clears(m, storage, stem))
        if style == "ecp5":
            self._instance(m, place, port, style)
        else:
            enable = self.given["advance"] if self.control.advance else Const(1)
            _build(m, storage, port, enable, stem)
        return [(call, shown[k]) for k, calls in enumerate(place.reads) for call in calls]

    def _clears(self, m: Module, storage: Storage, stem: str) -> tuple[Value, Value]:
        """Whether the initialisation goes on, and where it is."""
        if storage.initial is None or not self.control.clear_cycles:
            return Const(0), Const(0, storage.address_bits)
        address = Signal(storage.address_bits, name=f"{stem}_clear_address")
        m.d.comb += address.eq(self.given["clear_address"])
        return self.given["clear"], address

    def _instance(self, m: Module, place: StoragePlace, port: _Port, style: Style) -> None:
        given = storage_parameters(place.storage, len(place.reads), style)
        m.submodules[place.stem] = Instance(
            "kera_memory", p_WIDTH=given.width, p_ENTRIES=given.entries, p_ADDRESS=given.address_bits,
            p_READS=given.reads, p_LATENCY=given.latency_cycles, p_FORWARD=int(given.forwards),
            p_BLOCKS=int(given.blocks), p_UNIFORM=int(given.uniform), p_FILL=Const(given.fill, given.width),
            p_INITIAL=Const(given.initial, given.initial_bits), i_clk=ClockSignal(),
            i_ce=self.given["advance"] if self.control.advance else Const(1), i_clear=port.clear,
            i_clear_address=port.clear_address, i_write=port.write, i_write_address=port.address,
            i_write_data=port.data, i_read_address=Cat(*port.asked), o_q=Cat(*port.shown),
        )

    def _stage(self, call: int) -> int:
        return self.plan.stage[call]

    def _operand(self, call: int, position: int) -> Value:
        return self.read(self.netlist.arguments(call)[position], self._stage(call))

    def _turns(self, calls: Sequence[int], position: int) -> Value:
        """The operand of the call whose stage holds an item."""
        chosen = self._operand(calls[-1], position)
        for call in reversed(calls[:-1]):
            chosen = Mux(self.given[valid_name(self._stage(call))], self._operand(call, position), chosen)
        return chosen


@dataclass(frozen=True, slots=True)
class _Port:
    write: Signal
    address: Signal
    data: Signal
    asked: tuple[Signal, ...]
    shown: tuple[Signal, ...]
    clear: Value
    clear_address: Value


def _build(m: Module, storage: Storage, port: _Port, enable: Value, stem: str) -> None:
    """The memory in Amaranth's own terms."""
    inside, width = storage.read_latency_cycles - storage.forwards, storage.word_bits
    words = list(storage.initial or (0,))
    clear, cleared, fresh = port.clear, port.clear_address, Value.cast(Const(words[0], width))
    if not storage.uniform:
        clear, cleared, fresh = _behind(m, port, words, width, stem)
    passed: list[Value] = [port.data]
    for step in range(1, inside + 1 if storage.forwards else 1):
        kept = Signal(width, name=f"{stem}_passed_{step}", reset_less=True)
        with m.If(enable):
            m.d.sync += kept.eq(passed[-1])
        passed.append(kept)
    for number, (address, shown) in enumerate(zip(port.asked, port.shown)):
        init = words if not storage.uniform else words[:1] * storage.entries
        memory = MemoryInstance(
            data=MemoryData(shape=width, depth=storage.entries, init=init),
            attrs={"ram_style": "block" if inside else "distributed"},
        )
        m.submodules[f"{stem}_{number}"] = memory
        memory.write_port(
            domain="sync", addr=Mux(clear, cleared, port.address), data=Mux(clear, fresh, port.data),
            en=clear | port.write,
        )
        stored = Signal(width, name=f"{stem}_stored_{number}")
        if inside == 0:
            memory.read_port(domain="comb", addr=address, data=stored, en=Const(1), transparent_for=())
        else:
            memory.read_port(domain="sync", addr=address, data=stored, en=enable, transparent_for=())
        value: Value = stored
        for step in range(1, inside):
            later = Signal(width, name=f"{stem}_stored_{number}_{step}", reset_less=True)
            with m.If(enable):
                m.d.sync += later.eq(value)
            value = later
        if storage.forwards:
            now, hits = _hits(m, port, address, enable, inside, f"{stem}_hit_{number}")
            for step in range(inside, 0, -1):
                value = Mux(hits[step - 1], passed[step], value)
            last = Signal(width, name=f"{stem}_shown_{number}", reset_less=True)
            with m.If(enable):
                m.d.sync += last.eq(Mux(now, port.data, value))
            value = last
        m.d.comb += shown.eq(value)


def _behind(
    m: Module, port: _Port, words: Sequence[int], width: int, stem: str
) -> tuple[Value, Value, Value]:
    """The initialisation a clock later, with the word of a table."""
    clear = Signal(name=f"{stem}_clears", reset_less=True)
    address = Signal(len(port.clear_address), name=f"{stem}_cleared", reset_less=True)
    word = Signal(width, name=f"{stem}_initial", reset_less=True)
    table = Array(Const(value, width) for value in words)
    m.d.sync += [
        clear.eq(port.clear), address.eq(port.clear_address), word.eq(table[port.clear_address]),
    ]
    return clear, address, word


def _hits(
    m: Module, port: _Port, address: Signal, enable: Value, inside: int, stem: str
) -> tuple[Value, list[Value]]:
    """When a copy shows its word: whether that written now, and those of so many clocks before, are it."""
    asked: Value = address
    hits: list[Value] = []
    for step in range(inside):
        own = Signal(step + 1, name=f"{stem}_{step}", reset_less=True)
        with m.If(enable):
            m.d.sync += own.eq(Cat(port.write & (port.address == asked), *hits))
        hits = [own[k] for k in range(step + 1)]
        kept = Signal(len(address), name=f"{stem}_asked_{step}", reset_less=True)
        with m.If(enable):
            m.d.sync += kept.eq(asked)
        asked = kept
    return port.write & (port.address == asked), hits

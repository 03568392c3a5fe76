"""A design behind an AXI4-Lite port: registers and memory that software writes and reads, and control.

The address space is that of ``register_map``. An item is run at a time: its parameters are sent into the
channels, its results taken off them, words of memory one a cycle. Every access is answered: what lies
nowhere, what is not a multiple of four, and writing what cannot be written, by SLVERR and without effect.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory, ReadPort, WritePort

from kera_hw.rtl.emit.channels import Endpoint, in_reset, own_domain
from kera_hw.rtl.emit.ports import AXI_LITE, BYTE_BITS, INTERRUPT, WORD_BITS, PortPlan
from kera_hw.rtl.emit.register_map import (
    AUTO_RESTART_BIT,
    CONTROL,
    DONE_BIT,
    GLOBAL_INTERRUPT,
    IDLE_BIT,
    INTERRUPT_ENABLE,
    INTERRUPT_STATUS,
    READY_BIT,
    START_BIT,
    WORD_BYTES,
    Entry,
    Piece,
    RegisterMap,
    beat_entry,
)

_OKAY, _SLVERR = 0, 2
# A word that is read while it is written may be either: software does not, and blocks differ in that.
_IN_BLOCKS = {"ram_style": "block", "no_rw_check": 1}
_EVENTS = 2  # done and ready, in the bits of the interrupts


@dataclass(frozen=True, slots=True)
class _Write:
    """Writing a word: where, when, what, which bytes of it; ``hits`` are the words that there are."""

    address: Signal
    now: Signal
    data: Signal
    strobes: Signal
    hits: list[Value]


@dataclass(frozen=True, slots=True)
class _Read:
    """Reading a word: memory is looked into when ``looks``, never while ``blocked``; then it is answered.

    ``words`` are what is read, each with when it is meant.
    """

    address: Signal
    now: Signal
    looks: Signal
    blocked: Signal
    hits: list[Value]
    words: list[tuple[Value, Value]]


@dataclass(frozen=True, slots=True)
class _Window:
    """A memory in the address space, with its two ports and whether a channel is using it."""

    entry: Entry
    reads: ReadPort
    writes: WritePort
    busy: Signal


class Channelled(Protocol):
    """A circuit with channels, which ``build`` adds to a module."""

    endpoints: tuple[Endpoint, ...]
    plan: PortPlan

    def build(self, module: Module) -> None: ...


class AxiLiteShell(Elaboratable):
    """The top module."""

    def __init__(self, core: Channelled) -> None:
        self.core, self.plan = core, core.plan
        self.map = RegisterMap.of(self.plan)
        self.signals = {port.name: Signal(port.width, name=port.name) for port in self.plan.ports}

    def ports(self) -> list[Signal]:
        """All ports in the order of the Verilog module."""
        return list(self.signals.values())

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        own_domain(m, self.signals[self.plan.clock], self.plan.reset, self.signals)
        self.core.build(m)
        write, read = self._write_side(m), self._read_side(m)
        launches, flags = self._control(m, write, read)
        registers = self._registers(m, write, read)
        for end, flag in zip(self.core.endpoints, flags, strict=True):
            entries = [entry for entry in self.map.entries if entry.channel.name == end.channel.name]
            with m.If(launches):
                m.d.sync += flag.eq(1)
            if end.channel.in_beats:
                window = self._window(m, entries[0], flag, write, read)
                feed = self._feed if end.channel.direction == "input" else self._drain
                feed(m, window, end)
            elif end.channel.direction == "input":
                values = Cat(*(registers[entry.value.bus] for entry in entries))
                m.d.comb += [end.valid.eq(flag), end.data.eq(values)]
                with m.If(flag & end.ready):
                    m.d.sync += flag.eq(0)
            else:
                m.d.comb += end.ready.eq(flag)
                with m.If(flag & end.valid):
                    m.d.sync += flag.eq(0)
                    low = 0
                    for entry in entries:
                        m.d.sync += registers[entry.value.bus].eq(end.data[low : low + entry.value.width])
                        low += entry.value.width
        self._answers(m, write, read)
        return m

    def _bus(self, name: str) -> Signal:
        return self.signals[f"{AXI_LITE}_{name}"]

    def _write_side(self, m: Module) -> _Write:
        """Address and data, each kept until the other is there and the last answer is taken."""
        address = Signal(self.map.address_bits, name="write_address", reset_less=True)
        data = Signal(WORD_BITS, name="write_data", reset_less=True)
        strobes = Signal(WORD_BYTES, name="write_strobes", reset_less=True)
        have_address, have_data = Signal(name="write_address_kept"), Signal(name="write_data_kept")
        now = Signal(name="write_now")
        m.d.comb += [
            self._bus("awready").eq(~have_address & ~in_reset()),
            self._bus("wready").eq(~have_data & ~in_reset()),
            now.eq(have_address & have_data & (~self._bus("bvalid") | self._bus("bready"))),
        ]
        with m.If(now):
            m.d.sync += [have_address.eq(0), have_data.eq(0)]
        with m.If(self._bus("awvalid") & self._bus("awready")):
            m.d.sync += [have_address.eq(1), address.eq(self._bus("awaddr"))]
        with m.If(self._bus("wvalid") & self._bus("wready")):
            m.d.sync += [have_data.eq(1), data.eq(self._bus("wdata")), strobes.eq(self._bus("wstrb"))]
        return _Write(address, now, data, strobes, [])

    def _read_side(self, m: Module) -> _Read:
        """An address, looked up in a cycle (memory needs one) and answered in the next."""
        address = Signal(self.map.address_bits, name="read_address", reset_less=True)
        kept, looked = Signal(name="read_address_kept"), Signal(name="read_looked")
        looks, blocked, now = Signal(name="read_looks"), Signal(name="read_blocked"), Signal(name="read_now")
        m.d.comb += [
            self._bus("arready").eq(~kept & ~in_reset()), looks.eq(kept & ~looked & ~blocked),
            now.eq(looked & (~self._bus("rvalid") | self._bus("rready"))),
        ]
        with m.If(self._bus("arvalid") & self._bus("arready")):
            m.d.sync += [kept.eq(1), address.eq(self._bus("araddr"))]
        with m.If(looks):
            m.d.sync += looked.eq(1)
        with m.If(now):
            m.d.sync += [kept.eq(0), looked.eq(0)]
        return _Read(address, now, looks, blocked, [], [])

    def _answers(self, m: Module, write: _Write, read: _Read) -> None:
        """The two channels of answers."""
        for access, valid, ready, response in (
            (write, "bvalid", "bready", "bresp"), (read, "rvalid", "rready", "rresp"),
        ):
            allowed = Cat(*access.hits).any() & _aligned(access)
            with m.If(access.now):
                m.d.sync += [self._bus(valid).eq(1), self._bus(response).eq(Mux(allowed, _OKAY, _SLVERR))]
            with m.Elif(self._bus(ready)):
                m.d.sync += self._bus(valid).eq(0)
        found: Value = Const(0, WORD_BITS)
        for meant, value in read.words:
            found = found | Mux(meant, value, 0)
        with m.If(read.now):
            m.d.sync += self._bus("rdata").eq(Mux(_aligned(read), found, 0))

    def _control(self, m: Module, write: _Write, read: _Read) -> tuple[Signal, list[Signal]]:
        """Start, done, idle, ready and the interrupt; whether an item begins, and which channels are busy."""
        start, busy, auto = Signal(name="start"), Signal(name="busy"), Signal(name="auto_restart")
        seen, happens = Signal(_EVENTS, name="seen"), Signal(_EVENTS, name="happens")
        enable, status = Signal(_EVENTS, name="interrupt_enable"), Signal(_EVENTS, name="interrupt_status")
        everything = Signal(name="interrupts_enabled")
        launches, sending, sent = Signal(name="launches"), Signal(name="sending"), Signal(name="was_sending")
        pending = [Signal(name=f"{channel.name}_pending") for channel in self.plan.inputs]
        waiting = [Signal(name=f"{channel.name}_waiting") for channel in self.plan.outputs]
        m.d.comb += [
            launches.eq(start & ~busy), sending.eq(Cat(*pending).any()),
            happens.eq(Cat(busy & ~Cat(*waiting).any(), sent & ~sending)),
            self.signals[INTERRUPT].eq(everything & status.any()),
        ]
        m.d.sync += sent.eq(sending)
        with m.If(launches):
            m.d.sync += busy.eq(1)
        with m.Elif(happens[0]):
            m.d.sync += busy.eq(0)
        with m.If(happens[1] & ~auto):
            m.d.sync += start.eq(0)

        def at(access: _Write | _Read, offset: int) -> Value:
            return access.address == offset

        writes = {
            offset: at(write, offset) & write.now & write.strobes[0]
            for offset in (CONTROL, GLOBAL_INTERRUPT, INTERRUPT_ENABLE, INTERRUPT_STATUS)
        }
        with m.If(writes[CONTROL]):
            m.d.sync += auto.eq(write.data[AUTO_RESTART_BIT])
            with m.If(write.data[START_BIT]):
                m.d.sync += start.eq(1)
        with m.If(writes[GLOBAL_INTERRUPT]):
            m.d.sync += everything.eq(write.data[0])
        with m.If(writes[INTERRUPT_ENABLE]):
            m.d.sync += enable.eq(write.data[:_EVENTS])
        toggled = Mux(writes[INTERRUPT_STATUS], write.data[:_EVENTS], 0)
        m.d.sync += status.eq((status ^ toggled) | (happens & enable))
        cleared = at(read, CONTROL) & read.now  # done and ready are told once
        m.d.sync += seen.eq(Mux(cleared, 0, seen) | happens)
        control = {START_BIT: start, DONE_BIT: seen[0], IDLE_BIT: ~busy & ~start, READY_BIT: seen[1],
                   AUTO_RESTART_BIT: auto}  # fmt: skip
        bits = [control.get(bit, Const(0, 1)) for bit in range(AUTO_RESTART_BIT + 1)]
        words: list[tuple[int, Value]] = [
            (CONTROL, Cat(*bits)), (GLOBAL_INTERRUPT, everything), (INTERRUPT_ENABLE, enable),
            (INTERRUPT_STATUS, status),
        ]
        read.words.extend((at(read, offset), value) for offset, value in words)
        for access in (write, read):
            access.hits.append(access.address[4:] == 0)
        return launches, [*pending, *waiting]

    def _registers(self, m: Module, write: _Write, read: _Read) -> dict[str, Signal]:
        """A register for each small value."""
        registers: dict[str, Signal] = {}
        for entry in self.map.registers:
            register = Signal(entry.value.width, name=f"{entry.value.bus}_register")
            registers[entry.value.bus] = register
            for number in range(entry.words):
                offset, pieces = entry.offset + number * WORD_BYTES, entry.pieces(number)
                meant = read.address[2:] == offset // WORD_BYTES
                read.hits.append(meant)
                read.words.append((meant, _word(register, pieces)))
                if not entry.is_parameter:
                    continue
                target = write.address[2:] == offset // WORD_BYTES
                write.hits.append(target)
                for byte in range(WORD_BYTES):
                    with m.If(write.now & target & write.strobes[byte] & _aligned(write)):
                        for bits, given in _taken(register, pieces, write.data, byte):
                            m.d.sync += bits.eq(given)
        return registers

    def _window(self, m: Module, entry: Entry, busy: Signal, write: _Write, read: _Read) -> _Window:
        """A tensor's memory, in block RAM, and how software reaches it."""
        memory = Memory(shape=WORD_BITS, depth=entry.words, init=[], attrs=_IN_BLOCKS)
        m.submodules[f"ram_{entry.value.bus}"] = memory
        window = _Window(entry, memory.read_port(), memory.write_port(granularity=BYTE_BITS), busy)
        bits = (entry.words * WORD_BYTES - 1).bit_length()

        def meant(access: _Write | _Read) -> Value:
            inside = access.address[bits:] == entry.offset >> bits
            return inside & (access.address[2:bits] <= entry.words - 1)

        hit = Signal(name=f"{entry.value.bus}_read")
        m.d.comb += hit.eq(meant(read))
        read.hits.append(hit)
        read.words.append((hit, window.reads.data))
        if entry.is_parameter:
            target = Signal(name=f"{entry.value.bus}_written")
            m.d.comb += target.eq(meant(write))
            write.hits.append(target)
            allowed = write.now & target & _aligned(write)
            m.d.comb += [
                window.writes.addr.eq(write.address[2:bits]), window.writes.data.eq(write.data),
                window.writes.en.eq(Mux(allowed, write.strobes, 0)),
            ]
            with m.If(hit & busy):
                m.d.comb += read.blocked.eq(1)
        m.d.comb += [window.reads.addr.eq(read.address[2:bits]), window.reads.en.eq(read.looks & hit)]
        return window

    def _feed(self, m: Module, window: _Window, end: Endpoint) -> None:
        """Sends the words of a parameter's memory into its channel."""
        entry, name = window.entry, end.channel.name
        parts, shares = entry.parts, entry.beats_a_word
        word, have = Signal(range(entry.words + 1), name=f"{name}_word"), Signal(name=f"{name}_have")
        part, goes = Signal(range(parts), name=f"{name}_part"), Signal(name=f"{name}_goes")
        share, spent = Signal(range(shares), name=f"{name}_share"), Signal(name=f"{name}_spent")
        last = Signal(name=f"{name}_word_last")
        beat = beat_entry(entry)
        kept = [Signal(WORD_BITS, name=f"{name}_part_{k}", reset_less=True) for k in range(parts - 1)]
        shown: Value = window.reads.data
        for k in range(1, shares):
            low = k * WORD_BITS // shares
            shown = Mux(share == k, Cat(window.reads.data[low:], Const(0, low)), shown)
        whole = Signal(name=f"{name}_beat_whole")
        m.d.comb += [
            last.eq(word == entry.words),
            spent.eq((share == shares - 1) | (last & (share == (end.channel.beats - 1) % shares))),
            whole.eq(have & (part == parts - 1)), end.valid.eq(whole),
            goes.eq(have & (~whole | (end.ready & spent))), end.data.eq(_from_words(beat, [*kept, shown])),
        ]
        with m.If(window.busy):
            m.d.comb += [window.reads.addr.eq(word), window.reads.en.eq(~last & (~have | goes))]
            with m.If(window.reads.en):
                m.d.sync += [word.eq((word + 1)[: len(word)]), have.eq(1)]
            with m.Elif(goes):
                m.d.sync += have.eq(0)
                with m.If(last):
                    m.d.sync += [word.eq(0), window.busy.eq(0)]
        with m.If(whole & end.ready):
            m.d.sync += share.eq(Mux(spent, 0, share + 1))
        with m.If(goes):
            m.d.sync += part.eq(Mux(part == parts - 1, 0, part + 1))
            for k, register in enumerate(kept):
                with m.If(part == k):
                    m.d.sync += register.eq(window.reads.data)

    def _drain(self, m: Module, window: _Window, end: Endpoint) -> None:
        """Takes a result's beats into its memory."""
        entry, name = window.entry, end.channel.name
        parts, shares = entry.parts, entry.beats_a_word
        word = Signal(range(entry.words), name=f"{name}_word")
        part = Signal(range(parts), name=f"{name}_part")
        share = Signal(range(shares), name=f"{name}_share")
        beat, taken = beat_entry(entry), Signal(name=f"{name}_stored")
        size = WORD_BITS // shares
        strobes = Cat(*(
            (share == k).replicate(WORD_BYTES // shares) for k in range(shares)
        )) if shares > 1 else Const(-1, WORD_BYTES)
        m.d.comb += [
            taken.eq(window.busy & end.valid), end.ready.eq(window.busy & (part == parts - 1)),
            window.writes.addr.eq(word), window.writes.en.eq(Mux(taken, strobes, 0)),
        ]
        for k in range(parts):
            with m.If(part == k):
                m.d.comb += window.writes.data.eq(
                    _word(end.data, beat.pieces(k))[:size].replicate(shares)
                )
        with m.If(taken):
            m.d.sync += [
                part.eq(Mux(part == parts - 1, 0, part + 1)),
                share.eq(Mux(share == shares - 1, 0, share + 1)),
            ]
            with m.If(share == shares - 1):
                m.d.sync += word.eq((word + 1)[: len(word)])
            with m.If(end.ready & end.last):
                m.d.sync += [word.eq(0), share.eq(0), window.busy.eq(0)]


def _word(bits: Value, pieces: Sequence[Piece]) -> Value:
    """A word as software reads it."""
    parts: list[Value] = []
    filled = 0
    for piece in pieces:
        end = piece.word_low + piece.width
        top = piece.extended if piece.signed else end
        sign = bits[piece.value_low + piece.width - 1]
        parts += [
            Const(0, piece.word_low - filled), bits[piece.value_low : piece.value_low + piece.width],
            sign.replicate(top - end),
        ]
        filled = top
    return Cat(*parts, Const(0, WORD_BITS - filled))


def _taken(
    register: Signal, pieces: Sequence[Piece], data: Value, byte: int
) -> Iterator[tuple[Value, Value]]:
    """The bits of a register that a byte of the word holds, and those bits; a sign alone is not written."""
    low, high = byte * BYTE_BITS, (byte + 1) * BYTE_BITS
    for piece in pieces:
        first, last = max(low, piece.word_low), min(high, piece.word_low + piece.width)
        if first < last and not piece.repeats:
            place = piece.value_low + first - piece.word_low
            yield register[place : place + last - first], data[first:last]


def _aligned(access: _Write | _Read) -> Value:
    """Whether an address is that of a word."""
    return access.address[:2] == 0


def _from_words(entry: Entry, words: Sequence[Value]) -> Value:
    """The bits of a value from its words."""
    pieces = [(word, piece) for number, word in enumerate(words) for piece in entry.pieces(number)]
    return Cat(*(
        word[piece.word_low : piece.word_low + piece.width] for word, piece in pieces if not piece.repeats
    ))

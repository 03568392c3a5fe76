"""Which ports a scheduled netlist has, and what stands between them and its pipeline costs."""
from __future__ import annotations

from dataclasses import dataclass, replace

from kera_hw.graph.node import Export
from kera_hw.rtl.emit.layout import control_of
from kera_hw.rtl.emit.ports import BYTE_BITS, WORD_BITS, Interface, PortPlan, Value, plan_ports
from kera_hw.rtl.emit.register_map import Entry, RegisterMap, beat_entry
from kera_hw.rtl.emit.rounds import Rounds
from kera_hw.rtl.lower.ports import parameter_buses, result_buses
from kera_hw.schedule.fpga.bits import bits_width
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units.memory import block_shape
from kera_hw.schedule.plan import Plan
from kera_hw.types import FixType, IntType, TensorType, Type


def netlist_ports(
    netlist: Netlist, plan: Plan, interface: Interface, export: Export | None = None,
    lanes: int | None = None, rounds: Rounds | None = None,
) -> PortPlan:
    """The ports; ``export`` says which buses are tensors, ``lanes`` how many elements a beat holds.

    With ``rounds`` the netlist is one round of a loop.
    """
    protocol = control_of(netlist, plan, interface).protocol
    types = {} if export is None else {**dict(parameter_buses(export)), **dict(result_buses(export))}
    given, made, interval = netlist.inputs, netlist.outputs, plan.initiation_interval
    if rounds is not None:
        given, made = given[len(rounds.flags) :], made[1:]
        interval = rounds.initiation_interval(plan.latency_cycles, interval, rounds.least)
    inputs = [value_of(k, bus, width, types.get(bus)) for k, (bus, width) in enumerate(given)]
    outputs = [
        value_of(k, out.bus, bits_width(out.bits), types.get(out.bus)) for k, out in enumerate(made)
    ]
    return addressed(plan_ports(inputs, outputs, interface, protocol, interval, lanes))


def value_of(position: int, bus: str, width: int, kind: Type | None) -> Value:
    """A parameter or a result, of a type that is known or not."""
    tensor = isinstance(kind, TensorType)
    element = kind.element if tensor else kind
    signed = isinstance(element, (IntType, FixType)) and element.signed
    return Value(bus, width, position, kind.size if tensor else 1, tensor, signed)


def addressed(ports: PortPlan) -> PortPlan:
    """The ports with as many bits of address as there are places for software."""
    if ports.interface != "axi-lite":
        return ports
    return replace(ports, address_bits=RegisterMap.of(ports).address_bits)


@dataclass(frozen=True, slots=True)
class ShellCost:
    """What surrounds a circuit that takes whole items."""

    lut: float
    ff: int
    bram: int = 0

    def __add__(self, other: ShellCost) -> ShellCost:
        return ShellCost(self.lut + other.lut, self.ff + other.ff, self.bram + other.bram)


_NOTHING = ShellCost(0, 0)


def shell_cost(plan: PortPlan, device: Device) -> ShellCost:
    """What collectors, serialisers and the port take: a bit kept is a flip-flop, a bit chosen a LUT."""
    if not plan.surrounds_core:
        return _NOTHING
    total = _NOTHING
    for channel in plan.inputs:
        beats, width = channel.beats, channel.beat_bits
        kept = beats if plan.collects_whole else beats - 1
        total += ShellCost(_counter_luts(kept), kept * width + kept.bit_length())
        if plan.registered_ready:
            total += ShellCost(width + 2, width + 1)
    several = len(plan.outputs) > 1
    for channel in plan.outputs:
        rest, width = channel.beats - 1, channel.beat_bits
        padding = channel.beats * width - sum(value.width for value in channel.values)  # zeros all the time
        kept = rest * width - padding + 1 if rest else 0  # and whether the channel is free
        total += ShellCost(
            rest * width + _counter_luts(rest) + 2 * several, kept + rest.bit_length() + several
        )
    return total + axi_lite_cost(plan, device) if plan.interface == "axi-lite" else total


def _counter_luts(most: int) -> int:
    """LUTs that count to ``most`` and tell the end."""
    return 2 * most.bit_length() + 2 if most else 1


# Measured on designs with registers and memories: control, a register's word, a memory, a bit to be read.
_CONTROL_LUTS, _WORD_LUTS, _MEMORY_LUTS, _READ_BIT_LUTS = 60, 6, 64, 0.75
_CONTROL_FFS = 11
_HANDSHAKE_FFS = 8  # what is kept of an access, and its answer
_CONTROL_BITS = ((0, 7), (0,), (0, 1), (0, 1))  # written, in the words of control
_CONTROL_READ = (0b10001111, 0b1, 0b11, 0b11)


def axi_lite_cost(plan: PortPlan, device: Device) -> ShellCost:
    """What is kept of accesses, registers of values, memories and their counters, and what chooses a word."""
    space = RegisterMap.of(plan)
    written = {bit for bits in _CONTROL_BITS for bit in bits}
    strobes = {0}
    # For each bit of a word that is read, where it comes from; bits of the same sources are one.
    sources: list[list[tuple[str, int]]] = [[] for _ in range(WORD_BITS)]
    for number, mask in enumerate(_CONTROL_READ):
        for bit in range(WORD_BITS):
            if mask >> bit & 1:
                sources[bit].append((f"control{number}", bit))
    lut, ff, bram = float(_CONTROL_LUTS), _CONTROL_FFS + _HANDSHAKE_FFS + len(plan.channels), 0
    for entry in space.entries:
        if entry.memory:
            bram += _blocks(entry.words, device)
            lut += _MEMORY_LUTS
            ff += _memory_ffs(entry)
            for bit in range(WORD_BITS):
                sources[bit].append((entry.name, bit))
        else:
            ff += entry.value.width
        for number in range(entry.words if not entry.memory else 0):
            lut += _WORD_LUTS
            for piece in entry.pieces(number):
                end = piece.word_low + piece.width
                for bit in range(piece.word_low, piece.extended if piece.signed else end):
                    place = piece.value_low + min(bit - piece.word_low, piece.width - 1)
                    sources[bit].append((entry.name, place))
                if entry.is_parameter:
                    written.update(range(piece.word_low, end))
        if entry.memory and entry.is_parameter:
            written.update(range(WORD_BITS))
    strobes.update(bit // BYTE_BITS for bit in written)
    read = {tuple(found): len(found) for found in sources if found}
    lut += _READ_BIT_LUTS * sum(read.values())
    ff += 2 * space.address_bits + len(written) + len(strobes) + len(read)
    return ShellCost(lut, ff, bram)


def _blocks(words: int, device: Device) -> int:
    """Block RAMs of a memory."""
    _, width = block_shape(words, device)
    if width:
        return -(-WORD_BITS // width)
    return -(-words * WORD_BITS // max(1, device.area.bram_bits))


def _memory_ffs(entry: Entry) -> int:
    """The counters beside a memory, and the words of an element that are kept until its last is there."""
    parts, shares = entry.parts, (entry.beats_a_word - 1).bit_length()
    if not entry.is_parameter:
        return (entry.words - 1).bit_length() + (parts - 1).bit_length() + shares
    beat = beat_entry(entry)
    kept = sum(piece.width for number in range(parts - 1) for piece in beat.pieces(number))
    return entry.words.bit_length() + 1 + (parts - 1).bit_length() + shares + kept

"""The ports of a design, described once: emitters write them, benches drive them, reports and maps read them.

What an item consists of are *values*: a parameter or a result each, packed into bits. Values travel on
*channels*. Small ones share a group, which moves in one beat, each on a bus of its own; a tensor of more than
``widths.WIDEST_VALUE_BITS`` is a channel of its own, which moves ``lanes`` elements a beat, row-major, the
last beat padded with zeros. Channels are independent: a neighbour may serve them in any order.

The *bundles* are the ports as an interface has them: ready, valid and what they move. ``stream`` has a bundle
a channel; ``axis`` has the same as AXI4-Streams; ``none`` has groups alone, with valid bits or without.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from kera_hw.rtl.lower import ports as widths

Interface = Literal["stream", "none", "axis", "axi-lite"]
Direction = Literal["input", "output"]
Protocol = Literal["stream", "valid", "none"]
"""How items come and go: by valid and ready, by valid alone (nothing stalls), or one in every cycle."""

BYTE_BITS = 8
WORD_BITS = 32
"""Bits of a word on an AXI4-Lite port."""
AXI_LITE, INTERRUPT = "s_axi", "irq"
"""What the signals of an AXI4-Lite port begin with, and the interrupt beside it."""
_STARTING, _ENDING = 3, 2
"""Cycles from the write that starts an item to its first word, and from the last word to the interrupt."""
WHOLE_RESULT = "out_data"
"""The bus of a result that is no tuple."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port of the top module; ``direction`` is "input" or "output"."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True, slots=True)
class Reset:
    """The synchronous reset."""

    name: str
    active_low: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A parameter or a result as bits: ``bus`` names it everywhere inside, as in ``in_x`` or ``out_data``.

    ``position`` is its place among the parameters or results. Of a tensor, ``elements`` of ``element_bits``
    each lie side by side; of another value, the whole is one. ``signed`` elements are two's complement.
    """

    bus: str
    width: int
    position: int = 0
    elements: int = 1
    tensor: bool = False
    signed: bool = False

    @property
    def element_bits(self) -> int:
        """Bits of one element."""
        return self.width // self.elements

    @property
    def needs_beats(self) -> bool:
        """Whether it is too wide for a bus."""
        return self.tensor and self.width > widths.WIDEST_VALUE_BITS


@dataclass(frozen=True, slots=True)
class Channel:
    """What moves together by one valid and one ready: a group (``lanes`` is 0), or one tensor in beats.

    The names of its signals begin with ``name``: ``in``, ``in_image``, ``out``, ``out_1``.
    """

    name: str
    direction: Direction
    values: tuple[Value, ...]
    lanes: int = 0

    @property
    def in_beats(self) -> bool:
        """Whether it carries one tensor, ``lanes`` elements a beat."""
        return self.lanes > 0

    @property
    def beats(self) -> int:
        """Beats of an item."""
        return -(-self.values[0].elements // self.lanes) if self.in_beats else 1

    @property
    def words(self) -> int:
        """Words of memory that software has for it, where it comes in beats."""
        value = self.values[0]
        return -(-container_bytes(value.element_bits) * BYTE_BITS * value.elements // WORD_BITS)

    @property
    def beat_bits(self) -> int:
        """Bits of a beat, without what marks the last one."""
        if self.in_beats:
            return self.lanes * self.values[0].element_bits
        return sum(value.width for value in self.values)

    def to_json(self) -> dict[str, object]:
        """Plain JSON object."""
        return {
            "name": self.name, "direction": self.direction, "values": [value.bus for value in self.values],
            "beats": self.beats, "lanes": self.lanes or None, "beat_bits": self.beat_bits,
        }


@dataclass(frozen=True, slots=True)
class Bundle:
    """Ports that move together: ``payload`` when ``valid`` and ``ready`` are high, as far as there are such.

    ``last`` is high with the last beat of an item. The payload of a channel in beats is one port of its bits;
    that of a group is a port for each value, or with ``packed`` one that holds them side by side, the first
    lowest; bits above those are zeros.
    """

    channel: Channel
    payload: tuple[Port, ...]
    valid: str | None = None
    ready: str | None = None
    last: str | None = None
    packed: bool = False

    @property
    def ports(self) -> tuple[Port, ...]:
        """All its ports in the order of the module."""
        back: Direction = "output" if self.channel.direction == "input" else "input"
        signals = [(self.valid, self.channel.direction), (self.ready, back)]
        control = [Port(name, direction, 1) for name, direction in signals if name is not None]
        last = [] if self.last is None else [Port(self.last, self.channel.direction, 1)]
        return (*control, *self.payload, *last)


@dataclass(frozen=True, slots=True)
class Pace:
    """When items come and go, in cycles, nothing stalling.

    ``latency_cycles`` from the first accepted beat of an item to the first beat of its result,
    ``item_cycles`` to the last one; an item comes every ``initiation_interval``.
    """

    latency_cycles: int
    item_cycles: int
    initiation_interval: int


@dataclass(frozen=True, slots=True)
class Core:
    """The module inside that takes whole items by ``in_valid`` and ``in_ready``, and its pace.

    With ``own_pace`` each item has a latency of its own, this one at the most, and the next may come when its
    result is taken; of several ``units`` that take items in turn, when that of so many items before is.
    """

    module: str
    latency_cycles: int
    initiation_interval: int
    own_pace: bool = False
    units: int = 1


@dataclass(frozen=True, slots=True)
class PortPlan:
    """All ports of a design: inputs before outputs, among them the group first."""

    interface: Interface
    protocol: Protocol
    channels: tuple[Channel, ...]
    address_bits: int = 0
    """Of an AXI4-Lite port."""

    @property
    def inputs(self) -> tuple[Channel, ...]:
        """Channels that bring items."""
        return tuple(channel for channel in self.channels if channel.direction == "input")

    @property
    def outputs(self) -> tuple[Channel, ...]:
        """Channels that take results away."""
        return tuple(channel for channel in self.channels if channel.direction == "output")

    @property
    def in_beats(self) -> bool:
        """Whether any channel takes beats."""
        return any(channel.in_beats for channel in self.channels)

    @property
    def surrounds_core(self) -> bool:
        """Whether the ports differ from those of a circuit that takes whole items."""
        return self.in_beats or self.interface in ("axis", "axi-lite")

    @property
    def collects_whole(self) -> bool:
        """Whether all beats of an item are kept until the last has come: where channels wait for each other.

        A channel that is alone hands its last beat on as it comes.
        """
        return len(self.inputs) > 1

    @property
    def registered_ready(self) -> bool:
        """Whether no ready follows another within a cycle, as AXI wants it: a beat may have to be kept."""
        return self.interface == "axis"

    @property
    def clock(self) -> str:
        """The clock's port."""
        return "aclk" if self.interface in ("axis", "axi-lite") else "clk"

    @property
    def reset(self) -> Reset | None:
        """The reset, where there is one."""
        if self.interface in ("axis", "axi-lite"):
            return Reset("aresetn", active_low=True)
        return None if self.protocol == "none" else Reset("rst")

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """The ports of every channel, in the order of ``channels``, or of the five of AXI4-Lite."""
        if self.interface == "axi-lite":
            return tuple(_axi_lite(self.address_bits))
        make = _axi_stream if self.interface == "axis" else self._stream
        return tuple(map(make, self.channels))

    def _stream(self, channel: Channel) -> Bundle:
        name, direction = channel.name, channel.direction
        valid = None if self.protocol == "none" else f"{name}_valid"
        ready = f"{name}_ready" if self.protocol == "stream" else None
        if channel.in_beats:
            data = Port(f"{name}_data", direction, channel.beat_bits)
            return Bundle(channel, (data,), valid, ready, f"{name}_last")
        buses = tuple(Port(value.bus, direction, value.width) for value in channel.values)
        return Bundle(channel, buses, valid, ready)

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports in the order of the module."""
        reset = [] if self.reset is None else [Port(self.reset.name, "input", 1)]
        bundles = (port for bundle in self.bundles for port in bundle.ports)
        interrupt = [Port(INTERRUPT, "output", 1)] if self.interface == "axi-lite" else []
        return (Port(self.clock, "input", 1), *reset, *bundles, *interrupt)

    def software_pace(self, pace: Pace) -> Pace:
        """The pace on an AXI4-Lite port of a circuit that works on beats at that pace, one in every cycle."""
        cycles = _STARTING + any(channel.in_beats for channel in self.inputs) + pace.item_cycles + _ENDING
        return Pace(cycles, cycles, cycles - _ENDING)

    def _software_pace(self, latency_cycles: int) -> Pace:
        """Words of memory are fed and drained one a cycle; to begin and to end takes cycles of its own."""
        fed, drained = (
            max(max(channel.words, channel.beats) if channel.in_beats else least for channel in channels)
            for channels, least in ((self.inputs, 0), (self.outputs, 1))
        )
        cycles = _STARTING + fed + self.collects_whole + latency_cycles + drained - 1 + _ENDING
        return Pace(cycles, cycles, cycles - _ENDING)

    @property
    def clashes(self) -> tuple[str, ...]:
        """Names that two ports would have."""
        names = sorted(port.name for port in self.ports)
        return tuple(dict.fromkeys(one for one, two in pairwise(names) if one == two))

    def pace(self, latency_cycles: int, initiation_interval: int) -> Pace:
        """The pace at the ports, of a circuit that takes whole items in one beat at the pace given.

        On an AXI4-Lite port, the latency is that from the write that starts an item to the interrupt.
        """
        into = max(channel.beats for channel in self.inputs)
        out = max(channel.beats for channel in self.outputs)
        waits = into if self.collects_whole else into - 1
        if self.interface == "axi-lite":
            return self._software_pace(latency_cycles)
        interval = max(initiation_interval, into, out)
        return Pace(waits + latency_cycles, waits + latency_cycles + out - 1, interval)


def _axi_stream(channel: Channel) -> Bundle:
    """The channel as an AXI4-Stream: its data padded to bytes, the last beat of an item marked."""
    side = "s_axis" if channel.direction == "input" else "m_axis"
    name = side + channel.name.removeprefix("in" if channel.direction == "input" else "out")
    width = BYTE_BITS * max(1, -(-channel.beat_bits // BYTE_BITS))
    data = Port(f"{name}_tdata", channel.direction, width)
    return Bundle(channel, (data,), f"{name}_tvalid", f"{name}_tready", f"{name}_tlast", packed=True)


def _axi_lite(address_bits: int) -> Iterator[Bundle]:
    """The five channels of an AXI4-Lite port: addresses and data, each way, and what comes of writing."""
    rows: tuple[tuple[str, Direction, tuple[tuple[str, int], ...]], ...] = (
        ("aw", "input", (("addr", address_bits), ("prot", 3))),
        ("w", "input", (("data", WORD_BITS), ("strb", WORD_BITS // BYTE_BITS))),
        ("b", "output", (("resp", 2),)),
        ("ar", "input", (("addr", address_bits), ("prot", 3))),
        ("r", "output", (("data", WORD_BITS), ("resp", 2))),
    )
    for name, direction, fields in rows:
        start = f"{AXI_LITE}_{name}"
        payload = tuple(Port(f"{start}{field}", direction, width) for field, width in fields)
        yield Bundle(Channel(start, direction, ()), payload, f"{start}valid", f"{start}ready")


def default_lanes(value: Value, initiation_interval: int) -> int:
    """The fewest elements a beat that keep up with the circuit, in a beat no wider than a small value."""
    most = max(1, min(value.elements, widths.WIDEST_VALUE_BITS // value.element_bits))
    return min(most, -(-value.elements // initiation_interval))


def container_bytes(bits: int) -> int:
    """Bytes that an element of a tensor has in memory: the least power of two."""
    size = 1
    while size * BYTE_BITS < bits:
        size *= 2
    return size


def word_lanes(value: Value) -> int:
    """Elements of a tensor in a word of memory, or one where that takes several words."""
    return max(1, WORD_BITS // (container_bytes(value.element_bits) * BYTE_BITS))


def plan_ports(
    inputs: Sequence[Value], outputs: Sequence[Value], interface: Interface, protocol: Protocol,
    initiation_interval: int, lanes: int | None = None,
) -> PortPlan:
    """The ports for these values in this order; ``lanes`` is what was asked for, None leaves it to the plan.

    Without ready nothing can come in beats, and every value has a bus.
    """
    beats, words = protocol == "stream", interface == "axi-lite"

    def channel(value: Value, direction: Direction) -> Channel:
        usual = word_lanes(value) if words else default_lanes(value, initiation_interval)
        # Of the words of software, a beat has all elements or one.
        wanted = min(usual if lanes is None or (words and lanes > 1) else lanes, value.elements)
        name = "out" if value.bus == WHOLE_RESULT else value.bus
        return Channel(name, direction, (value,), wanted)

    def channels(values: Sequence[Value], direction: Direction, side: str) -> list[Channel]:
        large = [value for value in values if beats and value.needs_beats]
        small = tuple(value for value in values if value not in large)
        group = [Channel(side, direction, small)] if small or not large else []
        return group + [channel(value, direction) for value in large]

    both = (*channels(inputs, "input", "in"), *channels(outputs, "output", "out"))
    return PortPlan(interface, protocol, both)

"""Results that are the next value of a state: the state's own register shows them, once it is written.

An item's results leave the pipeline behind the stage that writes the state at the earliest, and until a later
item writes, which it does just as this one moves on, the register holds what this item left. So no register
need be kept for the results beside it, and nothing but the register asks for the next value.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.rtl.lower.design import FlatState
from kera_hw.rtl.techmap.items import Left
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, Segment, concat
from kera_hw.schedule.fpga.device import Device


def shown_by_states(
    net: Net, results: Sequence[Bits], states: Sequence[FlatState], nexts: Sequence[Bits], device: Device
) -> list[Bits]:
    """The results with bits of state registers for those that some state takes over as they are."""
    places: dict[tuple[int, int], tuple[int, int]] = {}
    for state, bits in enumerate(nexts):
        position = 0
        for segment in bits:
            for bit in range(segment.width):
                if segment.cell is not None and _is_plain(states[state], position + bit, device):
                    places.setdefault((segment.cell, segment.low + bit), (state, position + bit))
            position += segment.width

    def shown(segment: Segment) -> Bits:
        parts: list[Bits] = []
        for bit in range(segment.low, segment.low + segment.width):
            place = None if segment.cell is None else places.get((segment.cell, bit))
            if place is None:
                parts.append((_bit(segment, bit - segment.low),))
            else:
                net.origin = states[place[0]].origin
                (whole,) = net.bits(Left(states[place[0]].width_bits, (), place[0]))
                parts.append((whole._replace(low=place[1], width=1),))
        return concat(parts)

    return [concat(shown(segment) for segment in bits) for bits in results]


def _bit(segment: Segment, place: int) -> Segment:
    low = segment.low >> place & 1 if segment.cell is None else segment.low + place
    return segment._replace(low=low, width=1)


def _is_plain(state: FlatState, bit: int, device: Device) -> bool:
    """Whether the flip-flop shows the bit itself: those of iCE40 start with 0, a 1 is kept inverted."""
    return device.family != "ice40" or not state.initial >> bit & 1

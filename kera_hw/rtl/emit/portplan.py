"""Which ports a scheduled netlist has, and what stands between them and its pipeline costs."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Export
from kera_hw.rtl.emit.layout import control_of
from kera_hw.rtl.emit.ports import Interface, PortPlan, Value, plan_ports
from kera_hw.rtl.emit.rounds import Rounds
from kera_hw.rtl.lower.flatten import parameter_buses, result_buses
from kera_hw.schedule.fpga.bits import bits_width
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.types import TensorType


def netlist_ports(
    netlist: Netlist, plan: Plan, interface: Interface, export: Export | None = None,
    lanes: int | None = None, rounds: Rounds | None = None,
) -> PortPlan:
    """The ports; ``export`` says which buses are tensors, ``lanes`` how many elements a beat holds.

    With ``rounds`` the netlist is one round of a loop.
    """
    protocol = control_of(netlist, plan, interface).protocol
    types = {} if export is None else {**dict(parameter_buses(export)), **dict(result_buses(export))}

    def value(position: int, bus: str, width: int) -> Value:
        kind = types.get(bus)
        elements = kind.size if isinstance(kind, TensorType) else 1
        return Value(bus, width, position, elements, isinstance(kind, TensorType))

    given, made, interval = netlist.inputs, netlist.outputs, plan.initiation_interval
    if rounds is not None:
        given, made = given[len(rounds.flags) :], made[1:]
        interval = rounds.initiation_interval(plan.latency_cycles, interval, rounds.least)
    inputs = [value(k, bus, width) for k, (bus, width) in enumerate(given)]
    outputs = [value(k, out.bus, bits_width(out.bits)) for k, out in enumerate(made)]
    return plan_ports(inputs, outputs, interface, protocol, interval, lanes)


@dataclass(frozen=True, slots=True)
class ShellCost:
    """LUTs and flip-flops of what surrounds a circuit that takes whole items."""

    lut: int
    ff: int


def shell_cost(plan: PortPlan) -> ShellCost:
    """What collectors, serialisers and kept beats take: a bit kept is a flip-flop, a bit chosen a LUT."""
    lut = ff = 0
    if not plan.surrounds_core:
        return ShellCost(0, 0)
    for channel in plan.inputs:
        beats, width = channel.beats, channel.beat_bits
        kept = beats if plan.collects_whole else beats - 1
        ff += kept * width + kept.bit_length()
        lut += _counter_luts(kept)
        if plan.registered_ready:
            ff += width + 1
            lut += width + 2
    for channel in plan.outputs:
        rest, width = channel.beats - 1, channel.beat_bits
        several = len(plan.outputs) > 1
        padding = channel.beats * width - sum(value.width for value in channel.values)  # zeros all the time
        ff += rest * width - padding + rest.bit_length() + several if rest else several
        lut += rest * width + _counter_luts(rest) + 2 * several
    return ShellCost(lut, ff)


def _counter_luts(most: int) -> int:
    """LUTs that count to ``most`` and tell the end."""
    return 2 * most.bit_length() + 2 if most else 1

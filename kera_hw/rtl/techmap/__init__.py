"""Technology mapping: a flat design becomes a netlist of the device's cells."""
from __future__ import annotations

from dataclasses import dataclass, replace

from kera_hw.graph.node import Ref
from kera_hw.ops.intervals import Interval, raw_interval
from kera_hw.rtl.lower.design import FlatDesign
from kera_hw.rtl.techmap import reach, scalar, words
from kera_hw.rtl.techmap.after import shown_by_states
from kera_hw.rtl.techmap.controls import led_by_readers, place_controls, with_controls
from kera_hw.rtl.techmap.cover import Coverer
from kera_hw.rtl.techmap.finish import Finisher
from kera_hw.rtl.techmap.items import Parameter, Present, Writing
from kera_hw.rtl.techmap.linearise import rebuild_parities
from kera_hw.rtl.techmap.mapper import Mapper
from kera_hw.rtl.techmap.memories import Written
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import Capabilities, Controls, MapOptions, capabilities
from kera_hw.rtl.techmap.source import Source
from kera_hw.rtl.techmap.wide import narrowed
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits
from kera_hw.schedule.fpga.device import Device, find_device
from kera_hw.schedule.fpga.netlist import Netlist, Output, StateReg
from kera_hw.schedule.fpga.units import Operator, Storage
from kera_hw.types import TensorType, Type

__all__ = ["Logic", "MapOptions", "logic_of", "map_design", "netlist_of"]


@dataclass(frozen=True, slots=True)
class Logic:
    """A flat design as sums, gates and choices: what its netlists are covered from, whatever the controls.

    ``held``: what each state is known to hold; ``flat`` has states of as many bits.
    """

    flat: FlatDesign
    held: tuple[Interval | None, ...]
    device: Device
    able: Capabilities
    net: Net
    results: tuple[Bits, ...]
    nexts: tuple[Bits, ...]
    notes: tuple[str, ...]
    storages: tuple[Storage, ...] = ()
    written: tuple[Written, ...] = ()
    operators: tuple[Operator, ...] = ()


def logic_of(flat: FlatDesign, device: str, clock_ps: int, options: MapOptions) -> Logic:
    """The logic of a flat design on ``device`` (a known part), made for a clock period of ``clock_ps``."""
    part = find_device(device)
    assert part is not None, f"unknown device {device}"
    flat = narrowed(flat)
    held = reach.state_intervals(flat)
    flat = replace(flat, states=tuple(map(reach.narrowed, flat.states, held)))
    able = capabilities(part, clock_ps, options)
    net = Net(fusing=able.fuses_logic)

    def map_step(step: FlatDesign) -> Netlist:
        return map_design(step, device, clock_ps, options)

    mapper = Mapper(Source(flat, held), net, able, flat.origins, map_step)
    _seed(mapper, net, flat)
    mapper.run()
    outputs, scalars = len(flat.outputs), len(flat.outputs) + len(flat.states)
    widths = mapper.source.widths()[:scalars]
    vectors = [_low(mapper, ref, width) for ref, width in zip(flat.region.results, widths)]
    written = mapper.memories.written(net, mapper.word)
    written = mapper.memories.live(net, vectors, written)
    vectors += [bits for write in written for bits in write.vectors()]
    net, vectors = rebuild_parities(net, vectors, able.lut_inputs)
    others, nexts, rest = vectors[:outputs], vectors[outputs:scalars], vectors[scalars:]
    others = shown_by_states(net, others, flat.states, nexts, part)
    placed = tuple(
        replace(write, address=rest[3 * k], word=rest[3 * k + 1], condition=rest[3 * k + 2])
        for k, write in enumerate(written)
    )
    return Logic(
        flat, tuple(held), part, able, net, tuple(others), tuple(nexts), tuple(mapper.notes),
        tuple(mapper.memories.storages), placed,
        mapper.sharing.operators() if mapper.sharing.works else (),
    )


def netlist_of(logic: Logic, controls: Controls) -> Netlist:
    """The logic covered by cells, states written with such controls as pay."""
    flat, net, others = logic.flat, logic.net.fork(), logic.results
    coverer = Coverer(net, logic.able.lut_inputs)
    stored = [bits for write in logic.written for bits in write.vectors()]
    others_and_stored = [*others, *stored]
    written = with_controls(
        net, coverer, others_and_stored, flat.states, logic.nexts, logic.held, logic.device, controls
    )
    vectors = [*others_and_stored, *(bits for state in written for bits in state.vectors())]
    finisher = Finisher(net, coverer.cover(vectors), logic.able, logic.storages, logic.operators)
    around = net.origin
    for write in logic.written:
        net.origin = write.origin
        finisher.writes(net.make(Writing(0, write.vectors(), write.memory, write.number)))
    net.origin = around
    state_bits = [net.bits(Present(state.width_bits, (), i)) for i, state in enumerate(flat.states)]
    input_bits = _inputs(net, flat)
    finisher.require_all([*input_bits, *state_bits, *vectors])
    placed = [finisher.place(bits) for bits in others]
    states = tuple(
        StateReg(
            state.name, state.width_bits, state.initial, _source_cell(finisher, bits),
            finisher.place(how.data), place_controls(finisher, how, state.name), held,
        )
        for state, bits, how, held in zip(flat.states, state_bits, written, logic.held)
    )
    outputs = tuple(Output(bus, _bus(flat, bus, width, placed)) for bus, width in flat.out_buses)
    return Netlist(
        flat.name, flat.in_buses, tuple(led_by_readers(finisher.cells, states)), outputs, states,
        logic.device.name, logic.notes,
    )


def _inputs(net: Net, flat: FlatDesign) -> list[Bits]:
    """All leaves of the parameters. One that nothing reads stands where others of its bus do."""
    places = {
        flat.inputs[index].bus: origin for node, origin in flat.origins.items()
        if node.opcode == "core.param" and isinstance(index := node.attr("index"), int)
        and index < len(flat.inputs)
    }
    around, somewhere = net.origin, next(iter(flat.origins.values()), None)
    found: list[Bits] = []
    for leaf in flat.inputs:
        net.origin = places.get(leaf.bus, somewhere)
        found.append(net.bits(Parameter(leaf.width_bits, (), leaf.bus, leaf.low)))
    net.origin = around
    return found


def map_design(flat: FlatDesign, device: str, clock_ps: int, options: MapOptions | None = None) -> Netlist:
    """Map a flat design to cells of ``device`` (a known part) for a clock period of ``clock_ps``."""
    wanted = options or MapOptions()
    return netlist_of(logic_of(flat, device, clock_ps, wanted), wanted.controls)


def _source_cell(finisher: Finisher, bits: Bits) -> int:
    cell = finisher.place(bits)[0].cell
    assert cell is not None
    return cell


def _seed(mapper: Mapper, net: Net, flat: FlatDesign) -> None:
    """Words of the parameters: input leaves, then states."""
    for node in mapper.source.nodes:
        if node.opcode != "core.param":
            continue
        index = node.attr("index")
        assert isinstance(index, int)
        net.origin = flat.origins.get(node)
        kind: Type = node.types[0]
        if isinstance(kind, TensorType):
            continue  # a memory
        if index < len(flat.inputs):
            leaf = flat.inputs[index]
            bits = net.bits(Parameter(leaf.width_bits, (), leaf.bus, leaf.low))
        else:
            state = index - len(flat.inputs)
            bits = net.bits(Present(flat.states[state].width_bits, (), state))
        signed = scalar.is_signed(kind)
        mapper.words[Ref(node, 0)] = words.narrowed(bits, signed, mapper.source.ranges[Ref(node, 0)])


def _low(mapper: Mapper, ref: Ref, width: int) -> Bits:
    """The low bits of a result, or all."""
    value = mapper.source.constant(ref)
    if value is not None:
        low, _ = raw_interval(ref.type)
        return const_bits(value if low <= value else 0, width)
    return mapper.word(ref).extend(width)


def _bus(flat: FlatDesign, bus: str, width: int, placed: list[Bits]) -> Bits:
    """One output bus from the leaves that lie on it."""
    leaves = sorted(
        (leaf.low, bits) for leaf, bits in zip(flat.outputs, placed) if leaf.bus == bus
    )
    vector = concat(bits for _, bits in leaves)
    assert bits_width(vector) == width, f"leaves of {bus} do not fill it"
    return vector

"""A design's Verilog as it is written to a file: with its assertions, cover points and prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import cast

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.graph import Graph, Node, only_probes, probes_of
from kera_hw.rtl.emit.naming import inner_name, module_name
from kera_hw.rtl.emit.observed import Flag, Record, with_observations
from kera_hw.support import KeraError
from kera_hw.types import Type, bit_width, element_type, shape_of

# The observing circuit need not be quick: at this clock nearly everything fits in one cycle.
_CLOCK_MHZ = 5.0


def file_verilog(design: HardwareDesign) -> str:
    """The Verilog of the design, the observations of its export with it where a simulator can show them.

    That needs valid bits, and a circuit of the observations that keeps up with the design's.
    """
    export, emitted = design.export, design.emitted
    if not probes_of(export):
        return emitted.verilog
    interval = design.core_paces[1][1]
    if emitted.protocol == "none" or (emitted.protocol == "valid" and interval > 1):
        return _without(emitted.verilog, "the interface does not tell which cycles hold an item")
    probed = replace(only_probes(export), name=inner_name(module_name(export.name), "observed"))
    options = TargetOptions(design.device.name, clock_mhz=_CLOCK_MHZ)
    try:
        observing = design_hardware(design.graph, probed, options, inner=True)
    except KeraError as fault:
        return _without(emitted.verilog, fault.diagnostics[0].message)
    if observing.plan.initiation_interval > interval:
        return _without(emitted.verilog, "they take more cycles an item than the results")
    if observing.plan.reset_cycles > design.plan.reset_cycles:
        return _without(emitted.verilog, "they keep more from item to item than the results")
    return with_observations(emitted, observing.emitted, _shown(design.graph, probes_of(export)))


def _without(verilog: str, reason: str) -> str:
    return f"// Without assertions, cover points and prints: {reason}\n{verilog}"


def _shown(graph: Graph, probes: tuple[Node, ...]) -> list[Flag | Record]:
    found: list[Flag | Record] = []
    port = 0
    for node in probes:
        if node.opcode == "effect.print":
            words = node.types[2]
            labels = cast("tuple[str, ...]", node.attr("labels"))
            types = cast("tuple[tuple[Type, ...], ...]", node.attr("types"))
            found.append(Record(port, labels, types, shape_of(words)[1], bit_width(element_type(words))))
        else:
            found.append(Flag(port, node.opcode.removeprefix("effect."), _text(graph, node)))
        port += len(node.types)
    return found


def _text(graph: Graph, node: Node) -> str:
    """What a point is called in simulation: its label, and its file and line."""
    origin, label = graph.origins.get(node), cast(str, node.attr("label"))
    place = f"{PurePath(origin.path).name}:{origin.line}" if origin is not None else ""
    kind = "assertion" if node.opcode == "effect.assert" else "point"
    return " ".join(part for part in (kind, label, f"({place})" if place else "") if part)

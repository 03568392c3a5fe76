"""An exported function as an Amaranth component."""

from __future__ import annotations

from typing import cast

from kera_hw.driver.design import check_port_bits
from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.options import TargetOptions, check_choice
from kera_hw.driver.process_design import ProcessDesign
from kera_hw.driver.session import single_export_graph
from kera_hw.graph import Export, Graph
from kera_hw.rtl.emit.component import CELLS, AmaranthKernel, Cells, Kernel, VerilogKernel
from kera_hw.rtl.emit.verilog import emit_verilog


def make_component(graph: Graph, export: Export, options: TargetOptions, cells: str) -> Kernel:
    """The component that ``options.emitter`` and ``cells`` say. Raises KeraError (K0908 for another word)."""
    check_choice("choice of cells", cells, CELLS)
    check_choice("interface of a component", options.interface, ("stream", "none"))
    design = plan_hardware(graph, export, options)
    check_port_bits(design, "amaranth")  # even around Verilog there is Amaranth
    if isinstance(design, ProcessDesign):
        return VerilogKernel(export, design.emitted)
    if options.emitter == "amaranth" and not design.keeps_loops:
        return AmaranthKernel(
            export, design.netlist, design.plan, design.interface, design.style, cast("Cells", cells)
        )
    style = "generic" if cells == "generic" else design.style
    fingerprint = single_export_graph(graph, export).fingerprint
    emitted = emit_verilog(
        design.netlist, design.plan, design.interface, style, design.emitter, fingerprint,
        rounds=design.rounds,
    )
    return VerilogKernel(export, emitted)

"""The hardware path as one function a step: export -> flat design -> cells -> plan -> Verilog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.graph import Export, Graph, Store
from kera_hw.rtl.emit.verilog import Emitted, emit_verilog
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import map_design
from kera_hw.schedule.delay_model import DelayModel
from kera_hw.schedule.device import Device, device_names, find_device
from kera_hw.schedule.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import Diagnostic, KeraError, SourceFile

# What a design is planned for when nobody asks: comfortably within reach of ordinary logic on each family.
DEFAULT_CLOCK_MHZ = {"ecp5": 150.0, "ice40": 50.0}
# Without a clock asked for, a design that cannot make the default gets the next slower one that works.
_SLOWDOWN = 0.8
_SLOWEST_MHZ = 5.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class HardwareDesign:
    """Every product of the hardware path for one export, from the flat design to Verilog."""

    graph: Graph
    export: Export
    device: Device
    flat: FlatDesign
    netlist: Netlist
    plan: Plan
    emitted: Emitted
    diagnostics: tuple[Diagnostic, ...]

    def plan_json(self) -> dict[str, Any]:
        """What `plan.json` holds before place and route: the headline figures first, then the whole plan."""
        estimate = self.plan.estimate
        return {
            "function": self.export.name,
            "fingerprint": self.graph.fingerprint,
            "target": f"fpga:{self.device.name}",
            "interface": self.plan.interface,
            "clock_mhz": round(self.plan.clock_mhz, 3),
            "latency_cycles": self.plan.latency_cycles,
            "initiation_interval": self.plan.initiation_interval,
            "register_bits": self.plan.register_bits,
            "estimate": {
                "lut": estimate.lut,
                "ff": estimate.ff,
                "dsp": estimate.dsp,
                "bram": estimate.bram,
                "fmax_mhz": round(estimate.fmax_mhz, 1),
            },
            "notes": [*self.netlist.notes, *self.plan.notes],
        }


def design_hardware(
    graph: Graph,
    export: Export,
    options: TargetOptions,
    progress: Progress = lambda _: None,
    files: dict[str, SourceFile] | None = None,
) -> HardwareDesign:
    """Runs the hardware path. Raises KeraError (K06xx, K07xx) where the design cannot be made."""
    device = find_device(options.device)
    if device is None:
        known = ", ".join(device_names())
        message = f"There is no device `{options.device}`; the devices are: {known}."
        raise KeraError([Diagnostic("K0605", message)])
    if options.interface not in ("stream", "none"):
        message = f"There is no interface `{options.interface}`; use `stream` or `none`."
        raise KeraError([Diagnostic("K0903", message)])
    progress("lowering")
    store = Store()
    lowered = optimise(single_export_graph(graph, export)).graph.exports[0]
    store.origins.update(graph.origins)
    flat = flatten_export(lowered, store)
    if isinstance(flat, Diagnostic):
        raise KeraError([flat])
    netlist, plan, notes = _plan(flat, device, options, progress, files or {})
    faults = verify_plan(netlist, plan, DelayModel(device))
    if faults:
        raise AssertionError(f"the plan of {export.name} is unsound: {faults[0]}")
    progress("writing Verilog")
    interface: Literal["stream", "none"] = "none" if options.interface == "none" else "stream"
    emitted = emit_verilog(netlist, plan, interface, "ecp5" if device.family == "ecp5" else "generic")
    return HardwareDesign(graph, export, device, flat, netlist, plan, emitted, tuple(notes))


def _plan(
    flat: FlatDesign, device: Device, options: TargetOptions, progress: Progress, files: dict[str, SourceFile]
) -> tuple[Netlist, Plan, list[Diagnostic]]:
    """Maps and schedules, at the clock asked for or the fastest default that works."""
    clock_mhz = options.clock_mhz or DEFAULT_CLOCK_MHZ[device.family]
    while True:
        clock_ps = round(1e6 / clock_mhz)
        progress("mapping to cells")
        netlist, notes = map_design(flat, device.name, clock_ps)
        if any(item.is_error for item in notes):
            raise KeraError(notes)
        progress("scheduling")
        plan, faults = schedule(
            netlist, device, clock_ps, options.latency, interface=options.interface, sources=files
        )
        if plan is not None:
            return netlist, plan, [*notes, *faults]
        slower = clock_mhz * _SLOWDOWN
        if options.clock_mhz is not None or slower < _SLOWEST_MHZ or faults[0].code != "K0601":
            raise KeraError(faults)
        clock_mhz = slower

"""Attributes by which Vivado's packager knows the interfaces of a module, on the ports of its Verilog."""
from __future__ import annotations

import re
from collections.abc import Iterator

from kera_hw.rtl.emit.ports import AXI_LITE, INTERRUPT, PortPlan

_BUS = "xilinx.com:interface:{kind}:1.0 {name} {signal}"
_SIGNAL = "xilinx.com:signal:{kind}:1.0 {name} {signal}"


def with_interface_attributes(verilog: str, top: str, plan: PortPlan) -> str:
    """The Verilog whose module ``top`` has the attributes, where its ports are of an AXI."""
    attributes = dict(_attributes(plan))
    head = re.search(rf"^module {re.escape(top)}\b.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    if not attributes or head is None:
        return verilog

    def mark(found: re.Match[str]) -> str:
        attribute = attributes.get(found[2])
        return found[0] if attribute is None else f"{found[1]}(* {attribute} *)\n{found[0]}"

    marked = re.sub(r"^( *)(?:input|output) (?:\[\d+:0\] )?(\w+) ?;$", mark, head[0], flags=re.MULTILINE)
    return verilog[: head.start()] + marked + verilog[head.end() :]


def _attributes(plan: PortPlan) -> Iterator[tuple[str, str]]:
    """The attribute of each port by name."""
    if plan.interface not in ("axis", "axi-lite"):
        return
    names: list[str] = []
    for bundle in plan.bundles:
        for port in bundle.ports:
            lite = plan.interface == "axi-lite"
            name = AXI_LITE if lite else port.name.rpartition("_")[0]
            signal = port.name.removeprefix(f"{name}_").upper()
            kind = "aximm" if lite else "axis"
            parameter = ""
            if lite and signal == "AWADDR":
                parameter = ', X_INTERFACE_PARAMETER = "PROTOCOL AXI4LITE"'
            names.append(name)
            info = _BUS.format(kind=kind, name=name, signal=signal)
            yield port.name, f'X_INTERFACE_INFO = "{info}"{parameter}'
    reset = plan.reset
    assert reset is not None, "an AXI has a reset"
    clock = _SIGNAL.format(kind="clock", name=plan.clock, signal="CLK")
    buses = ":".join(dict.fromkeys(names))
    used = f"ASSOCIATED_BUSIF {buses}, ASSOCIATED_RESET {reset.name}"
    yield plan.clock, f'X_INTERFACE_INFO = "{clock}", X_INTERFACE_PARAMETER = "{used}"'
    polarity = "POLARITY ACTIVE_LOW"
    resets = _SIGNAL.format(kind="reset", name=reset.name, signal="RST")
    yield reset.name, f'X_INTERFACE_INFO = "{resets}", X_INTERFACE_PARAMETER = "{polarity}"'
    interrupt = _SIGNAL.format(kind="interrupt", name=INTERRUPT, signal="INTERRUPT")
    yield INTERRUPT, f'X_INTERFACE_INFO = "{interrupt}", X_INTERFACE_PARAMETER = "SENSITIVITY LEVEL_HIGH"'

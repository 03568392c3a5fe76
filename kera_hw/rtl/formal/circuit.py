"""A flat circuit as Yosys writes it in JSON: cells, the driver of every bit, power-up values."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.toolchain.process import scratch
from kera_hw.rtl.toolchain.yosys import DEFAULT_TIMEOUT_S, library, read_commands, run_script

# A signal's number, or a constant: "0", "1", or "x" and "z" for what nobody knows.
Bit = int | str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it is called, its type, its parameters, and its pins by direction, lowest bit first."""

    name: str
    kind: str
    params: Mapping[str, str]
    inputs: Mapping[str, tuple[Bit, ...]]
    outputs: Mapping[str, tuple[Bit, ...]]

    def number(self, name: str, default: int = 0) -> int:
        """A numeric parameter."""
        text = self.params.get(name)
        return default if text is None else int(text.strip(), 2)

    def word(self, name: str, default: str) -> str:
        """A textual parameter."""
        return self.params.get(name, default).strip()


@dataclass(frozen=True, slots=True)
class Circuit:
    """The top module without hierarchy. ``initial`` gives bits their value at power-up, where it is known.

    ``nets`` are the named signals; ``label`` says which netlist this is.
    """

    label: str
    cells: tuple[Cell, ...]
    inputs: Mapping[str, tuple[Bit, ...]]
    outputs: Mapping[str, tuple[Bit, ...]]
    initial: Mapping[Bit, int] = field(default_factory=dict[Bit, int])
    nets: Mapping[str, tuple[Bit, ...]] = field(default_factory=dict[str, tuple[Bit, ...]])

    def net(self, name: str) -> tuple[Bit, ...] | None:
        """The bits of a signal, at the top or in an instance."""
        found = self.nets.get(name)
        if found is None:
            inner = [bits for key, bits in self.nets.items() if key.endswith("." + name)]
            found = inner[0] if len(inner) == 1 else None
        return found


def read_circuit(path: Path, top: str, label: str) -> Circuit:
    """The module ``top`` of a JSON netlist."""
    module: dict[str, Any] = json.loads(path.read_text("utf-8"))["modules"][top]
    cells: list[Cell] = []
    for name, cell in module["cells"].items():
        if cell["type"] == "$scopeinfo":
            continue
        pins = {port: tuple(bits) for port, bits in cell["connections"].items()}
        directions = cell["port_directions"]
        sides = [
            {port: bits for port, bits in pins.items() if directions[port] == side}
            for side in ("input", "output")
        ]
        params = {key: str(value) for key, value in cell["parameters"].items()}
        cells.append(Cell(name, cell["type"], params, *sides))
    ports: dict[str, dict[str, tuple[Bit, ...]]] = {"input": {}, "output": {}}
    for name, port in module["ports"].items():
        ports[port["direction"]][name] = tuple(port["bits"])
    initial: dict[Bit, int] = {}
    nets: dict[str, tuple[Bit, ...]] = {}
    for name, net in module["netnames"].items():
        nets[name] = tuple(net["bits"])
        for bit, digit in zip(net["bits"], reversed(str(net["attributes"].get("init", "")))):
            if digit in "01":
                initial[bit] = int(digit)
    return Circuit(label, tuple(cells), ports["input"], ports["output"], initial, nets)


def _read(emitted: Emitted, commands: Sequence[str], label: str, timeout_s: float) -> Circuit:
    family = "ecp5" if emitted.style == "ecp5" else "ice40"
    with scratch("formal") as work:
        source = work / "design.v"
        source.write_text(emitted.verilog, encoding="utf-8")
        passes = [
            *library(family), *read_commands([source]), *commands,
            f"select {emitted.name}", "write_json -selected netlist.json",
        ]
        run_script(passes, work, timeout_s=timeout_s)
        return read_circuit(work / "netlist.json", emitted.name, label)


def emitted_circuit(emitted: Emitted, timeout_s: float = DEFAULT_TIMEOUT_S) -> Circuit:
    """The emitted Verilog as Yosys reads it, with operators and device cells as they are written.

    Raises ToolError where Yosys is missing, fails or takes too long.
    """
    top = f"hierarchy -check -top {emitted.name}"
    commands = [top, "proc -norom", "memory_map -rom-only", "flatten", "opt_clean"]
    return _read(emitted, commands, "Verilog", timeout_s)


def mapped_circuit(emitted: Emitted, options: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Circuit:
    """The ECP5 netlist after synthesis, the one that is placed and routed."""
    command = " ".join(["synth_ecp5", "-top", emitted.name, *options])
    return _read(emitted, [command], "synthesised netlist", timeout_s)

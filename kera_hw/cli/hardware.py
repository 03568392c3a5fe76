"""The options that say for which hardware and how, alike in every command that takes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kera_hw.cli import complete

if TYPE_CHECKING:
    from kera_hw.driver.options import TargetOptions

_DEVICE = "A part, such as ecp5-25k; `--device X` and `--target fpga:X` are the same."
_CLOCK = "Clock to plan for, e.g. 150MHz (default: the device's own)."
_INTERFACE = "stream (the default: valid/ready), none (at a fixed latency), axis (AXI4-Stream) or axi-lite."
_LANES = "Elements a beat of a tensor over 1,024 bits (default: as many as keep up)."
_EMITTER = "text (the default, fast), or amaranth: Verilog by way of one Amaranth design."
_PLAN = "Make the circuit of this plan (of `kera plan --save`, or a plan.json); its options are the plan's."
_ISA = "Machine code for this instruction set, whatever `cpu` would choose; the same as a target of its name."
_THREADS = "Threads that machine code runs on (default: as many as large batches are worth)."
_TARGETS = {
    "hardware": typer.Option(
        "--target", metavar="fpga:DEVICE", autocompletion=complete.hardware_targets,
        help="The device, such as fpga:ecp5-25k; its default is fpga:ecp5-85k.",
    ),
    "built": typer.Option(
        "--target", metavar="TARGET", autocompletion=complete.built_targets,
        help="fpga:DEVICE, such as fpga:ecp5-25k (the default: fpga:ecp5-85k), cpu, wasm, web, ptx, amdgcn.",
    ),
    "any": typer.Option(
        "--target", metavar="TARGET", autocompletion=complete.targets,
        help="interp, cpu, wasm, ptx, amdgcn, rtl, or fpga:DEVICE, which is rtl as for that device; "
        "x86-64-sse2, x86-64-avx2, x86-64-avx512, aarch64 and riscv64 are machine code for that processor, "
        "gfx90a and gfx942 amdgcn for that GPU (default: {usual}).",
    ),
}  # fmt: skip

Takes = Literal["hardware", "built", "any"]


@dataclass(frozen=True, slots=True)
class HardwareRequest:
    """The options as they were given; what they say is for the driver to check."""

    target: str | None = None
    device: str | None = None
    clock: str | None = None
    latency: int | None = None
    interval: int | None = None
    dsp: int | None = None
    interface: str | None = None
    emitter: str | None = None
    lanes: int | None = None
    lut: int | None = None
    bram: int | None = None
    sites: int | None = None
    units: int | None = None
    plan: Path | None = None
    isa: str | None = None
    threads: int | None = None
    usual: str = field(default="interp", compare=False)
    """What a command executes on where no target is named."""

    @property
    def _named(self) -> str | None:
        """The target, which the instruction set may be said of. Raises KeraError."""
        from kera_hw.driver.targets import target_of_isa

        return self.target if self.isa is None else target_of_isa(self.isa, self.target)

    @property
    def software(self) -> str | None:
        """The target where that is software, which takes none of the other options. Raises KeraError."""
        from kera_hw.driver.options import SOFTWARE_PRODUCTS

        alone = self == HardwareRequest(target=self.target, isa=self.isa)
        return named if alone and (named := self._named) in SOFTWARE_PRODUCTS else None

    def for_hardware(self) -> TargetOptions:
        """Options of a command that plans or builds. Raises KeraError for a target that is no hardware."""
        return self._options(self._hardware_device())

    def _hardware_device(self) -> str | None:
        """The device named, which must be hardware; None where a plan may name it."""
        from kera_hw.driver.targets import hardware_device

        target = self._named
        named = target is not None or self.device is not None
        return None if self.plan is not None and not named else hardware_device(target, self.device)

    def for_target(self, usual: str | None = None) -> tuple[str, TargetOptions]:
        """The target that executes, and its options; where none is named the command's usual one, or this.

        Raises KeraError.
        """
        from kera_hw.driver.targets import resolve_target

        software = self.device is None and self.plan is None
        default, target = (usual or self.usual) if software else "rtl", self._named
        name, device = resolve_target(default if target is None else target, self.device)
        return name, self._options(device)

    def _options(self, device: str | None) -> TargetOptions:
        from kera_hw.driver.options import clock_of_text
        from kera_hw.driver.plan_file import options_with

        return options_with(
            self.plan, device=device, clock_mhz=clock_of_text(self.clock), latency=self.latency,
            interface=self.interface, interval=self.interval, dsp=self.dsp, emitter=self.emitter,
            lanes=self.lanes, lut=self.lut, bram=self.bram, sites=self.sites, units=self.units,
            threads=self.threads,
        )  # fmt: skip


# Nothing asked for: the planner chooses.
AS_PLANNED = HardwareRequest()

_Text, _Number = str | None, int | None
_OPTIONS: dict[str, Any] = {
    "device": Annotated[
        _Text, typer.Option("--device", metavar="DEVICE", help=_DEVICE, autocompletion=complete.devices)
    ],
    "clock": Annotated[_Text, typer.Option("--clock", metavar="FREQ", help=_CLOCK)],
    "latency": Annotated[
        _Number,
        typer.Option("--latency", metavar="N", help="Pipeline latency in cycles (default: the least)."),
    ],
    "interval": Annotated[
        _Number, typer.Option("--ii", metavar="N", help="Cycles between items (default: the least).")
    ],
    "dsp": Annotated[
        _Number, typer.Option("--dsp", metavar="N", help="Multiplier blocks that may be used (default: all).")
    ],
    "lut": Annotated[
        _Number, typer.Option("--lut", metavar="N", help="LUTs that may be used (default: all).")
    ],
    "bram": Annotated[
        _Number, typer.Option("--bram", metavar="N", help="Block RAMs that may be used (default: all).")
    ],
    "sites": Annotated[
        _Number, typer.Option("--sites", metavar="N", help="Pairs of a LUT and a flip-flop that may be used.")
    ],
    "units": Annotated[
        _Number, typer.Option("--units", metavar="N", help="Circuits side by side of a `while` loop's items.")
    ],
    "interface": Annotated[
        _Text,
        typer.Option("--interface", metavar="KIND", help=_INTERFACE, autocompletion=complete.interfaces),
    ],
    "lanes": Annotated[_Number, typer.Option("--lanes", metavar="N", help=_LANES)],
    "emitter": Annotated[
        _Text, typer.Option("--emitter", metavar="HOW", help=_EMITTER, autocompletion=complete.emitters)
    ],
    "plan": Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help=_PLAN, autocompletion=complete.plans)
    ],
    "isa": Annotated[_Text, typer.Option("--isa", metavar="ISA", help=_ISA, autocompletion=complete.isas)],
    "threads": Annotated[_Number, typer.Option("--threads", metavar="N", help=_THREADS)],
}


def takes_hardware(
    takes: Takes, without: Collection[str] = (), usual: str = "interp"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command these options in place of its parameter ``hardware``, a HardwareRequest.

    ``takes`` says which targets there may be: hardware alone, what is built, or any that executes;
    ``without`` names options that the command has no place for, ``usual`` the target that executes unasked.
    """
    target = copy(_TARGETS[takes])
    target.help = target.help.format(usual=usual)
    options = {"target": Annotated[_Text, target], **_OPTIONS}
    absent = {*without, *(["isa"] if takes == "hardware" else []), *(["threads"] if takes != "any" else [])}
    options = {name: option for name, option in options.items() if name not in absent}
    defaults = {item.name: item.default for item in fields(HardwareRequest)}
    group = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)
        for name, kind in options.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for name, parameter in own.parameters.items():
            named = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += group if name == "hardware" else [named]

        @functools.wraps(command)
        def call(**given: Any) -> None:
            request = HardwareRequest(**{name: given.pop(name) for name in options}, usual=usual)
            command(**given, hardware=request)

        call.__dict__["__signature__"] = own.replace(parameters=parameters)
        call.__annotations__ = {item.name: item.annotation for item in parameters}
        return call

    return decorate

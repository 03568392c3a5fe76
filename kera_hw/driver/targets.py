"""Targets by name. A target makes an executor for one export; each is loaded only when asked for.

One notation everywhere: `interp`, `rtl`, `cpu` and its levels, `wasm`, `ptx`, `amdgcn` and its processors,
and `fpga:DEVICE`, which is hardware for that device and, where something is to be executed, its simulation. A
device beside the target, `--device X`, means the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kera_hw.driver.options import (
    AMD_TARGETS,
    CPU_TARGETS,
    DEFAULT_DEVICE,
    ISAS,
    Executor,
    TargetOptions,
    check_choice,
    check_device,
    check_text,
    shown,
)
from kera_hw.graph import Export, Graph
from kera_hw.schedule.fpga.device import find_device
from kera_hw.support import Diagnostic, KeraError

Loader = Callable[[Graph, Export, TargetOptions], Executor]

_FPGA = "fpga:"


def _interp(graph: Graph, export: Export, options: TargetOptions) -> Executor:
    from kera_hw.driver.interp_target import InterpExecutor

    return InterpExecutor(graph, export)


def _rtl(graph: Graph, export: Export, options: TargetOptions) -> Executor:
    from kera_hw.driver.rtl_target import RtlExecutor

    return RtlExecutor(graph, export, options)


def _wasm(graph: Graph, export: Export, options: TargetOptions) -> Executor:
    from kera_hw.driver.wasm.target import wasm_executor

    return wasm_executor(graph, export)


def _cpu(name: str) -> Loader:
    def load(graph: Graph, export: Export, options: TargetOptions) -> Executor:
        from kera_hw.driver.cpu_target import cpu_executor

        return cpu_executor(graph, export, name, options.threads)

    return load


def _ptx(graph: Graph, export: Export, options: TargetOptions) -> Executor:
    from kera_hw.driver.gpu.ptx import ptx_executor

    return ptx_executor(graph, export)


def _amdgcn(name: str) -> Loader:
    def load(graph: Graph, export: Export, options: TargetOptions) -> Executor:
        from kera_hw.driver.gpu.amdgcn import amdgcn_executor

        return amdgcn_executor(graph, export, name)

    return load


TARGETS: dict[str, Loader] = {
    "interp": _interp, "rtl": _rtl, **{name: _cpu(name) for name in CPU_TARGETS}, "wasm": _wasm, "ptx": _ptx,
    **{name: _amdgcn(name) for name in AMD_TARGETS},
}
EVERY_MACHINE = tuple(name for name in TARGETS if name != AMD_TARGETS[0])
"""Each target once: the first of AMD's names means the second."""
COVERED = ("interp", "loops", "rtl", "formal", "cpu", "wasm", "ptx", "amdgcn")
"""What has a table of operations (``driver.coverage``): targets, loop programs, and proofs."""


def resolve_target(target: object, device: object = None) -> tuple[str, str | None]:
    """The target of TARGETS that is meant, and the device if one is named.

    Raises KeraError: K0903 for no target, K0605 for no device, K0908 for two devices.
    """
    name = check_text("target (`--target`)", target)
    named = None if device is None else check_device(device)
    if name in TARGETS:
        return name, named
    if not name.startswith(_FPGA) and find_device(name) is None:
        known = ", ".join([*TARGETS, f"{_FPGA}DEVICE"])
        message = f"There is no target {shown(name)}; the targets are: {known}."
        raise KeraError([Diagnostic("K0903", message)])
    meant = check_device(name)
    if named is not None and named != meant:
        message = f"The target names the device `{meant}`, and `--device` another: `{named}`."
        raise KeraError([Diagnostic("K0908", message)])
    return "rtl", meant


def target_of_isa(isa: object, target: object) -> str:
    """The target of `--isa`, beside which there is none, `cpu` or itself. Raises KeraError (K0908)."""
    name = check_choice("instruction set (`--isa`)", isa, ISAS)
    if target not in (None, CPU_TARGETS[0], name):
        message = f"`--isa {name}` is for `--target {CPU_TARGETS[0]}`; {shown(target)} is another target."
        raise KeraError([Diagnostic("K0908", message)])
    return name


def hardware_device(target: object, device: object = None) -> str:
    """The device that is meant where hardware is planned or built. Raises KeraError."""
    name, named = resolve_target("rtl" if target is None else target, device)
    if name != "rtl":
        message = f"The target {shown(name)} is no hardware; name a device, such as {_FPGA}{DEFAULT_DEVICE}."
        raise KeraError([Diagnostic("K0903", message)])
    return named or DEFAULT_DEVICE


def make_executor(graph: Graph, export: Export, target: str, options: TargetOptions) -> Executor:
    """The executor; raises KeraError with K0903 for an unknown target or what the target refuses.

    A device that ``target`` names goes before that of ``options``.
    """
    name, device = resolve_target(target)
    return TARGETS[name](graph, export, options if device is None else replace(options, device=device))

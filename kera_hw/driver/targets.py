"""Targets by name. A target makes an executor for one export; each is loaded only when asked for."""

from __future__ import annotations

from collections.abc import Callable

from kera_hw.driver.options import Executor, TargetOptions, shown
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic, KeraError

Loader = Callable[[Graph, Export, TargetOptions], Executor]


def _interp(graph: Graph, export: Export, options: TargetOptions) -> Executor:
    from kera_hw.driver.interp_target import InterpExecutor

    return InterpExecutor(graph, export)


def _rtl(graph: Graph, export: Export, options: TargetOptions) -> Executor:
    from kera_hw.driver.rtl_target import RtlExecutor

    return RtlExecutor(graph, export, options)


TARGETS: dict[str, Loader] = {"interp": _interp, "rtl": _rtl}


def make_executor(graph: Graph, export: Export, target: str, options: TargetOptions) -> Executor:
    """The executor; raises KeraError with K0903 for an unknown target or what the target refuses."""
    loader = TARGETS.get(target)
    if loader is None:
        known = ", ".join(TARGETS)
        message = f"There is no target {shown(target)}; the targets are: {known}."
        raise KeraError([Diagnostic("K0903", message)])
    return loader(graph, export, options)

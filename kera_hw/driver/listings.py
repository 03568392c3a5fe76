"""Machine code of one function for people: instructions between the lines of source."""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.engine import compile_export
from kera_hw.cpu_gpu.listing import listing
from kera_hw.driver.cpu_target import BEST, level_of
from kera_hw.driver.messages import shown
from kera_hw.driver.software import graph_to_compile
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic, KeraError, SourceFile


def assembly_text(graph: Graph, export: Export, target: str, sources: Mapping[str, SourceFile]) -> str:
    """Of `cpu` or a level by its name, which need not be this processor's. Raises KeraError (K0903)."""
    names = (BEST, *(level.name for level in LEVELS))
    if target not in names:
        message = f"There is no machine code for {shown(target)}; it is for: {', '.join(names)}."
        raise KeraError([Diagnostic("K0903", message)])
    level = level_of(target)
    compiled = graph_to_compile(graph, export)
    function = compile_export(compiled.exports[0], level=level, graph=compiled)
    return listing(function.machine, level.architecture, sources)

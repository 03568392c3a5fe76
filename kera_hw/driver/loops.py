"""Exports as loop programs, for people to read."""

from __future__ import annotations

from kera_hw.graph import Graph
from kera_hw.loops.printer import print_program
from kera_hw.loops.transforms.greedy import fused
from kera_hw.lower.export import lower_export


def loop_texts(graph: Graph, fuse: bool) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Each export's loop program, and the transforms taken when loops are to be joined.

    Raises KeraError (K0701) where an operation has no loops.
    """
    texts: dict[str, str] = {}
    steps: dict[str, list[str]] = {}
    for export in graph.exports:
        program = lower_export(export, graph.origins)
        if fuse:
            program, taken = fused(program)
            steps[export.name] = list(map(str, taken))
        head = "".join(f"// {step}\n" for step in steps.get(export.name, []))
        texts[export.name] = head + print_program(program)
    return texts, steps

"""An export as the loop program that code is written from: lowered, joined, in native operations."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kera_hw.graph import Export, Graph
from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import CAPABILITIES, Native
from kera_hw.loops.program import For, Load, LoopProgram, Op, Store
from kera_hw.loops.transforms.planner import planned
from kera_hw.lower.export import lower_with_updates
from kera_hw.lower.options import LoweringOptions
from kera_hw.schedule.software.blocks import Blocks, in_blocks
from kera_hw.schedule.software.chains import chains_in_registers, constants_ahead
from kera_hw.schedule.software.common import without_repeats
from kera_hw.schedule.software.edges import edges_apart
from kera_hw.schedule.software.folding import folded
from kera_hw.schedule.software.recomputing import computed_again
from kera_hw.schedule.software.tiling import Registers, has_product, tiled_products
from kera_hw.support import KeraError
from kera_hw.target import TargetTable


def rows_of(capabilities: Sequence[str]) -> Native:
    """What a machine with these capabilities has beyond the native set."""
    return {row: domain for name in capabilities for row, domain in CAPABILITIES[name].items()}


def native_program(
    export: Export, table: TargetTable[Any], beyond: Native, registers: Registers | None = None,
    graph: Graph | None = None,
) -> LoopProgram:
    """The program for a machine with ``beyond``, its products tiled for ``registers``; its statements know
    their places in source if the ``graph`` that the export is of does.

    Raises KeraError for what the machine's table refuses.
    """
    faults = table.faults(export.region)
    if faults:
        raise KeraError(faults)
    return _native(_lowered(export, graph, registers), beyond, registers)


def native_blocks(
    export: Export, beyond: Native, registers: Registers, graph: Graph | None = None
) -> Blocks | None:
    """The program of a stream for blocks of items, where it keeps nothing but inputs."""
    found = in_blocks(_lowered(export, graph, registers)) if export.state else None
    return None if found is None else replace(found, program=_native(found.program, beyond, registers))


def _lowered(export: Export, graph: Graph | None, registers: Registers | None) -> LoopProgram:
    origins, scopes = (graph.origins, graph.scopes) if graph is not None else (None, None)
    lowered, _ = lower_with_updates(export, origins, scopes, LoweringOptions(roomy=registers is not None))
    return lowered


def _native(lowered: LoopProgram, beyond: Native, registers: Registers | None) -> LoopProgram:
    if registers is None:
        return legalise(planned(lowered, _converts).after, beyond)
    if not registers.engine and (again := computed_again(lowered)).steps:
        lowered = without_repeats(again.after)
    alone = folded(planned(lowered, has_product).after, settled=False)
    program = chains_in_registers(tiled_products(alone, registers).after, registers).after
    if registers.engine:
        program = edges_apart(program)
    return legalise(constants_ahead(folded(program)), beyond)


def _converts(loop: For) -> bool:
    """Whether all that a nest does is to make a tensor of another type. Two such that are joined, as both
    factors of a product may be, could no longer be done where their elements are read, each in one place."""
    body = loop.body.body
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body.body
    match body:
        case (Load(), Op(opcode="convert.cast"), Store()):
            return True
        case _:
            return False

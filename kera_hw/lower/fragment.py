"""A region on scalars as statements: what an operation is made of, for whoever puts it in its place."""
from __future__ import annotations

from dataclasses import dataclass, replace

from kera_hw.graph.node import Region
from kera_hw.loops.program import Block, Buffer, Operand, Var
from kera_hw.lower.emitter import Emitter
from kera_hw.lower.export import RULES
from kera_hw.lower.options import PLAIN, LoweringOptions
from kera_hw.lower.region import Lowering
from kera_hw.lower.views import View


@dataclass(frozen=True, slots=True)
class Fragment:
    """Statements on ``params`` that yield the region's results, with the constants that they read."""

    params: tuple[Var, ...]
    body: Block
    constants: tuple[Buffer, ...]


def lower_region(region: Region, options: LoweringOptions = PLAIN) -> Fragment:
    """The statements of a region whose parameters and results are scalars."""
    emit = Emitter(options)
    params = tuple(emit.fresh(kind) for kind in region.params)
    results: list[Operand] = []
    rules = {name: rule for name, rule in RULES.items() if name not in options.expanding}
    for value in Lowering(emit, rules, {}, {}).region(region, params):
        assert not isinstance(value, View), "a fragment gives scalars"
        results.append(value)
    return Fragment(params, replace(emit.finish(), yields=tuple(results)), tuple(emit.constants.values()))

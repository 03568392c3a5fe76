"""Loops kept as loops: one step's logic used again every cycle, for a design that may take its time.

Such a loop is a ``control.loop`` in the flat region: the interpreter runs it as it is, and mapping makes an
iterative unit of it (``schedule.fpga.units.iterative``), one set of registers around one step.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.types import IntType

StepWriter = Callable[[Builder, list[Ref]], list[Ref]]


def iterate(builder: Builder, carried: Sequence[Ref], count: int, step: StepWriter) -> list[Ref]:
    """``step`` applied ``count`` times to scalars; what it returns unchanged is merely kept.

    A result ``select(condition, next, same)`` makes a register that waits, which costs no multiplexer.
    """
    kinds = [ref.type for ref in carried]
    index = IntType.holding(0, count)
    inner = Builder(builder.store, meter=builder.meter)
    params = [builder.store.param(k + 1, kind) for k, kind in enumerate(kinds)]
    results = step(inner, params)
    assert [ref.type for ref in results] == kinds, "a step keeps its types"
    region = builder.store.region([index, *kinds], results)
    return builder.outputs(
        "control.loop", *carried, carried=len(kinds), count=count, index_type=index, region=region,
        start=0, step=1,
    )


def cycles_of(count: int) -> int:
    """Cycles from one item's start of such a loop to the next's: one loads the registers."""
    return count + 1

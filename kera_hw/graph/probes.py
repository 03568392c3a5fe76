"""The observations of an export: its last results, each under an operation that says what it is.

They are part of identity like any result. What only needs the results (a circuit, a proof of it) works on the
export without them; they make an export of their own for what only needs them.
"""
from __future__ import annotations

from dataclasses import replace

from kera_hw.graph.node import Export, Node, Ref, Region
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.types import TupleType


def probes_of(export: Export) -> tuple[Node, ...]:
    """The observing operations, in order."""
    return tuple(dict.fromkeys(ref.node for ref in export.region.results if observes(ref.node)))


def observes(node: Node) -> bool:
    """Whether an operation says what an export shows beside its results."""
    return Trait.OBSERVES in OPS[node.opcode].traits


def without_probes(export: Export) -> Export:
    """The export as it is without its observations."""
    if not probes_of(export):
        return export
    results = tuple(ref for ref in export.region.results if not observes(ref.node))
    return replace(export, region=Region(export.region.params, results), effects=())


def only_probes(export: Export) -> Export:
    """An export whose results are the observations of this one, of the same items and state."""
    results = export.region.results
    observed = [_observed(ref) for ref in results if observes(ref.node)]
    kept = [ref for ref in results if not observes(ref.node)]
    state = kept[len(kept) - len(export.state):]
    result = TupleType(tuple(ref.type for ref in observed))
    region = Region(export.region.params, (*observed, *state))
    return replace(export, result=result, region=region, effects=())


def with_probes(export: Export) -> Export:
    """An export that gives a tuple: the result, then the observations one after another."""
    results = export.region.results
    observed = [_observed(ref) for ref in results if observes(ref.node)]
    kept = [ref for ref in results if not observes(ref.node)]
    split = len(kept) - len(export.state)
    result = TupleType((export.result, *(ref.type for ref in observed)))
    region = Region(export.region.params, (*kept[:split], *observed, *kept[split:]))
    return replace(export, result=result, region=region, effects=())


def unmarked(region: Region) -> Region:
    """The region that gives the observations as the plain values they are, as a caller has it."""
    return Region(region.params, tuple(_observed(ref) for ref in region.results))


def _observed(ref: Ref) -> Ref:
    return ref.node.inputs[ref.index] if observes(ref.node) else ref

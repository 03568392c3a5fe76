"""Runs an exported function or stream on values from outside."""
from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from kera_hw.graph.nesting import check_nesting
from kera_hw.graph.node import Export
from kera_hw.graph.probes import without_probes
from kera_hw.interp.evaluator import Context, compile_region
from kera_hw.interp.lanes import LEAST_ITEMS
from kera_hw.interp.streams import empty_results, initial_state, run_items, stream_of
from kera_hw.interp.values import Value, flatten_value, item_count, reject, unflatten_value
from kera_hw.numerics.arrays import Array


def run_export(export: Export, inputs: Mapping[str, Value], batch: int | bool = False) -> Value:
    """The export's result on values by parameter name, by the conventions of ``interp.values``.

    Without ``batch``: one item (a stream's from reset). With it every input has a leading axis: the items of
    a ``fn``, independent of each other, or the sequence a ``stream`` takes from reset. A number says how
    many items there must be, True reads it off the inputs. Raises KeraError: K0702, K0911 to K0915.
    """
    export = without_probes(export)
    check_nesting(export)
    if batch is False:
        leaves = run_leaves(export, flatten_inputs(export, inputs, None), 1)
        return unflatten_value(export.result, leaves, False)
    items = _count(export, inputs) if batch is True else batch
    return unflatten_value(export.result, run_leaves(export, flatten_inputs(export, inputs, items), items))


def run_leaves(export: Export, args: list[Array], items: int) -> list[Array]:
    """Result leaves of ``items`` items from canonical batch-first parameter leaves."""
    if items == 0:
        return empty_results(export)
    if export.kind == "stream":
        run = stream_of(export).run if items >= LEAST_ITEMS else partial(run_items, export)
        return run(args, initial_state(export), items)[0]
    results = Context(items).execute(compile_region(export.region), args)
    return [np.ascontiguousarray(result) for result in results]


def _count(export: Export, inputs: Mapping[str, Value]) -> int:
    """How many items the inputs hold, each as many."""
    items: int | None = None
    for name, kind in export.params:
        found = item_count(kind, inputs[name]) if name in inputs else None
        if found is not None and items is not None and found != items:
            reject("K0915", f"`{name}` holds {found} items, but another input {items}.")
        items = found if items is None else items
    if items is None:
        reject("K0915", f"The inputs of `{export.name}` do not show how many items to run.")
    return items


def flatten_inputs(export: Export, inputs: Mapping[str, Value], count: int | None) -> list[Array]:
    """Parameter leaves of ``count`` items (None: of one, without an axis for it).

    Raises KeraError: K0911 to K0915.
    """
    wanted = [name for name, _ in export.params]
    for name in inputs:
        if name not in wanted:
            known = ", ".join(f"`{item}`" for item in wanted) or "none"
            reject("K0911", f"`{export.name}` has no parameter `{name}`; it has {known}.")
    leaves: list[Array] = []
    for name, kind in export.params:
        if name not in inputs:
            reject("K0911", f"`{export.name}` takes `{name}` of type {kind}, which is missing.")
        leaves += flatten_value(kind, inputs[name], count, name)
    return leaves

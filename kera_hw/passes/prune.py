"""Dead code across region borders: captures that no body reads."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph import Graph, Node, Ref, Region, Store, splice
from kera_hw.passes.rewrite import Candidate, Rewriter

# Attribute that holds the regions, and how many leading operands and region parameters are not captures.
_REGION_ATTRS = {
    "control.branch": ("regions",), "control.call": ("region",), "control.map": ("region",),
    "control.loop": ("region",), "control.scan": ("region",), "control.while": ("body", "cond"),
}


def prune(store: Store, graph: Graph) -> Graph:
    return Rewriter(store, _rule).graph(graph)


def _rule(node: Candidate) -> Sequence[Ref] | None:
    keys = _REGION_ATTRS.get(node.opcode)
    if keys is None:
        return None
    regions = [r for key in keys for r in _as_regions(node.attrs[key])]
    operand_base, param_base = _fixed_counts(node)
    capture_count = len(node.inputs) - operand_base
    used = {i for region in regions for i in _used_params(region)}
    keep = [k for k in range(capture_count) if param_base + k in used]
    if len(keep) == capture_count:
        return None
    attrs = dict(node.attrs)
    for key in keys:
        held = node.attrs[key]
        if isinstance(held, tuple):
            attrs[key] = tuple(_drop(node.store, r, param_base, keep) for r in _as_regions(held))  # pyright: ignore[reportUnknownArgumentType]
        else:
            attrs[key] = _drop(node.store, held, param_base, keep)
    inputs = (*node.inputs[:operand_base], *(node.inputs[operand_base + k] for k in keep))
    rebuilt = node.store.node(node.opcode, inputs, attrs)
    return [rebuilt.out(i) for i in range(len(rebuilt.types))]


def _as_regions(value: object) -> list[Region]:
    if isinstance(value, tuple):
        return [item for item in value if isinstance(item, Region)]  # pyright: ignore[reportUnknownVariableType]
    assert isinstance(value, Region)
    return [value]


def _fixed_counts(node: Candidate) -> tuple[int, int]:
    """Operands before the captures, and region parameters before theirs."""
    if node.opcode == "control.branch":
        return 1, 0
    if node.opcode == "control.call":
        return 0, 0
    if node.opcode == "control.map":
        return node.attrs["arity"], node.attrs["arity"]
    carried = node.attrs["carried"]
    if node.opcode == "control.loop":
        return carried, carried + 1
    if node.opcode == "control.scan":
        return carried + node.attrs["items"], carried + node.attrs["items"]
    return carried, carried


def _used_params(region: Region) -> set[int]:
    return {index for node in region.nodes() if (index := _param_index(node)) is not None}


def _param_index(node: Node) -> int | None:
    index = node.attr("index") if node.opcode == "core.param" else None
    return index if isinstance(index, int) else None


def _drop(store: Store, region: Region, base: int, keep: Sequence[int]) -> Region:
    """The region with only the kept captures, renumbered."""
    order = [*range(base), *(base + k for k in keep)]
    position = {old: new for new, old in enumerate(order)}
    args = [store.param(position.get(i, i), kind) for i, kind in enumerate(region.params)]
    made = store.region([region.params[i] for i in order], splice(store, region, args))
    store.add_scopes(made, store.scopes.get(region, ()))
    return made

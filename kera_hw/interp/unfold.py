"""A stream's region with calls and small branches opened, so that each value shows what it depends on.

A call or a branch gives several values at once, each of which would seem to need all operands. Opened, a
branch is one selection for each result; arms are evaluated for every lane, as they are anyway wherever the
lanes of a batch differ.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph import Node, Ref, Region, Store
from kera_hw.types import BoolType, IntType, TokenType

MAX_NODES = 20_000  # beyond, opening takes longer than it saves
MAX_ARM_NODES = 256
REPEATING = ("control.loop", "control.scan", "control.while")


class TooLarge(Exception):
    """The region opened has more than MAX_NODES nodes."""


def unfold(region: Region) -> Region:
    """The same values of the same parameters, as nodes of one new store where that is of moderate size."""
    store = Store()
    try:
        results = _opened(store, region, [store.param(k, kind) for k, kind in enumerate(region.params)])
    except TooLarge:
        return region
    return Region(region.params, tuple(results))


def _opened(store: Store, region: Region, args: Sequence[Ref]) -> list[Ref]:
    outputs: dict[Node, Sequence[Ref]] = {}
    for node in region.nodes():
        if len(store) > MAX_NODES:
            raise TooLarge
        outputs[node] = _node(store, node, tuple(outputs[ref.node][ref.index] for ref in node.inputs), args)
    return [outputs[ref.node][ref.index] for ref in region.results]


def _node(store: Store, node: Node, inputs: tuple[Ref, ...], args: Sequence[Ref]) -> Sequence[Ref]:
    attrs = dict(node.attrs)
    if node.opcode == "core.param":
        index = attrs["index"]
        assert isinstance(index, int)
        return [args[index]]
    if node.opcode == "control.call":
        region = attrs["region"]
        assert isinstance(region, Region)
        return _opened(store, region, inputs)
    if node.opcode == "control.branch" and not any(isinstance(kind, TokenType) for kind in node.types):
        arms = attrs["regions"]
        assert isinstance(arms, tuple)
        regions = [arm for arm in arms if isinstance(arm, Region)]
        if all(_is_light(arm) for arm in regions):
            return _chosen(store, inputs[0], [_opened(store, arm, inputs[1:]) for arm in regions])
    copy = store.node(node.opcode, inputs, attrs)
    return [copy.out(k) for k in range(len(copy.types))]


def _is_light(arm: Region) -> bool:
    """Whether an arm is worth evaluating where no lane takes it."""
    nodes = arm.nodes()
    return len(nodes) <= MAX_ARM_NODES and not any(node.opcode in REPEATING for node in nodes)


def _chosen(store: Store, selector: Ref, arms: Sequence[Sequence[Ref]]) -> Sequence[Ref]:
    """Each result of a branch as selections among its arms, the last one for every number from there on."""
    kind = selector.type
    if isinstance(kind, BoolType):
        return [_select(store, selector, yes, no) for no, yes in zip(*arms, strict=True)]
    assert isinstance(kind, IntType)
    values = list(arms[-1])
    for number in reversed(range(min(len(arms) - 1, kind.max + 1))):
        taken = store.op("compare.eq", selector, store.constant(kind, number))
        values = [_select(store, taken, arm, rest) for arm, rest in zip(arms[number], values, strict=True)]
    return values


def _select(store: Store, condition: Ref, yes: Ref, no: Ref) -> Ref:
    return yes if yes == no else store.op("control.select", condition, yes, no)

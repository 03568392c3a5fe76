"""The pass manager: pipelines are data, run to a fixed point, and every change is verified.

A pass is a function from store and graph to graph. The manager decides what changed by content hash, so a
pass cannot claim otherwise, and runs the verifier after each change; a fault there is a bug of ours and is
raised as one, naming the pass.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kera_hw.graph import Graph, Store, verify_graph
from kera_hw.graph.keg_write import collect_regions

Pass = Callable[[Store, Graph], Graph]

# Each pass shrinks or canonicalises; a pipeline that has not settled by then oscillates, which is a bug.
MAX_ROUNDS = 32


class PassError(Exception):
    """A pass broke the graph or the pipeline does not settle: a bug of ours."""


@dataclass(frozen=True, slots=True)
class PassRun:
    """What one pass run did: its name, the round, and node counts before and after."""

    name: str
    round: int
    nodes_before: int
    nodes_after: int


@dataclass(frozen=True, slots=True)
class Optimised:
    graph: Graph
    steps: tuple[PassRun, ...]  # only those that changed something


def run_pipeline(graph: Graph, passes: Sequence[tuple[str, Pass]], store: Store | None = None) -> Optimised:
    """Runs the passes in order, again and again until none changes the graph."""
    store = store or Store()
    steps: list[PassRun] = []
    for number in range(MAX_ROUNDS):
        changed = False
        for name, run in passes:
            before = graph
            after = run(store, graph)
            if after.hash == before.hash:
                continue
            problems = verify_graph(after)
            if problems:
                raise PassError(f"pass {name} broke the graph: {problems[0].message}")
            steps.append(PassRun(name, number, count_nodes(before), count_nodes(after)))
            graph, changed = after, True
        if not changed:
            return Optimised(graph, tuple(steps))
    raise PassError(f"the pipeline {[name for name, _ in passes]} does not settle in {MAX_ROUNDS} rounds")


def count_nodes(graph: Graph) -> int:
    """Nodes over the exports' regions and all regions they hold, each region once."""
    return sum(len(region.nodes()) for region in collect_regions(graph))

"""The pass manager: pipelines are data, run to a fixed point, and every change is verified.

A pass is a function from store and graph to graph. The manager decides what changed by content hash, so a
pass cannot claim otherwise, and runs the verifier after each change; a fault there is a bug of ours and is
raised as one, naming the pass.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.graph import Graph, Store, verify_graph

Pass = Callable[[Store, Graph], Graph]

# Each pass shrinks or canonicalises; a pipeline that has not settled by then oscillates, which is a bug.
MAX_ROUNDS = 32


class PassError(Exception):
    """A pass broke the graph or the pipeline does not settle: a bug of ours."""


def run_pipeline(graph: Graph, passes: Sequence[tuple[str, Pass]], store: Store | None = None) -> Graph:
    """Runs the passes in order, again and again until none changes the graph."""
    store = store or Store()
    for _ in range(MAX_ROUNDS):
        changed = False
        for name, run in passes:
            after = run(store, graph)
            if after.hash == graph.hash:
                continue
            problems = verify_graph(after)
            if problems:
                raise PassError(f"pass {name} broke the graph: {problems[0].message}")
            graph, changed = after, True
        if not changed:
            return graph
    raise PassError(f"the pipeline {[name for name, _ in passes]} does not settle in {MAX_ROUNDS} rounds")

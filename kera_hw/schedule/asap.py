"""Systems of difference constraints: earliest and latest stages, and the loop that makes one infeasible.

Forward constraints (u, v, c), stage[v] >= stage[u] + c, always lead to a larger node, so one sweep settles
them. Backward ones close the loops through state: stage[read] >= stage[write] - (II - 1) for registers, and
what accesses to memories ask across items; or they tie what controls a register, or shows it once it is
written, to the stage that writes it.

Loops that bound the initiation interval are the recurrences of Rau, "Iterative modulo scheduling", MICRO
1994, as constraints like those of Zhang and Liu, "SDC-based modulo scheduling for pipeline synthesis",
ICCAD 2013.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kera_hw.schedule.accesses import Order, orders
from kera_hw.schedule.fpga.cells import StateNext, WriteControl
from kera_hw.schedule.fpga.netlist import control_readers
from kera_hw.schedule.problem import IntArray, Problem


@dataclass(frozen=True, slots=True)
class Constraints:
    """Forward constraints as arrays; backward ones, which hold from one item to a later one, as ``loops``.

    ``ties`` are (u, v, c) like the forward ones, in any direction: of cells just c stages after a write, or
    of calls that share a unit.
    """

    source: IntArray
    target: IntArray
    distance: IntArray
    loops: tuple[Order, ...]
    node_count: int
    ties: tuple[tuple[int, int, int], ...] = ()

    def backward(self, initiation_interval: int) -> list[tuple[int, int, int]]:
        """Backward constraints (u, v, c) at an initiation interval."""
        return [(u, v, c - items * initiation_interval) for u, v, c, items in self.across()]

    def across(self) -> list[Order]:
        """Backward constraints with the items that they reach over."""
        return [*self.loops, *(Order(u, v, c, 0) for u, v, c in self.ties)]

    def rows(self) -> list[tuple[int, int, int]]:
        """Forward constraints as (u, v, c), sorted by v, then u."""
        order = np.lexsort((self.source, self.target))
        source, target, distance = self.source[order], self.target[order], self.distance[order]
        return list(zip(source.tolist(), target.tolist(), distance.tolist()))


def build_constraints(problem: Problem, pairs: tuple[IntArray, IntArray]) -> Constraints:
    """Precedence, state, end and timing constraints of a problem."""
    cells, states = problem.cell_count, problem.netlist.states
    rows: list[tuple[int, int, int]] = [(0, problem.end, 0)] if cells else []
    loops: list[Order] = []
    ties: list[tuple[int, int, int]] = []
    for index, state in enumerate(states):
        write = problem.write_node(index)
        rows += [(state.out, write, 0), (write, problem.end, 1)]
        read = {s.cell for bits in state.operands() for s in bits if s.cell is not None}
        rows += [(cell, write, int(problem.latency[cell])) for cell in sorted(read)]
        loops.append(Order(write, state.out, 1, 1))
        ties += [(write, pin, 0) for pin in state.pins()]
    for reader, controls in control_readers(problem.netlist.cells).items():
        ties += [(reader, control, 0) for control in sorted(controls - {reader})]
    for index, cell in enumerate(problem.netlist.cells):
        if isinstance(cell, WriteControl):
            rows.append((index, problem.write_node(cell.state), 0))
            ties.append((problem.write_node(cell.state), index, 0))
        elif isinstance(cell, StateNext):
            write = problem.write_node(cell.state)
            ties.append((write, index, 1))
            rows += [(index, write, -1), (index, problem.end, 0)]
    for order in orders(problem.netlist):
        if order.items:
            loops.append(order)
        else:
            rows.append((order.before, order.after, order.stages))
    read_by_cells = np.zeros(cells, dtype=bool)
    read_by_cells[problem.edges.source] = True
    at_end = {s.cell for output in problem.netlist.outputs for s in output.bits if s.cell is not None}
    at_end |= set(np.flatnonzero(~read_by_cells).tolist())
    shown = {index for index, cell in enumerate(problem.netlist.cells) if isinstance(cell, StateNext)}
    rows += [(cell, problem.end, max(1, int(problem.latency[cell]))) for cell in sorted(at_end - shown)]
    fixed = np.array(rows, dtype=np.int64).reshape(-1, 3)
    source = np.concatenate([problem.edges.source, fixed[:, 0], pairs[0]])
    target = np.concatenate([problem.edges.target, fixed[:, 1], pairs[1]])
    own = problem.latency[problem.edges.source]
    distance = np.concatenate([own, fixed[:, 2], np.ones(len(pairs[0]), dtype=np.int64)])
    return Constraints(source, target, distance, tuple(loops), problem.end + 1, tuple(ties))


@dataclass(frozen=True, slots=True)
class Loop:
    """A cycle of constraints that cannot hold: its nodes, the stages it takes, the items it reaches over."""

    nodes: tuple[int, ...]
    stages: int
    items: int

    @property
    def least_initiation_interval(self) -> int:
        """The smallest initiation interval at which this loop holds."""
        assert self.items, "constraints within an item can be kept"
        return -(-self.stages // self.items)


def earliest(constraints: Constraints, initiation_interval: int) -> list[int] | Loop:
    """Every node's least stage (the end node's: at least 1) at an initiation interval, or what forbids it."""
    edges, backward = constraints.rows(), constraints.across()
    stage = [0] * constraints.node_count
    stage[-1] = 1
    parent: list[tuple[int, int, int] | None] = [None] * constraints.node_count
    while True:
        for u, v, c in edges:
            if stage[u] + c > stage[v]:
                stage[v] = stage[u] + c
                parent[v] = (u, c, 0)
        changed = False
        for u, v, c, items in backward:
            if stage[u] + c - items * initiation_interval > stage[v]:
                stage[v] = stage[u] + c - items * initiation_interval
                parent[v] = (u, c, items)
                changed = True
                if (loop := _cycle(parent, v)) is not None:
                    return loop
        if not changed:
            return stage


def _cycle(parent: Sequence[tuple[int, int, int] | None], node: int) -> Loop | None:
    """The cycle through ``node`` in the parent relation, if it lies on one."""
    nodes = [node]
    stages = items = 0
    while (step := parent[nodes[-1]]) is not None:
        stages, items = stages + step[1], items + step[2]
        if step[0] == node:
            return Loop(tuple(reversed(nodes)), stages, items)
        nodes.append(step[0])
        if len(nodes) > len(parent):  # a cycle not through this node: its own read node will report it
            return None
    return None


def latest(
    constraints: Constraints, initiation_interval: int, stage_count: int, pinned: Sequence[int]
) -> list[int]:
    """The greatest stage of every node when the end node is at ``stage_count`` and ``pinned`` nodes are at 0.

    Meaningful only where ``earliest`` succeeds with an end no later than ``stage_count``.
    """
    edges, backward = constraints.rows()[::-1], constraints.backward(initiation_interval)
    stage = [stage_count] * constraints.node_count
    for node in pinned:
        stage[node] = 0
    while True:
        for u, v, c in edges:
            stage[u] = min(stage[u], stage[v] - c)
        changed = False
        for u, v, c in backward:
            if stage[v] - c < stage[u]:
                stage[u] = stage[v] - c
                changed = True
        if not changed:
            return stage

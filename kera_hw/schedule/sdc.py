"""The stages that keep the fewest register bits at a given latency: a program over difference constraints.

Every run of bits costs width * (last reader's stage - stage it is available in, or for a state register the
one that writes it). All rows have the form
x_v - x_u >= c, so the matrix is totally unimodular and an optimal vertex is integral. The solver works with
floating point: what it gives is rounded and held against every row in integers. Where nothing is to be had
from it (the program is too large, the limit of steps reached, the answer fails that check), the earliest
schedule, which is exact, is improved node by node instead, and the plan says so.

The formulation is that of Cong and Zhang, "An efficient and versatile scheduling algorithm based on SDC
formulation", DAC 2006; the cost of a run kept for its last reader that of Leiserson and Saxe, "Retiming
synchronous circuitry", 1991.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import highspy
import numpy as np

from kera_hw.schedule.asap import Constraints
from kera_hw.schedule.fpga.cells import StateOut
from kera_hw.schedule.problem import IntArray, Problem

Numbers = np.ndarray[Any, np.dtype[Any]]

_highs = cast("Any", highspy)  # its stubs are partial

STEP_LIMIT = 60_000
ROW_LIMIT = 100_000
"""Rows of a program beyond which the solver takes minutes. Designs that fit a device stay far below."""
_SWEEPS = 8


@dataclass
class _Program:
    """A linear program under construction; rows are x[high] - x[low] >= distance."""

    lower: list[int]
    upper: list[int]
    cost: list[float]
    rows: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])

    def variable(self, lower: int, upper: int, cost: float) -> int:
        self.lower.append(lower)
        self.upper.append(upper)
        self.cost.append(cost)
        return len(self.cost) - 1

    def require(self, high: int, low: int, distance: int) -> None:
        """Add a row unless the bounds already imply it."""
        if self.lower[high] - self.upper[low] < distance:
            self.rows.append((high, low, distance))


def least_registers(
    problem: Problem, constraints: Constraints, initiation_interval: int, lower: Sequence[int],
    upper: Sequence[int],
    step_limit: int = STEP_LIMIT,
) -> tuple[list[int], bool]:
    """Stages of all nodes with the least register bits within the bounds, and whether they are the least.

    ``lower`` must itself be a schedule. ``step_limit`` bounds the solver's pivots; 0 leaves the solver out.
    """
    program = _Program(list(lower), list(upper), [0.0] * constraints.node_count)
    _add_costs(problem, program, initiation_interval)
    for u, v, c in constraints.rows():
        program.require(v, u, c)
    for u, v, c in constraints.backward(initiation_interval):
        program.require(v, u, c)
    assert _holds(program, np.array(program.lower)), "the earliest stages are a schedule"
    solved = _solve(program, step_limit) if step_limit and len(program.rows) <= ROW_LIMIT else None
    if solved is None:
        return _improve(problem, constraints, initiation_interval, lower, upper), False
    return solved[: constraints.node_count], True


def _add_costs(problem: Problem, program: _Program, initiation_interval: int) -> None:
    """Charge each run from where it arises to its last reader; where several may be last, a variable is."""
    shared: dict[tuple[tuple[int, ...], int], int] = {}
    for run in problem.runs:
        since, readers = run.cell, run.readers
        cell = problem.netlist.cells[run.cell]
        if initiation_interval > 1 and isinstance(cell, StateOut):
            since = problem.write_node(cell.state)  # until then the state register itself shows it
            readers = tuple(sorted({*readers, since}))
        program.cost[since] -= run.width
        floor = max(program.lower[r] for r in readers)
        late = tuple(r for r in readers if program.upper[r] > floor)
        if not late:  # some reader sits at the floor for certain, and no other can come later
            continue
        if len(late) == 1 and program.lower[late[0]] == floor:
            program.cost[late[0]] += run.width
            continue
        if (late, floor) not in shared:
            last = program.variable(floor, max(program.upper[r] for r in late), 0.0)
            for reader in late:
                program.require(last, reader, 0)
            shared[late, floor] = last
        program.cost[shared[late, floor]] += run.width


def _holds(program: _Program, values: IntArray) -> bool:
    """Whether integers keep all bounds and rows."""
    rows = np.array(program.rows, dtype=np.int64).reshape(-1, 3)
    within = np.all((values >= np.array(program.lower)) & (values <= np.array(program.upper)))
    return bool(within) and bool(np.all(values[rows[:, 0]] - values[rows[:, 1]] >= rows[:, 2]))


def _solve(program: _Program, step_limit: int) -> list[int] | None:
    """The optimum, or None when the solver found none that holds."""
    lower, upper = np.array(program.lower), np.array(program.upper)
    free = lower < upper
    out = lower.copy()
    if not free.any():
        return out.tolist()
    column = np.cumsum(free) - 1
    rows = np.array(program.rows, dtype=np.int64).reshape(-1, 3)
    high, low, distance = rows[:, 0], rows[:, 1], rows[:, 2]
    # Fixed variables move to the right-hand side: x[high] - x[low] >= distance - constants.
    bound = distance - np.where(free[high], 0, lower[high]) + np.where(free[low], 0, lower[low])
    values = _minimise(
        np.array(program.cost)[free], lower[free], upper[free], bound,
        (np.where(free[high], column[high], -1), np.where(free[low], column[low], -1)), step_limit,
    )
    if values is None or not np.all(np.isfinite(values)):
        return None
    out[free] = np.rint(values).astype(np.int64)
    return out.tolist() if _holds(program, out) else None


def _minimise(
    cost: Numbers, lower: Numbers, upper: Numbers, bound: Numbers, ends: tuple[Numbers, Numbers],
    step_limit: int,
) -> Numbers | None:
    """Least cost with x[ends[0][i]] - x[ends[1][i]] >= bound[i] (an end of -1 is absent), by dual simplex.

    None when the solver ends without an optimum.
    """
    solver = _highs.Highs()
    solver.silent()
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("simplex_iteration_limit", step_limit)
    program = _highs.HighsLp()
    program.num_col_, program.num_row_ = len(cost), len(bound)
    program.col_cost_, program.col_lower_, program.col_upper_ = (
        cost.astype(np.float64), lower.astype(np.float64), upper.astype(np.float64)
    )
    program.row_lower_ = bound.astype(np.float64)
    program.row_upper_ = np.full(len(bound), _highs.kHighsInf)
    columns = np.stack(ends, axis=1)
    present = columns >= 0
    program.a_matrix_.format_ = _highs.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
    program.a_matrix_.index_ = columns[present].astype(np.int32)
    program.a_matrix_.value_ = np.broadcast_to([1.0, -1.0], columns.shape)[present]
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != _highs.HighsModelStatus.kOptimal:
        return None
    return np.array(solver.getSolution().col_value, dtype=np.float64)


def _improve(
    problem: Problem, constraints: Constraints, initiation_interval: int, lower: Sequence[int],
    upper: Sequence[int],
) -> list[int]:
    """From the earliest schedule, move node after node, last first, to where fewest bits are kept."""
    stage = list(lower)
    before: list[list[tuple[int, int]]] = [[] for _ in stage]
    after: list[list[tuple[int, int]]] = [[] for _ in stage]
    rows = [*constraints.rows(), *constraints.backward(initiation_interval)]
    for u, v, c in rows:
        before[v].append((u, c))
        after[u].append((v, c))
    touching: list[list[int]] = [[] for _ in stage]
    for index, run in enumerate(problem.runs):
        for node in {run.cell, *run.readers}:
            touching[node].append(index)
    latency: list[int] = problem.latency.tolist()

    def cost(node: int) -> int:
        total = 0
        for index in touching[node]:
            run = problem.runs[index]
            total += run.width * (max(stage[r] for r in run.readers) - stage[run.cell] - latency[run.cell])
        return total

    def stops(node: int, low: int, high: int) -> set[int]:
        """Where the cost, linear in between, may be least: the ends, and where another reader is the last."""
        found = {low, high}
        for index in touching[node]:
            run = problem.runs[index]
            if run.cell != node and len(run.readers) > 1:
                found.add(min(high, max(low, *(stage[r] for r in run.readers if r != node))))
        return found

    for _ in range(_SWEEPS):
        moved = False
        for node in range(len(stage) - 2, -1, -1):
            low = max([lower[node], *(stage[u] + c for u, c in before[node])])
            high = min([upper[node], *(stage[v] - c for v, c in after[node])])
            here, best = stage[node], (cost(node), stage[node])
            for place in stops(node, low, high):
                stage[node] = place
                best = min(best, (cost(node), stage[node]))
            stage[node] = best[1]
            moved |= best[1] != here
        if not moved:
            break
    return stage

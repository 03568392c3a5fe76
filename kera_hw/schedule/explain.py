"""Why there is no plan, in the reader's terms: which operations, and what would make it feasible."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kera_hw.schedule.asap import Constraints, Loop
from kera_hw.schedule.fpga.cells import Call, Cell, Input, StateOut
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import ReadPort, WritePort
from kera_hw.schedule.plan import Recurrence
from kera_hw.schedule.problem import Problem
from kera_hw.support.diagnostic import Diagnostic
from kera_hw.support.source import SourceFile


@dataclass(frozen=True, slots=True)
class Refusal(Diagnostic):
    """Why there is no plan (K0601 to K0603), and the least that there would be: period in ps, cycles."""

    least: int = 0


Sources = Mapping[str, SourceFile]
_SHOWN = 6  # operations of a path that a message spells out


def cell_label(cell: Cell) -> str:
    """What a cell does, with the source name and line where they are known."""
    text = cell.describe()
    name = cell.name or (cell.origin.name if cell.origin else None)
    if name and not isinstance(cell, Input):
        text += f" `{name}`"
    if cell.origin is not None:
        text += f" ({cell.origin})"
    return text


def _mhz(period_ps: int) -> str:
    """The clock of a period, rounded down to a tenth so that asking for it succeeds."""
    return f"{int(1e7 / period_ps) / 10:g} MHz"


def _refusal(code: str, message: str, least: int, cell: Cell | None, sources: Sources | None) -> Refusal:
    if cell is None or cell.origin is None or sources is None or cell.origin.path not in sources:
        return Refusal(code, message, least=least)
    return Refusal(code, message, sources[cell.origin.path], cell.origin.span, least=least)


def too_slow(problem: Problem, clock_ps: int, sources: Sources | None) -> Refusal:
    """K0601 for the slowest cell."""
    worst = int(problem.base_ps.argmax())
    cell = problem.netlist.cells[worst]
    need = int(problem.base_ps[worst]) + problem.model.setup_ps
    message = (
        f"The {cell_label(cell)} takes {need / 1000:.2f} ns on {problem.model.device.name}, more than the "
        f"clock period of {clock_ps / 1000:.2f} ns ({_mhz(clock_ps)}); the fastest clock for it is "
        f"{_mhz(need)}."
    )
    return _refusal("K0601", message, need, cell, sources)


def no_latency(
    problem: Problem, constraints: Constraints, least: Sequence[int], asked: int, clock_ps: int,
    sources: Sources | None,
) -> Refusal:
    """K0602 with the operations of a path that needs all those stages."""
    path = _longest(problem, constraints, least)
    way = spell_path(problem.netlist, path)
    message = (
        f"A latency of {asked} {_cycles(asked)} is too short at {_mhz(clock_ps)}: `{problem.netlist.name}` "
        f"needs at least {least[-1]}. The longest path: {way}. Ask for latency {least[-1]} "
        "or a slower clock."
    )
    return _refusal("K0602", message, least[-1], problem.netlist.cells[path[-1]] if path else None, sources)


def no_initiation_interval(
    problem: Problem, loop: Loop, asked: int, clock_ps: int, sources: Sources | None,
) -> Refusal:
    """K0603 with the loop of operations through the state, or the calls that find no turns."""
    if not loop.items:
        return no_turn(problem.netlist, asked, sources, asked + 1)
    found = loop_recurrence(problem, loop)
    least = loop.least_initiation_interval
    if not found.states:
        return no_turn(problem.netlist, asked, sources, least)
    names = ", ".join(f"`{name}`" for name in found.states)
    way = spell_path(problem.netlist, found.cells)
    message = (
        f"A new item every {asked} {_cycles(asked)} is too often at {_mhz(clock_ps)}: the next value of "
        f"{names} takes {found.stages} stages ({way}). The smallest interval "
        f"for this loop is {least}."
    )
    cell = problem.netlist.cells[found.cells[-1]] if found.cells else None
    return _refusal("K0603", message, least, cell, sources)


def no_turn(netlist: Netlist, asked: int, sources: Sources | None, least: int | None = None) -> Refusal:
    """K0603 for a unit that has more work in an item than the interval leaves it.

    ``least``: an interval that may do, where the calls' own times do not say it.
    """
    unit, users = max(netlist.calls(), key=lambda item: item[0].initiation_interval * len(item[1]))
    cell = netlist.cells[users[-1]]
    shortest = f"The smallest interval for them is {unit.initiation_interval * len(users)}."
    if least is not None:
        shortest = f"They wait for each other; an interval of {least} may do."
    least = least or unit.initiation_interval * len(users)
    message = (
        f"A new item every {asked} {_cycles(asked)} is too often: the {cell_label(cell)} is one of "
        f"{len(users)} that take turns in each item. {shortest}"
    )
    return _refusal("K0603", message, least, cell, sources)


def _cycles(count: int) -> str:
    return "cycle" if count == 1 else "cycles"


def spell_path(netlist: Netlist, path: Sequence[int]) -> str:
    """A way through cells in words; of a long one its ends."""
    labels = [cell_label(netlist.cells[cell]) for cell in path]
    if len(labels) > _SHOWN:
        half = _SHOWN // 2
        labels = [*labels[:half], f"… {len(labels) - 2 * half} more …", *labels[-half:]]
    return " → ".join(labels)


def _longest(problem: Problem, constraints: Constraints, least: Sequence[int]) -> list[int]:
    """Cells of a chain of tight constraints that ends at the end node."""
    tight = {v: u for u, v, c in constraints.rows() if least[u] + c == least[v]}
    nodes = [problem.end]
    while nodes[-1] in tight:
        nodes.append(tight[nodes[-1]])
    return fill_path(problem, [node for node in reversed(nodes) if node < problem.cell_count])


def loop_recurrence(problem: Problem, loop: Loop) -> Recurrence:
    """The loop's cells, wires between timing pairs filled in, starting with a state read."""
    nodes = list(loop.nodes)
    first = next((k for k, n in enumerate(nodes) if n < problem.cell_count and _reads(problem, n)), 0)
    nodes = nodes[first:] + nodes[:first]
    states = [name for name in (_held_in(problem, node) for node in nodes) if name is not None]
    cells: list[int] = []
    part: list[int] = []
    for node in [*nodes, problem.end]:
        if node < problem.cell_count and not (part and _reads(problem, node)):
            part.append(node)
            continue
        cells += fill_path(problem, part)
        part = [node] if node < problem.cell_count else []
    return Recurrence(tuple(cells), tuple(dict.fromkeys(states)), loop.least_initiation_interval)


def _held_in(problem: Problem, node: int) -> str | None:
    """The state or the memory that a node of a loop writes."""
    if node >= problem.cell_count:
        return problem.netlist.states[node - problem.cell_count].name
    cell = problem.netlist.cells[node]
    if isinstance(cell, Call) and isinstance(cell.unit, WritePort):
        return cell.unit.storage.name
    return None


def _reads(problem: Problem, node: int) -> bool:
    cell = problem.netlist.cells[node]
    return isinstance(cell, StateOut) or (isinstance(cell, Call) and isinstance(cell.unit, ReadPort))


def fill_path(problem: Problem, cells: Sequence[int]) -> list[int]:
    """A path of cells through ``cells`` in order, taking the longest way where two are not neighbours."""
    if not cells:
        return []
    drivers: dict[int, list[tuple[int, int]]] = {}
    for source, target, chained_ps, _ in problem.edges.rows():
        drivers.setdefault(target, []).append((source, chained_ps))
    path = [cells[0]]
    for goal in cells[1:]:
        path += _way(drivers, path[-1], goal)
    return path


def _way(drivers: Mapping[int, list[tuple[int, int]]], start: int, goal: int) -> list[int]:
    """The cells after ``start`` up to ``goal`` on the longest path between them (``goal`` alone if none)."""
    time: dict[int, int] = {start: 0}
    before: dict[int, int] = {}
    for cell in range(start + 1, goal + 1):
        known = [(time[u] + added, u) for u, added in drivers.get(cell, []) if u in time]
        if known:
            time[cell], before[cell] = max(known)
    path = [goal]
    while path[-1] in before and before[path[-1]] != start:
        path.append(before[path[-1]])
    return path[::-1]

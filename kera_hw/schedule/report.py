"""What a report shows of a plan: the pipeline chart, registers by stage, the critical path in words."""
from __future__ import annotations

from dataclasses import asdict, dataclass

from kera_hw.schedule.explain import cell_label
from kera_hw.schedule.fpga.cells import StateNext
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """One operation of the chart: it works in ``stage``, its value is there from ``available`` on.

    ``last_stage`` is the last stage that still holds the value (the latency for outputs). ``start_ps`` and
    ``end_ps`` place the operation within its stage's clock period. ``path`` and ``line`` are its source, or
    the first of several places that ``source`` lists.
    """

    cell: int
    label: str
    kind: str
    width_bits: int
    stage: int
    available: int
    last_stage: int
    start_ps: int
    end_ps: int
    critical: bool
    path: str | None
    line: int | None
    source: str | None

    def to_json(self) -> dict[str, object]:
        """A plain JSON object."""
        return asdict(self)


def pipeline_rows(netlist: Netlist, plan: Plan) -> list[PipelineRow]:
    """Rows of the pipeline chart, by stage, then by time within it; what only shows a register has none."""
    kept: dict[int, int] = {}
    for life in plan.lifetimes:
        kept[life.cell] = max(kept.get(life.cell, 0), life.until)
    critical = {step.cell for path in plan.critical_paths for step in path}
    rows = [
        PipelineRow(
            index, cell.describe() if cell.name is None else f"{cell.name}: {cell.describe()}",
            type(cell).__name__.lower(), cell.width, plan.stage[index], plan.available[index],
            kept.get(index, plan.available[index]), _start_ps(netlist, plan, index), plan.arrival_ps[index],
            index in critical,
            None if cell.origin is None else cell.origin.path,
            None if cell.origin is None else cell.origin.line,
            None if cell.origin is None else str(cell.origin),
        )
        for index, cell in enumerate(netlist.cells)
        if not isinstance(cell, StateNext)
    ]
    return sorted(rows, key=lambda row: (row.stage, row.end_ps, row.cell))


def _start_ps(netlist: Netlist, plan: Plan, index: int) -> int:
    """When the last operand of a cell has settled in its stage; 0 when all come from registers."""
    cell = netlist.cells[index]
    drivers = {s.cell for bits in cell.operands() for s in bits if s.cell is not None}
    here = [d for d in drivers if plan.available[d] == plan.stage[index]]
    chained = [d for d in here if not netlist.cells[d].leaf]
    own = plan.arrival_ps[index] if plan.available[index] == plan.stage[index] else plan.clock_ps
    return min(own, max((plan.arrival_ps[d] for d in chained), default=0))


def stage_register_bits(plan: Plan) -> list[int]:
    """Register bits at the end of each stage; they sum to the plan's ``register_bits``."""
    bits = [0] * plan.latency_cycles
    for life in plan.lifetimes:
        for stage in life.loads():
            bits[stage] += life.width
    return bits


def critical_path_text(netlist: Netlist, plan: Plan) -> list[str]:
    """The longest path of all stages, one line an operation."""
    path = max(plan.critical_paths, key=lambda p: p[-1].arrival_ps if p else 0)
    return [
        f"{cell_label(netlist.cells[step.cell])}: +{step.delay_ps / 1000:.2f} ns, "
        f"at {step.arrival_ps / 1000:.2f} ns"
        for step in path
    ]

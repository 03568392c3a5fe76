"""Closing timing: how much slower wires came out than foreseen, for scheduling once more.

The flow calls ``schedule`` with scale 1, places and routes, and where the clock is missed calls it again with
``next_scale``: the stretch of all wires with which the model would have said what routing reported.
"""
from __future__ import annotations

from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan

_LEAST_STEP, _LARGEST_STEP = 1.04, 1.4
_LARGEST_SCALE = 3.0


def next_scale(netlist: Netlist, plan: Plan, model: DelayModel, achieved_ps: int) -> float | None:
    """The wire stretch to schedule with after routing reached ``achieved_ps``; None when it met the clock.

    ``model`` is the one the plan was made with, its ``scale`` included. Each step is at least 4 % and at
    most 40 %, so that rounds come to an end; None also when the stretch has no sensible value left.
    """
    if achieved_ps <= plan.clock_ps or model.scale >= _LARGEST_SCALE:
        return None
    foreseen, wires = 0, 1
    for path in plan.critical_paths:
        if path and path[-1].arrival_ps > foreseen:
            foreseen = path[-1].arrival_ps
            cells = sum(model.logic_ps(netlist.cells[step.cell]) for step in path)
            wires = max(sum(step.delay_ps for step in path) - cells, foreseen // 5)
    excess = achieved_ps - max(foreseen + plan.setup_ps, plan.clock_ps)
    stretch = 1 + max(excess, achieved_ps - plan.clock_ps) / wires
    return model.scale * min(max(stretch, _LEAST_STEP), _LARGEST_STEP)

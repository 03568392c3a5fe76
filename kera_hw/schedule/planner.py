"""From a netlist to a plan: constraints, interval and latency, the fewest registers, figures."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kera_hw.schedule.accesses import reset_cycles, shared_ffs
from kera_hw.schedule.asap import Constraints, Loop, build_constraints, latest
from kera_hw.schedule.delays import delay_lines, lines_note
from kera_hw.schedule.explain import (
    Refusal,
    Sources,
    loop_recurrence,
    no_initiation_interval,
    no_latency,
    no_turn,
    too_slow,
)
from kera_hw.schedule.fpga.cells import Input
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.lut_ram import delay_ffs, delay_luts
from kera_hw.schedule.fpga.netlist import Netlist, least_initiation_interval
from kera_hw.schedule.fpga.resource_model import (
    handshake_ffs,
    inner_ffs,
    netlist_brams,
    netlist_dsps,
    netlist_luts,
    reset_ffs,
    reset_luts,
)
from kera_hw.schedule.fpga.units import Port
from kera_hw.schedule.lifetimes import enabled_stages, lifetimes, register_bits
from kera_hw.schedule.plan import PathStep, Plan, Recurrence, Resources, UnitPlan
from kera_hw.schedule.problem import Problem, build_problem, staged_fanout, timing_pairs, with_fanout
from kera_hw.schedule.reservations import Reserved, shared_units, with_units
from kera_hw.schedule.sdc import least_registers
from kera_hw.schedule.timing import fmax_mhz, likely, stage_arrivals, stage_paths
from kera_hw.schedule.turns import Placed, choice_luts, held_ffs, phase_ffs, phase_luts, turns
from kera_hw.support.diagnostic import Diagnostic

_NEAR = 1  # stages around a reader's earliest one whose readers are taken for loads of the same wire
_ROUNDS = 4
_AIMS = 2  # schedules that aim beyond the clock
_MANY_CELLS, _MOST_CELLS = 15_000, 80_000  # from which a netlist may be, or is, too large for a fine schedule


@dataclass(frozen=True, slots=True)
class _Solution:
    """Stages of all nodes, and the problem (its fan-outs) for which they hold."""

    problem: Problem
    stage: list[int]
    initiation_interval: int
    loop: Loop | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked: clock, limit of a stage's paths, latency and interval if any, where sources are.

    ``in_haste``: a plan to be had within seconds is wanted, not one of few registers.
    """

    clock_ps: int
    limit_ps: int
    latency: int | None
    ii: int | None
    sources: Sources | None
    in_haste: bool
    alone: bool
    most_luts: int | None


def schedule(
    netlist: Netlist,
    device: Device,
    clock_ps: int,
    latency: int | None = None,
    ii: int | None = None,
    *,
    interface: str = "stream",
    scale: float = 1.0,
    sources: Sources | None = None,
    alone: bool = True,
    most_luts: int | None = None,
) -> tuple[Plan | None, list[Diagnostic]]:
    """The plan with the fewest register bits for ``netlist`` at a clock period of ``clock_ps``.

    ``latency`` asks for that many stages (default: the least), ``ii`` for that initiation interval (default:
    the smallest feasible). ``scale`` stretches wire delays (after a routed result that missed the clock).
    ``sources`` maps paths to files so that diagnostics can show the place. ``alone``: no other circuit's LUTs
    and flip-flops count with this one's, so that one may be exchanged for the other, up to ``most_luts``. No
    plan: K0601 to K0603; a plan and K0604: it does not fit the device.
    """
    assert latency is None or latency >= 1
    assert ii is None or ii >= 1
    model = DelayModel(device, scale)
    problem = build_problem(netlist, model)
    in_haste = _is_huge(netlist, device)
    asked = _Request(clock_ps, clock_ps - model.setup_ps, latency, ii, sources, in_haste, alone, most_luts)
    made = _plan(problem, asked, interface)
    if isinstance(made, Refusal):
        return None, [made]
    plan = made.plan
    for _ in range(0 if in_haste else _AIMS):
        # Paths that all just fit do not all route as well as one: aim beyond the clock by what is foreseen.
        if made.foreseen_ps <= clock_ps:
            break
        limit_ps = int(asked.limit_ps * clock_ps / made.foreseen_ps)
        asked = replace(asked, limit_ps=max(limit_ps, _slowest_cell_ps(problem, plan)))
        tighter = _plan(problem, asked, interface)
        if isinstance(tighter, Refusal) or tighter.plan.initiation_interval > plan.initiation_interval:
            if 1e6 / plan.estimate.fmax_mhz > clock_ps:
                note = f"Routing should reach {plan.estimate.fmax_mhz:.0f} MHz; no schedule promises more."
                plan = replace(plan, notes=(*plan.notes, note))
            break
        made, plan = tighter, tighter.plan
    return plan, over_capacity(netlist.name, plan, device)


def _is_huge(netlist: Netlist, device: Device) -> bool:
    """Whether a netlist is so far beyond its device that a fine schedule would be wasted on it."""
    count = len(netlist.cells)
    return count > _MOST_CELLS or (count > _MANY_CELLS and netlist_luts(netlist, device) > 2 * device.lut)


def _slowest_cell_ps(problem: Problem, plan: Plan) -> int:
    """The longest time of one cell alone in a stage, with the fan-outs of a plan."""
    stage = [*plan.stage, *plan.state_write, plan.latency_cycles]
    return int(with_fanout(problem, staged_fanout(problem, stage)).base_ps.max(initial=0))


@dataclass(frozen=True, slots=True)
class _Made:
    """A plan, and the clock period that routing takes if no path is looked after more than others."""

    plan: Plan
    foreseen_ps: float


def _plan(problem: Problem, asked: _Request, interface: str) -> _Made | Refusal:
    """One schedule within the limit asked for, written down."""
    found = (
        _soonest(problem, asked) or _relieved(problem, asked) or _stretched(problem, asked)
        or _solve(problem, asked)
    )
    if isinstance(found, Refusal):
        return found
    found = _closer(problem, asked, found)
    recurrence = None if found.loop is None else loop_recurrence(problem, found.loop)
    if recurrence is not None and not recurrence.states:  # calls that take turns made it so long
        recurrence = None
    exact = with_fanout(problem, staged_fanout(problem, found.stage))
    plan = make_plan(
        exact, found.stage, asked.clock_ps, found.initiation_interval, interface, recurrence, asked.alone,
        asked.most_luts,
    )
    foreseen_ps = 1e6 / fmax_mhz(exact, stage_arrivals(exact, found.stage))
    return _Made(replace(plan, notes=(*plan.notes, *found.notes)), foreseen_ps)


def _closer(problem: Problem, asked: _Request, found: _Solution) -> _Solution:
    """The stages for the least interval there is, where these keep fewer bits at the longer one asked for.

    What holds at an interval holds at a longer one, as long as no port of a memory takes turns; so a longer
    interval never needs more registers.
    """
    ports = any(isinstance(unit, Port) and users[1:] for unit, users in problem.netlist.calls())
    if asked.ii is None or asked.ii < 2 or asked.in_haste or ports:
        return found
    wanted = replace(asked, ii=None, latency=found.stage[problem.end])
    other = _relieved(problem, wanted)
    if other is None or other.initiation_interval >= asked.ii:
        return found
    other = replace(other, initiation_interval=asked.ii, loop=found.loop)
    bits = [register_bits(problem, item.stage, asked.ii) for item in (found, other)]
    return other if bits[1] < bits[0] else found


def _soonest(problem: Problem, asked: _Request) -> _Solution | None:
    """In haste, every operation as soon as it can be, all readers of a bit its loads; else None."""
    start = _earliest(problem, asked) if asked.in_haste else None
    if start is None or isinstance(start, Refusal):
        return None
    count = start.least[-1] if asked.latency is None else asked.latency
    if count < start.least[-1]:
        return None
    note = (
        f"The circuit has {problem.cell_count:,} cells, too many to look for the fewest registers: each "
        "works as soon as it can."
    )
    return _Solution(problem, [*start.least[:-1], count], start.initiation_interval, start.loop, (note,))


def _relieved(problem: Problem, asked: _Request) -> _Solution | None:
    """A schedule for the loads that wires have in one stage, which are fewer than all of a bit's readers.

    They are guessed from earliest stages, and the guess is raised where the schedule found puts more readers
    together, until every path fits. None when that leads nowhere: then all readers count.
    """
    start = _earliest(problem, asked)
    if isinstance(start, Refusal):
        bare = with_fanout(problem, np.ones(len(problem.edges.fanout), dtype=np.int64))
        start = _earliest(bare, asked)
    if isinstance(start, Refusal):
        return None
    fanout = staged_fanout(problem, start.least, _NEAR)
    for _ in range(_ROUNDS):
        found = _solve(with_fanout(problem, fanout), asked)
        if isinstance(found, Refusal):
            return None
        loads = staged_fanout(problem, found.stage)
        arrivals = stage_arrivals(with_fanout(problem, loads), found.stage)
        if max([0, *arrivals.settled_ps, *arrivals.output_ps]) <= asked.limit_ps:
            return found
        fanout = np.maximum(fanout, loads)
    return None


def _stretched(problem: Problem, asked: _Request) -> _Solution | None:
    """The schedule of least latency with its results kept for later; None unless that fits what was asked."""
    if asked.latency is None:
        return None
    found = _relieved(problem, replace(asked, latency=None))
    if found is None or found.stage[problem.end] > asked.latency:
        return None
    return replace(found, stage=[*found.stage[: problem.end], asked.latency])


@dataclass(frozen=True, slots=True)
class _Earliest:
    constraints: Constraints
    initiation_interval: int
    least: list[int]
    loop: Loop | None


def _earliest(problem: Problem, asked: _Request) -> _Earliest | Refusal:
    """Constraints, interval and earliest stages, or why there are none."""
    if problem.cell_count and int(problem.base_ps.max()) > asked.limit_ps:
        return too_slow(problem, asked.clock_ps, asked.sources)
    constraints = with_units(
        build_constraints(problem, timing_pairs(problem, asked.limit_ps)), problem.netlist
    )
    least_ii = least_initiation_interval(problem.netlist)
    if asked.ii is not None and asked.ii < least_ii:
        return no_turn(problem.netlist, asked.ii, asked.sources)
    shared = shared_units(problem.netlist)
    found = _initiation_interval(Reserved(constraints, shared), asked, least_ii)
    if isinstance(found.least, Loop):
        return no_initiation_interval(
            problem, found.least, found.initiation_interval, asked.clock_ps, asked.sources
        )
    return _Earliest(found.constraints, found.initiation_interval, found.least, found.loop)


def _solve(problem: Problem, asked: _Request) -> _Solution | Refusal:
    """The stages with the fewest register bits for the problem's fan-outs, or why there are none."""
    start = _earliest(problem, asked)
    if isinstance(start, Refusal):
        return start
    count = start.least[-1] if asked.latency is None else asked.latency
    if count < start.least[-1]:
        return no_latency(problem, start.constraints, start.least, count, asked.clock_ps, asked.sources)
    pinned = [index for index, cell in enumerate(problem.netlist.cells) if isinstance(cell, Input)]
    upper = latest(start.constraints, start.initiation_interval, count, pinned)
    lower = [*start.least[:-1], count]
    stage, optimal = least_registers(problem, start.constraints, start.initiation_interval, lower, upper)
    notes = () if optimal else ("Register bits are few, but not proved to be the fewest.",)
    return _Solution(problem, stage, start.initiation_interval, start.loop, notes)


@dataclass(frozen=True, slots=True)
class _Interval:
    """An interval, the earliest stages at it (or the loop that forbids them), the loop that set it."""

    initiation_interval: int
    least: list[int] | Loop
    constraints: Constraints
    loop: Loop | None


def _initiation_interval(reserved: Reserved, asked: _Request, least_ii: int) -> _Interval:
    """The interval asked for, or the smallest.

    State that is read later than it could be, to be written in time, costs latency: where that is too much
    for the latency asked for, the interval is the least that does.
    """
    initiation_interval, binding = asked.ii or least_ii, None
    while True:
        least, constraints = reserved.earliest(initiation_interval)
        if isinstance(least, Loop):
            if asked.ii is not None:
                return _Interval(initiation_interval, least, constraints, binding)
            binding = least if least.items else binding
            at_least = least.least_initiation_interval if least.items else 0
            initiation_interval = max(initiation_interval + 1, at_least)
            continue
        found = _Interval(initiation_interval, least, constraints, binding)
        if asked.ii is None and asked.latency is not None and least[-1] > asked.latency:
            return _longer_initiation_interval(reserved, found, least, asked.latency)
        return found


def _longer_initiation_interval(
    reserved: Reserved, shortest: _Interval, least: list[int], latency: int
) -> _Interval:
    """The least interval at which the end comes by ``latency``; else the shortest."""
    low, high = shortest.initiation_interval, max(least) + 1  # at which no loop waits for anything
    found, constraints = reserved.earliest(high)
    if isinstance(found, Loop) or found[-1] > latency:
        return shortest
    while high - low > 1:
        middle = (low + high) // 2
        tried, held = reserved.earliest(middle)
        if isinstance(tried, Loop) or tried[-1] > latency:
            low = middle
        else:
            high, found, constraints = middle, tried, held
    return _Interval(high, found, constraints, shortest.loop)


def make_plan(
    problem: Problem, stage: Sequence[int], clock_ps: int, initiation_interval: int, interface: str,
    recurrence: Recurrence | None, alone: bool = True, most_luts: int | None = None,
) -> Plan:
    """Write a schedule of the nodes (the end node last) down as a plan, with timing and estimate.

    Registers become delay lines where the circuit stands ``alone``, as long as it has ``most_luts`` at most.
    """
    netlist, model = problem.netlist, problem.model
    count, cells = stage[problem.end], problem.cell_count
    latency: list[int] = problem.latency.tolist()
    lives = lifetimes(problem, stage, initiation_interval)
    arrivals = stage_arrivals(problem, stage)
    paths = stage_paths(problem, stage, arrivals)
    kept = sum(life.register_bits for life in lives)
    written = {stage[problem.write_node(k)] for k in range(len(netlist.states))}
    gates = len(enabled_stages(lives) - written) if interface != "none" else 0
    available = tuple(s + own for s, own in zip(stage, latency))
    taken = turns(netlist, Placed(stage, available, lives))
    state_bits = sum(state.width for state in netlist.states)
    luts = netlist_luts(netlist, model.device) + reset_luts(reset_cycles(netlist)) + gates
    luts += choice_luts(taken, model.device) + phase_luts(taken)
    ffs = kept + state_bits + inner_ffs(netlist) - shared_ffs(netlist)
    ffs += phase_ffs(taken) + held_ffs(taken)
    ffs += handshake_ffs(netlist, interface, count, initiation_interval) + reset_ffs(reset_cycles(netlist))
    lines = delay_lines(problem, stage, lives, arrivals, luts, ffs, most_luts) if alone else ()
    notes = (lines_note(lines, luts, ffs),) if lines else ()
    for line in lines:
        luts += delay_luts(line.width)
        ffs += delay_ffs(line.stages, line.width) - line.width * line.stages
    eased = likely(problem, luts)
    estimate = Resources(
        lut=luts,
        ff=ffs,
        dsp=netlist_dsps(netlist, model.device),
        bram=netlist_brams(netlist, model.device),
        fmax_mhz=fmax_mhz(eased, stage_arrivals(eased, stage)),
    )
    return Plan(
        device=model.device.name,
        interface=interface,
        clock_ps=clock_ps,
        latency_cycles=count,
        initiation_interval=initiation_interval,
        stage=tuple(stage[:cells]),
        available=available,
        arrival_ps=tuple(arrivals.output_ps),
        state_write=tuple(stage[problem.write_node(k)] for k in range(len(netlist.states))),
        lifetimes=lives,
        register_bits=kept - sum(line.saved_bits for line in lines),
        setup_ps=model.setup_ps,
        critical_paths=tuple(tuple(PathStep(*step) for step in path) for path in paths),
        estimate=estimate,
        units=tuple(
            UnitPlan(unit.name, unit.latency_cycles, unit.initiation_interval, users)
            for unit, users in netlist.calls()
        ),
        recurrence=recurrence,
        reset_cycles=reset_cycles(netlist),
        notes=notes,
        delay_lines=lines,
    )


def over_capacity(name: str, plan: Plan, device: Device) -> list[Diagnostic]:
    """K0604 when the estimate exceeds the device, naming the worst resource."""
    need: Mapping[str, tuple[int, int]] = {
        "LUTs": (plan.estimate.lut, device.lut),
        "flip-flops": (plan.estimate.ff, device.ff),
        "DSP blocks": (plan.estimate.dsp, device.dsp),
        "block RAMs": (plan.estimate.bram, device.bram),
    }
    over = {what: n / max(1, have) for what, (n, have) in need.items() if n > have}
    if not over:
        return []
    worst = max(over, key=over.__getitem__)
    wanted, have = need[worst]
    message = f"`{name}` needs about {wanted} {worst}, but {device.name} has {have}."
    return [Diagnostic("K0604", message)]

"""From a netlist to a plan: constraints, interval and latency, the fewest registers, figures."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kera_hw.schedule.asap import Constraints, Loop, build_constraints, earliest, latest
from kera_hw.schedule.delay_model import DelayModel
from kera_hw.schedule.device import Device
from kera_hw.schedule.explain import Sources, loop_recurrence, no_interval, no_latency, too_slow
from kera_hw.schedule.netlist import Input, Netlist
from kera_hw.schedule.plan import Lifetime, PathStep, Plan, Recurrence, Resources
from kera_hw.schedule.problem import Problem, build_problem, timing_pairs
from kera_hw.schedule.resource_model import handshake_ffs, netlist_dsps, netlist_luts, product_ffs
from kera_hw.schedule.sdc import least_registers, register_bits
from kera_hw.schedule.timing import fmax_mhz, stage_arrivals, stage_paths
from kera_hw.support.diagnostic import Diagnostic


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
) -> tuple[Plan | None, list[Diagnostic]]:
    """The plan with the fewest register bits for ``netlist`` at a clock period of ``clock_ps``.

    ``latency`` asks for that many stages (default: the least), ``ii`` for that initiation interval (default:
    the smallest feasible). ``scale`` stretches wire delays (after a routed result that missed the clock).
    ``sources`` maps paths to files so that diagnostics can show the place. No plan: K0601 to K0604.
    """
    assert latency is None or latency >= 1
    assert ii is None or ii >= 1
    luts = netlist_luts(netlist, device)
    model = DelayModel(device, scale, luts)
    problem = build_problem(netlist, model)
    limit_ps = clock_ps - model.setup_ps
    if problem.cell_count and int(problem.base_ps.max()) > limit_ps:
        return None, [too_slow(problem, clock_ps, sources)]
    constraints = build_constraints(problem, timing_pairs(problem, limit_ps))
    interval, least, loop = _interval(constraints, ii)
    if isinstance(least, Loop):
        return None, [no_interval(problem, least, interval, clock_ps, sources)]
    count = least[-1] if latency is None else latency
    if count < least[-1]:
        return None, [no_latency(problem, constraints, least, count, clock_ps, sources)]
    pinned = [index for index, cell in enumerate(netlist.cells) if isinstance(cell, Input)]
    upper = latest(constraints, interval, count, pinned)
    lower = [*least[:-1], count]
    stage, optimal = least_registers(problem, constraints, interval, lower, upper)
    recurrence = None if loop is None else loop_recurrence(problem, loop)
    plan = make_plan(problem, stage, clock_ps, interval, interface, recurrence)
    if not optimal:
        plan = replace(plan, notes=(*plan.notes, "Register bits are few, but not proved to be the fewest."))
    return plan, over_capacity(netlist.name, plan, device)


def _interval(constraints: Constraints, asked: int | None) -> tuple[int, list[int] | Loop, Loop | None]:
    """The interval, the earliest stages (or the loop that forbids them), the loop that set the interval."""
    interval, binding = asked or 1, None
    while True:
        least = earliest(constraints, interval)
        if not isinstance(least, Loop) or asked is not None:
            return interval, least, binding
        binding, interval = least, max(interval + 1, least.least_interval)


def make_plan(
    problem: Problem, stage: Sequence[int], clock_ps: int, interval: int, interface: str,
    recurrence: Recurrence | None,
) -> Plan:
    """Write a schedule of the nodes (the end node last) down as a plan, with timing and estimate."""
    netlist, model = problem.netlist, problem.model
    count, cells = stage[problem.end], problem.cell_count
    latency: list[int] = problem.latency.tolist()
    lifetimes = tuple(
        Lifetime(
            run.cell, run.low, run.width, stage[run.cell] + latency[run.cell],
            max(stage[r] for r in run.readers) - stage[run.cell] - latency[run.cell],
        )
        for run in problem.runs
    )
    arrivals = stage_arrivals(problem, stage)
    paths = stage_paths(problem, stage, arrivals)
    kept = register_bits(problem, stage)
    state_bits = sum(state.width for state in netlist.states)
    estimate = Resources(
        lut=netlist_luts(netlist, model.device),
        ff=kept + state_bits + product_ffs(netlist) + handshake_ffs(interface, count, interval),
        dsp=netlist_dsps(netlist, model.device),
        bram=0,
        fmax_mhz=fmax_mhz(problem, arrivals),
    )
    return Plan(
        device=model.device.name,
        interface=interface,
        clock_ps=clock_ps,
        latency_cycles=count,
        initiation_interval=interval,
        stage=tuple(stage[:cells]),
        available=tuple(s + own for s, own in zip(stage, latency)),
        arrival_ps=tuple(arrivals.output_ps),
        state_write=tuple(stage[problem.write_node(k)] for k in range(len(netlist.states))),
        lifetimes=lifetimes,
        register_bits=kept,
        setup_ps=model.setup_ps,
        critical_paths=tuple(tuple(PathStep(*step) for step in path) for path in paths),
        estimate=estimate,
        recurrence=recurrence,
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

"""An independent checker of plans: simple, slow where need be, sharing no code with the solver.

Checked
* shapes: one stage, availability and arrival for every cell, one write stage for every state register;
* placement: stages lie in the pipeline, inputs in stage 0, ``available`` follows from the stage;
* precedence: every bit is available in the stage that reads it, outputs by the end;
* timing: arrivals recomputed stage by stage from the delay model, each within the clock less setup;
* state: every register is read and written within one initiation interval, in that order; what controls it
  works in the stage that writes it, and nothing of it waits in a register; what an item left in it is taken
  in the stage after, by outputs alone;
* memories: item by item, as close as they may follow each other, every read gets what is written before it in
  the program and nothing else, and no two writes of a word come in another order, nor at once;
* units: no two calls have one at the same time, however far apart items come, a step fits the clock, and
  accumulators take their operands in the very stage in which these appear;
* registers: bit by bit, those that its last reader needs are exactly those of the lifetimes, every run of
  bits once, none holds an item for longer than the initiation interval, and their total is the plan's;
* delay lines: no longer than a memory and a register, each in place of registers of lifetimes that move in
  every cycle, no bit in two at a time nor read while it is in one, and fed in time;
* paths: each stage's critical path is a chain of wires in that stage which ends at the stage's worst arrival.

Not checked: that latency, interval or register bits are the least possible; that the delay model is right
about the device; the resource estimate; what the cells compute (``simulate`` does that).
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kera_hw.schedule.fpga import lut_ram
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells import Call, Input, StateNext, StateOut, WriteControl
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.netlist import Netlist, control_readers
from kera_hw.schedule.fpga.units import IterativeUnit, Operator, Port, WritePort
from kera_hw.schedule.plan import Plan


def verify_plan(netlist: Netlist, plan: Plan, model: DelayModel) -> list[str]:
    """Everything wrong with ``plan``, as sentences; empty for a valid one. ``model``: device and scale."""
    problems = list(_shapes(netlist, plan))
    if problems:
        return problems
    for check in (_placement, _precedence, _states, _memories, _registers, _delay_lines):
        problems += check(netlist, plan)
    model = model.among(netlist)
    problems += [*_units(netlist, plan), *_steps(netlist, plan, model)]
    arrivals = _arrivals(netlist, plan, model)
    problems += [*_timing(netlist, plan, model, arrivals), *_paths(netlist, plan, arrivals)]
    return [*problems, *_fed(netlist, plan, model)]


def _shapes(netlist: Netlist, plan: Plan) -> Iterator[str]:
    for name, row in (("stage", plan.stage), ("available", plan.available), ("arrival_ps", plan.arrival_ps)):
        if len(row) != len(netlist.cells):
            yield f"{name} has {len(row)} entries for {len(netlist.cells)} cells"
    if len(plan.state_write) != len(netlist.states):
        yield f"{len(plan.state_write)} write stages for {len(netlist.states)} states"
    if plan.latency_cycles < 1 or plan.initiation_interval < 1:
        yield "latency and interval must be at least 1"
    if len(plan.critical_paths) != plan.latency_cycles:
        yield f"{len(plan.critical_paths)} critical paths for {plan.latency_cycles} stages"


def _inner_stages(netlist: Netlist, cell: int) -> int:
    return netlist.cells[cell].inner_stages()


def _placement(netlist: Netlist, plan: Plan) -> Iterator[str]:
    for index, cell in enumerate(netlist.cells):
        # What an item leaves in a state register may be there behind the last stage only.
        if not 0 <= plan.stage[index] < plan.latency_cycles + isinstance(cell, StateNext):
            yield f"cell {index} is in stage {plan.stage[index]} of {plan.latency_cycles}"
        if isinstance(cell, Input) and plan.stage[index] != 0:
            yield f"input {index} is in stage {plan.stage[index]}"
        if plan.available[index] != plan.stage[index] + _inner_stages(netlist, index):
            yield f"cell {index} of stage {plan.stage[index]} is available in {plan.available[index]}"


def _reads(netlist: Netlist, plan: Plan) -> Iterator[tuple[Bits, int, str]]:
    """All reads: bits, the stage that needs them, who reads."""
    for index, cell in enumerate(netlist.cells):
        for bits in cell.operands():
            yield bits, plan.stage[index], f"cell {index}"
    for index, state in enumerate(netlist.states):
        for bits in state.operands():
            yield bits, plan.state_write[index], f"state {state.name}"
    for output in netlist.outputs:
        yield output.bits, plan.latency_cycles, f"output {output.bus}"


def _precedence(netlist: Netlist, plan: Plan) -> Iterator[str]:
    for bits, stage, reader in _reads(netlist, plan):
        for segment in bits:
            if segment.cell is not None and plan.available[segment.cell] > stage:
                yield (
                    f"{reader} needs cell {segment.cell} in stage {stage}, but it is available in stage "
                    f"{plan.available[segment.cell]}"
                )


def _states(netlist: Netlist, plan: Plan) -> Iterator[str]:
    for state, write in zip(netlist.states, plan.state_write):
        read = plan.stage[state.out]
        if not read <= write <= read + plan.initiation_interval - 1:
            yield (
                f"state {state.name} is read in stage {read} and written in stage {write} at interval "
                f"{plan.initiation_interval}"
            )
        if write >= plan.latency_cycles:
            yield f"state {state.name} is written in stage {write} of {plan.latency_cycles}"
        for pin in state.pins():
            if plan.stage[pin] != write:
                yield f"state {state.name} is written in stage {write}, cell {pin} controls it in another"
    for reader, controls in control_readers(netlist.cells).items():
        if any(plan.stage[control] != plan.stage[reader] for control in controls):
            yield f"cell {reader} of stage {plan.stage[reader]} is told what holds in another stage"
    for index, cell in enumerate(netlist.cells):
        if isinstance(cell, WriteControl) and plan.stage[index] != plan.state_write[cell.state]:
            state = netlist.states[cell.state].name
            yield f"cell {index} of stage {plan.stage[index]} speaks of the stage that writes state {state}"
        if isinstance(cell, StateNext) and plan.stage[index] != plan.state_write[cell.state] + 1:
            state = netlist.states[cell.state].name
            yield f"cell {index} of stage {plan.stage[index]} shows state {state}, written by then or not yet"
        for driver in (s.cell for bits in cell.operands() for s in bits):
            if driver is not None and isinstance(netlist.cells[driver], StateNext):
                yield f"cell {index} reads what an item has left in a state"


def _units(netlist: Netlist, plan: Plan) -> Iterator[str]:
    wanted = [(u.name, u.latency_cycles, u.initiation_interval, users) for u, users in netlist.calls()]
    if wanted != [(u.name, u.latency_cycles, u.initiation_interval, u.calls) for u in plan.units]:
        yield "the plan's units are not the netlist's"
        return
    for unit, (kind, _) in zip(plan.units, netlist.calls()):
        stages = [plan.stage[call] for call in unit.calls]
        span = max(stages) + unit.initiation_interval - min(stages)
        if span > plan.initiation_interval and stages[1:] and not isinstance(kind, Port):
            yield f"unit {unit.name} has an item for {span} cycles, longer than the interval: two may meet"
        if isinstance(kind, Operator) and kind.immediate:
            yield from _taken_at_once(netlist, plan, unit.calls)
        taken: dict[int, int] = {}  # cycle of the interval: the call that has the unit then
        for call in unit.calls:
            for cycle in range(plan.stage[call], plan.stage[call] + unit.initiation_interval):
                slot = cycle % plan.initiation_interval
                if slot in taken:
                    yield (
                        f"unit {unit.name}, busy for {unit.initiation_interval} cycles, still works for cell "
                        f"{taken[slot]} when cell {call} calls it at interval {plan.initiation_interval}"
                    )
                    break
                taken[slot] = call


def _taken_at_once(netlist: Netlist, plan: Plan, calls: Sequence[int]) -> Iterator[str]:
    for call in calls:
        for giver in (s.cell for bits in netlist.arguments(call) for s in bits if s.cell is not None):
            if plan.available[giver] != plan.stage[call]:
                yield f"call {call} takes cell {giver} in a stage after that in which it appears"


def _steps(netlist: Netlist, plan: Plan, model: DelayModel) -> Iterator[str]:
    for unit, users in netlist.calls():
        if not isinstance(unit, IterativeUnit):
            continue
        count = len(unit.step.cells)
        alone = replace(plan, latency_cycles=1, stage=(0,) * count, state_write=())
        settled = max(_arrivals(unit.step, alone, model), default=0)
        for cell in (netlist.cells[user] for user in users):
            longest = settled + model.route_ps(cell, 1) + model.logic_ps(cell)
            if longest + model.setup_ps > plan.clock_ps:
                yield f"a step of unit {unit.name} takes {longest} ps of {plan.clock_ps}"


def _memories(netlist: Netlist, plan: Plan) -> Iterator[str]:
    """Accesses in order of their cells; items that follow later than the interval make nothing worse."""
    for number, cell in enumerate(netlist.cells):
        if not isinstance(cell, Call) or not isinstance(cell.unit, WritePort):
            continue
        storage = cell.unit.storage
        for other, access in enumerate(netlist.cells):
            if not isinstance(access, Call) or not isinstance(access.unit, Port):
                continue
            if access.unit.storage.name != storage.name or other == number:
                continue
            reach = abs(plan.stage[number] - plan.stage[other]) + storage.read_latency_cycles + 2
            most = -(-reach // plan.initiation_interval)
            for later in range(-most, most + 1):  # items from the write's to the other's
                if later and abs(later) < storage.distance:
                    continue
                time = plan.stage[other] + later * plan.initiation_interval - plan.stage[number]
                first = later > 0 or (later == 0 and number < other)
                if isinstance(access.unit, WritePort):
                    fault = (time > 0) != first
                elif storage.transparent:
                    fault = (time + storage.read_latency_cycles - 1 >= 0) != first
                else:
                    fault = time == 0 or (time > 0) != first
                if fault:
                    yield (
                        f"cell {other} meets memory {storage.name} {time} cycles after cell {number} of the "
                        f"item {later} before its own has written it"
                    )


def _registers(netlist: Netlist, plan: Plan) -> Iterator[str]:
    wanted = [np.full(cell.width, -1, dtype=np.int64) for cell in netlist.cells]
    for bits, stage, _ in _reads(netlist, plan):
        for segment in bits:
            if segment.cell is not None:
                view = wanted[segment.cell][segment.low : segment.low + segment.width]
                np.maximum(view, stage, out=view)
    planned = [np.full(cell.width, -1, dtype=np.int64) for cell in netlist.cells]
    total = 0
    for life in plan.lifetimes:
        need = wanted[life.cell][life.low : life.low + life.width]
        have = planned[life.cell][life.low : life.low + life.width]
        if life.available != plan.available[life.cell]:
            yield f"a lifetime of cell {life.cell} starts in stage {life.available}"
        if len(have) != life.width or (have != -1).any():
            yield f"lifetimes of cell {life.cell} overlap or exceed its width"
            continue
        have[:] = need
        state = netlist.cells[life.cell]
        stands_until = plan.state_write[state.state] if isinstance(state, StateOut) else life.available
        if not 0 <= life.standing <= max(0, stands_until - life.available):
            yield f"cell {life.cell} is not there unregistered for {life.standing} stages more"
        if not 1 <= life.stages_each <= plan.initiation_interval:
            yield f"a register of cell {life.cell} holds an item for {life.stages_each} stages"
        waits = int(need.max(initial=-1)) - life.available - life.standing
        if (need != need.max(initial=-1)).any() or -(-waits // life.stages_each) != life.registers:
            yield f"the registers kept for cell {life.cell} are not those that its readers need"
        total += life.width * life.registers
    for index, (need, have) in enumerate(zip(wanted, planned)):
        if not np.array_equal(need, have):
            yield f"the registers kept for cell {index} are not those that its readers need"
    total -= sum(line.width * (line.stages - 1) for line in plan.delay_lines)
    if total != plan.register_bits:
        yield f"the plan says {plan.register_bits} register bits, its readers need {total}"


def _delay_lines(netlist: Netlist, plan: Plan) -> Iterator[str]:
    registers: dict[tuple[int, int], set[int]] = {}  # of (cell, bit): the stages that end in one
    for life in plan.lifetimes:
        ends = set(range(life.unregistered_until, life.until)) if life.stages_each == 1 else set[int]()
        for bit in range(life.low, life.low + life.width):
            registers[life.cell, bit] = set(ends)
    read: dict[tuple[int, int], set[int]] = {}
    for bits, stage, _ in _reads(netlist, plan):
        for segment in bits:
            if segment.cell is not None:
                for bit in range(segment.low, segment.low + segment.width):
                    read.setdefault((segment.cell, bit), set()).add(stage)
    for number, line in enumerate(plan.delay_lines):
        if not 2 < line.stages <= lut_ram.ENTRIES + 1:
            yield f"delay line {number} is of {line.stages} stages"
        for held in line.parts:
            replaced = set(range(held.load, held.load + line.stages))
            for key in ((held.cell, bit) for bit in range(held.low, held.low + held.width)):
                if not replaced <= registers.get(key, set()):
                    yield f"delay line {number} stands for registers of cell {held.cell} that are not there"
                    break
                registers[key] -= replaced
                if read.get(key, set()) & {stage + 1 for stage in sorted(replaced)[:-1]}:
                    yield f"cell {held.cell} is read while it is in delay line {number}"
                    break


def _fed(netlist: Netlist, plan: Plan, model: DelayModel) -> Iterator[str]:
    wire_ps = round(model.scale * model.device.timing.route_lut_ps)
    for line in plan.delay_lines:
        for held in line.parts:
            if held.load == plan.available[held.cell]:
                arrival = plan.arrival_ps[held.cell] + wire_ps
                if arrival + model.setup_ps > plan.clock_ps:
                    yield f"cell {held.cell} comes to its delay line after {arrival} ps of {plan.clock_ps}"


def _fanouts(netlist: Netlist, plan: Plan) -> list[list[dict[int, int]]]:
    """For every bit of every cell the loads in each stage, the next register not counted."""
    count = [[dict[int, int]() for _ in range(cell.width)] for cell in netlist.cells]

    def add(bits: Bits, stage: int, each: int) -> None:
        for segment in bits:
            if segment.cell is not None:
                for bit in count[segment.cell][segment.low : segment.low + segment.width]:
                    bit[stage] = bit.get(stage, 0) + each

    for index, cell in enumerate(netlist.cells):
        for bits, each in cell.loads():
            add(bits, plan.stage[index], each)
    for state, write in zip(netlist.states, plan.state_write):
        for bits in state.operands():
            add(bits, write, 1)
    for output in netlist.outputs:
        add(output.bits, plan.latency_cycles, 1)
    return count


def _most_loads(bits: list[dict[int, int]], stage: int) -> int:
    """The largest fan-out of these bits in a stage; a bit that is needed later drives a register too."""
    return max(bit.get(stage, 0) + (max(bit, default=stage) > stage) for bit in bits)


def _arrivals(netlist: Netlist, plan: Plan, model: DelayModel) -> list[int]:
    """When each cell has settled in the stage it works in (for registered products: its inputs)."""
    fanouts = _fanouts(netlist, plan)
    settled: list[int] = []
    for index, cell in enumerate(netlist.cells):
        wires: dict[int, tuple[int, int]] = {}  # driver: most loads of a bit, longest time before the wire
        for operand, bits in enumerate(cell.operands()):
            position = cell.entry(operand)
            for s in bits:
                if s.cell is not None:
                    driver = netlist.cells[s.cell]
                    if plan.stage[s.cell] == plan.stage[index] and not _inner_stages(netlist, s.cell):
                        time = settled[s.cell] + model.through_ps(driver, s.low, cell, position, s.width)
                    else:
                        time = model.clk_to_q_ps(driver) + model.logic_ps(cell, position)
                    known = wires.get(s.cell, (0, time))
                    loads_here = _most_loads(fanouts[s.cell][s.low : s.low + s.width], plan.stage[index])
                    wires[s.cell] = (max(known[0], loads_here), max(known[1], time))
                position += s.width
        times = [time + model.route_ps(cell, fanout) for fanout, time in wires.values()]
        settled.append(max(times, default=model.clk_to_q_ps(cell)))
    return settled


def _timing(netlist: Netlist, plan: Plan, model: DelayModel, arrivals: list[int]) -> Iterator[str]:
    for index, arrival in enumerate(arrivals):
        registered = _inner_stages(netlist, index) > 0
        shown = model.clk_to_q_ps(netlist.cells[index]) if registered else arrival
        if max(arrival, shown) + model.setup_ps > plan.clock_ps:
            yield f"cell {index} settles after {max(arrival, shown)} ps of {plan.clock_ps}"
        if shown != plan.arrival_ps[index]:
            yield f"cell {index} settles after {shown} ps, the plan says {plan.arrival_ps[index]}"


def _paths(netlist: Netlist, plan: Plan, arrivals: list[int]) -> Iterator[str]:
    worst: dict[int, int] = {}
    for index, cell in enumerate(netlist.cells):
        if any(segment.cell is not None for bits in cell.operands() for segment in bits):
            worst[plan.stage[index]] = max(worst.get(plan.stage[index], 0), arrivals[index])
    for stage, path in enumerate(plan.critical_paths):
        if (path[-1].arrival_ps if path else 0) != worst.get(stage, 0):
            yield f"the critical path of stage {stage} is not its longest"
        for before, step in zip((None, *path), path):
            if plan.stage[step.cell] != stage or arrivals[step.cell] != step.arrival_ps:
                yield f"the critical path of stage {stage} misplaces cell {step.cell}"
            read = {s.cell for bits in netlist.cells[step.cell].operands() for s in bits}
            if before is not None and before.cell not in read:
                yield f"the critical path of stage {stage} has no wire from {before.cell} to {step.cell}"

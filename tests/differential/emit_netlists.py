"""Random netlists with random valid plans, for tests of emission and simulation."""
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from kera_hw.schedule.fpga.bits import Bits, cell_bits, concat, const_bits
from kera_hw.schedule.fpga.cells import (
    Add,
    Call,
    Cell,
    Chain,
    Input,
    Lut,
    Moves,
    Mul,
    Mux,
    RegisterPin,
    Restart,
    Rom,
    StateNext,
    StateOut,
    Unit,
    WriteControl,
)
from kera_hw.schedule.fpga.expressions import BitExpr
from kera_hw.schedule.fpga.netlist import Netlist, Output, StateControl, StateReg, least_initiation_interval
from kera_hw.schedule.fpga.units import IterativeUnit, Memory
from kera_hw.schedule.fpga.units.iterative import Register
from kera_hw.schedule.plan import Lifetime, Plan, Resources, UnitPlan


def random_netlist(
    rng: random.Random, cells: int = 24, states: int = 0, name: str = "dut", chains: int = 0,
    controls: bool = False, units: Sequence[Unit] = (),
) -> Netlist:
    """A netlist of all kinds of cells over two input buses, with ``states`` feedback registers.

    ``controls`` gives most of their bits an enable, a reset or both. ``chains`` is how
    often carry chains of own tables are among them, in tickets beside nine others. Each of ``units`` has
    a call, where it is named twice two of them.
    """
    inputs = (("in_a", rng.randint(1, 40)), ("in_b", rng.randint(1, 70)))
    made: list[Cell] = [Input(width=width, bus=bus, low=0) for bus, width in inputs]
    widths = [rng.randint(1, 12) for _ in range(states)]
    made += [StateOut(width=width, state=index) for index, width in enumerate(widths)]
    first_state = len(inputs)
    calls = list(units)
    while len(made) < cells or calls:
        made.append(_call(rng, made, calls.pop()) if calls and len(made) > 9 else _cell(rng, made, chains))
    regs = [
        StateReg(f"r{index}", width, rng.getrandbits(width), first_state + index, _operand(rng, made, width))
        for index, width in enumerate(widths)
    ]
    outputs = [Output("out_0", _operand(rng, made, rng.randint(1, 40)))]
    outputs.append(Output("out_1", cell_bits(len(made) - 1, made[-1].width)))
    if controls:
        logic = list(made)
        found = [_controls(rng, made, logic, k, reg.width) for k, reg in enumerate(regs)]
        regs = [replace(reg, controls=own) for reg, own in zip(regs, found)]
        for index, width in enumerate(widths):  # results may show what an item leaves in a state
            made.append(StateNext(width=width, state=index))
            outputs[0] = Output("out_0", concat([outputs[0].bits, cell_bits(len(made) - 1, width)]))
    return Netlist(name, inputs, tuple(made), tuple(outputs), tuple(regs))


def _controls(
    rng: random.Random, made: list[Cell], logic: list[Cell], state: int, width: int
) -> tuple[StateControl, ...]:
    """Controls for runs of a state's bits, with their cells, which follow those of the ``logic``."""

    def pin(kind: type[WriteControl], expr: BitExpr, registers: int) -> int:
        made.append(kind(width=1, state=state))
        leaves = [cell_bits(len(made) - 1, 1)]
        if kind is Restart:
            made.append(Moves(width=1, state=state))
            leaves.append(cell_bits(len(made) - 1, 1))
        made.append(Lut(width=1, inputs=(*leaves, _operand(rng, logic, 1)), expr=expr))
        bits = cell_bits(len(made) - 1, 1)
        made.append(RegisterPin(width=1, bits=bits, registers=registers, reset=kind is Restart))
        return len(made) - 1

    found: list[StateControl] = []
    low = 0
    while low < width:
        size = rng.randint(1, width - low)
        enabled, reset = rng.choice([(0, 0), (1, 0), (0, 1), (1, 1), (1, 1)])
        if enabled or reset:
            enable = pin(Moves, ("and", ("in", 0), ("in", 1)), size) if enabled else None
            clear = ("or", ("in", 0), ("and", ("in", 1), ("in", 2)))
            found.append(StateControl(low, size, enable, pin(Restart, clear, size) if reset else None))
        low += size
    return tuple(found)


def _operand(rng: random.Random, cells: list[Cell], width: int) -> Bits:
    """``width`` bits from several recent cells and constants."""
    parts: list[Bits] = []
    missing = width
    while missing:
        if rng.random() < 0.15:
            take = rng.randint(1, missing)
            parts.append(const_bits(rng.getrandbits(take), take))
        else:
            index = rng.randrange(max(0, len(cells) - 12), len(cells))
            low = rng.randrange(cells[index].width) if rng.random() < 0.5 else 0
            take = min(missing, cells[index].width - low)
            parts.append(cell_bits(index, take, low))
        missing -= take
    return concat(parts)


def _expr(rng: random.Random, operands: int, depth: int = 2) -> BitExpr:
    if depth == 0 or rng.random() < 0.2:
        return ("in", rng.randrange(operands)) if rng.random() < 0.95 else ("const", rng.randrange(2))
    kind = rng.choice(["not", "and", "or", "xor", "mux", "xor"])
    count = {"not": 1, "mux": 3}.get(kind, rng.randint(2, 3))
    return (kind, *(_expr(rng, operands, depth - 1) for _ in range(count)))


def _cell(rng: random.Random, cells: list[Cell], chains: int = 0) -> Cell:
    kind = rng.choice(["lut", "lut", "add", "add", "add", *["chain"] * chains, "mul", "mux", "rom"])
    width = rng.randint(1, 24)

    def vectors(count: int) -> tuple[Bits, ...]:
        return tuple(_operand(rng, cells, width if rng.random() < 0.8 else 1) for _ in range(count))

    if kind == "lut":
        count = rng.randint(1, 6)
        return Lut(width=width, inputs=vectors(count), expr=_expr(rng, count))
    if kind == "add":
        count = rng.choice([1, 1, 2, 3])
        carry = rng.choice([(), const_bits(1, 1), _operand(rng, cells, 1)])
        out = rng.random() < 0.3
        expr = ("in", 0) if count == 1 else _expr(rng, count)
        a = const_bits(0, width) if rng.random() < 0.2 else _operand(rng, cells, width)
        return Add(width=width + out, a=a, inputs=vectors(count), expr=expr, carry_in=carry, carry_out=out)
    if kind == "chain":
        carry, out = rng.choice([(), const_bits(1, 1), _operand(rng, cells, 1)]), rng.random() < 0.3
        pins = tuple(_operand(rng, cells, width) for _ in range(4))
        first = rng.randint(1, width)
        runs = [count for count in (first, width - first) if count]
        return Chain(
            width=width + out, a=pins[0], inputs=pins[1:], carry_in=carry, carry_out=out,
            tables=tuple((count, rng.getrandbits(16)) for count in runs),
        )
    if kind == "mul":
        a, b = (_operand(rng, cells, rng.randint(1, 18)) for _ in range(2))
        signs = (rng.random() < 0.5, rng.random() < 0.5)
        return Mul(
            width=rng.randint(1, 40), a=a, b=b, a_signed=signs[0], b_signed=signs[1],
            latency_cycles=rng.randint(0, 3),
        )
    if kind == "mux":
        bits = rng.randint(1, 3)
        choices = tuple(_operand(rng, cells, width) for _ in range(rng.randint(2, 1 << bits)))
        return Mux(width=width, select=_operand(rng, cells, bits), choices=choices)
    bits = rng.randint(1, 5)
    contents = tuple(rng.getrandbits(width) for _ in range(rng.randint(1, 1 << bits)))
    stages = rng.choice([0, 0, 2])
    address = _operand(rng, cells, bits)
    if not stages:
        return Rom(width=width, address=address, contents=contents)
    memory = Memory(
        name=f"memory{len(cells)}", word_bits=width, contents=contents, read_latency_cycles=stages
    )
    return Call(width=width, unit=memory, arguments=(address,))


def iterative_unit(rng: random.Random, name: str) -> IterativeUnit:
    """A few registers around random logic of one step; some are only kept, some change when enabled."""
    widths = [rng.randint(1, 12) for _ in range(rng.randint(1, 4))]
    made: list[Cell] = [Input(width=width, bus=f"r{k}") for k, width in enumerate(widths)]
    while len(made) < 8:
        cell = _cell(rng, made)
        if not cell.inner_stages():
            made.append(cell)
    outputs: list[Output] = []
    registers: list[Register] = []
    for k, width in enumerate(widths):
        follow = f"n{k}" if k == 0 or rng.random() < 0.8 else None
        enable = f"e{k}" if follow and rng.random() < 0.5 else None
        outputs += [Output(follow, _operand(rng, made, width))] if follow else []
        outputs += [Output(enable, _operand(rng, made, 1))] if enable else []
        registers.append(Register(f"r{k}", follow, enable, enabled_by=rng.random() < 0.5))
    inputs = tuple((f"r{k}", width) for k, width in enumerate(widths))
    step = Netlist("step", inputs, tuple(made), tuple(outputs))
    return IterativeUnit(name=name, registers=tuple(registers), step=step, count=rng.randint(1, 5))


def memory_unit(rng: random.Random, name: str) -> Memory:
    """A table of some words."""
    width = rng.randint(1, 24)
    contents = tuple(rng.getrandbits(width) for _ in range(rng.randint(1, 32)))
    return Memory(name=name, word_bits=width, contents=contents, read_latency_cycles=2)


def _call(rng: random.Random, cells: list[Cell], unit: Unit) -> Call:
    widths = unit.register_widths() if isinstance(unit, IterativeUnit) else (5,)
    arguments = tuple(_operand(rng, cells, width) for width in widths)
    return Call(width=unit.width, unit=unit, arguments=arguments)


def random_plan(rng: random.Random, netlist: Netlist, interface: str, hop: float = 0.35) -> Plan:
    """A valid plan that places each cell as early as it can go, or a little later."""
    interval = least_initiation_interval(netlist)
    while True:
        stages, available = _placed(rng, netlist, interval, hop)
        plan = plan_of(netlist, interface, stages, available, interval)
        if plan.initiation_interval == interval or not netlist.units():
            return plan
        interval = plan.initiation_interval  # calls take turns in another order there


def _placed(
    rng: random.Random, netlist: Netlist, interval: int, hop: float
) -> tuple[list[int], list[int]]:
    stages: list[int] = []
    available: list[int] = []
    writing = _writing(netlist)
    reserved: dict[str, set[int]] = {}
    for index, cell in enumerate(netlist.cells):
        if isinstance(cell, Input):
            stage = 0
        elif index in writing:  # all of a state's control works in the stage that writes it
            reads = [*_sources(netlist.states[writing[index]].next), netlist.states[writing[index]].out]
            reads += [i for k, own in writing.items() if own == writing[index]
                      for bits in netlist.cells[k].operands() for i in _sources(bits) if i not in writing]
            stage = max(available[i] for i in reads)
        elif isinstance(cell, StateNext):
            state = netlist.states[cell.state]
            reads = [i for bits in state.operands() for i in _sources(bits)]
            stage = max([stages[state.out], *(available[i] for i in reads)]) + 1
        else:
            stage = max((available[i] for bits in cell.operands() for i in _sources(bits)), default=0)
            stage += rng.random() < hop
        if isinstance(cell, Call):
            taken, busy = reserved.setdefault(cell.unit.name, set()), cell.unit.initiation_interval
            while taken & {(stage + k) % interval for k in range(busy)}:
                stage += 1
            taken |= {(stage + k) % interval for k in range(busy)}
        stages.append(stage)
        available.append(stage + cell.inner_stages())
    return stages, available


def _writing(netlist: Netlist) -> dict[int, int]:
    """For each cell that a state's control signals reach: which state."""
    found: dict[int, int] = {}
    for index, cell in enumerate(netlist.cells):
        if isinstance(cell, WriteControl):
            found[index] = cell.state
        states = [found[i] for bits in cell.operands() for i in _sources(bits) if i in found]
        if states:
            found[index] = states[0]
    return found


def _sources(bits: Bits) -> list[int]:
    return [segment.cell for segment in bits if segment.cell is not None]


def plan_of(
    netlist: Netlist, interface: str, stages: list[int], available: list[int], interval: int = 1
) -> Plan:
    """The plan that follows from stages: state writes, interval, lifetimes."""
    writes: list[int] = []
    for state in netlist.states:
        read = stages[state.out]
        writes.append(max([read, *(available[i] for bits in state.operands() for i in _sources(bits))]))
        interval = max(interval, writes[-1] - read + 1)
    works = [k for k, cell in enumerate(netlist.cells) if not isinstance(cell, StateNext)]
    latency = max(*(stages[k] for k in works), *writes, max(available[k] for k in works) - 1) + 1
    last: dict[tuple[int, int], int] = {}

    def use(bits: Bits, stage: int) -> None:
        for segment in bits:
            for bit in range(segment.width):
                if segment.cell is not None:
                    key = (segment.cell, segment.low + bit)
                    last[key] = max(last.get(key, 0), stage)

    for cell, stage in zip(netlist.cells, stages):
        for bits in cell.operands():
            use(bits, stage)
    for state, write in zip(netlist.states, writes):
        for bits in state.operands():
            use(bits, write)
    for out in netlist.outputs:
        use(out.bits, latency)
    lifetimes: list[Lifetime] = []
    # Bits of one run are neighbours with the same last reader.
    ordered = sorted(last.items())
    for _, group in groupby(enumerate(ordered), key=lambda e: (e[1][0][0], e[1][1], e[1][0][1] - e[0])):
        members = [item for _, item in group]
        (cell, low), stage = members[0]
        lifetimes.append(Lifetime(cell, low, len(members), available[cell], stage - available[cell]))
    return Plan(
        device="generic", interface=interface, clock_ps=10_000, latency_cycles=latency,
        initiation_interval=interval, stage=tuple(stages), available=tuple(available),
        arrival_ps=(0,) * len(stages), state_write=tuple(writes), lifetimes=tuple(lifetimes),
        register_bits=sum(life.register_bits for life in lifetimes), setup_ps=0, critical_paths=(),
        estimate=Resources(0, 0, 0, 0, 0.0),
        units=tuple(
            UnitPlan(unit.name, unit.latency_cycles, unit.initiation_interval, users)
            for unit, users in netlist.calls()
        ),
    )


def random_items(rng: random.Random, netlist: Netlist, count: int) -> list[dict[str, int]]:
    """Items for the netlist's buses; plain zeros and ones are frequent."""
    def value(width: int) -> int:
        pick = rng.random()
        return 0 if pick < 0.1 else (1 << width) - 1 if pick < 0.2 else rng.getrandbits(width)

    return [{bus: value(width) for bus, width in netlist.inputs} for _ in range(count)]

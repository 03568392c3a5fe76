"""A loop program in native operations as a module of PTX: one kernel a region, or one for all items in turn.

All kernels take the same: how many items there are, the first of those that are meant, memory for what
regions hand on, then a pointer for each parameter leaf and each result leaf, at which the items' elements
follow one another, row-major, in native types. Constants and states are variables of the module.
"""
from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from kera_hw.cpu_gpu.ptx.body import Body, Place
from kera_hw.cpu_gpu.ptx.code import Code
from kera_hw.loops.program import (
    COUNTER,
    Block,
    Buffer,
    For,
    Load,
    LoopProgram,
    Statement,
    Store,
    Var,
    affine,
    statements,
)
from kera_hw.schedule.software.grids import LEAST_ROUNDS, MOST_THREADS, GridPlan, Region, plan_grids
from kera_hw.schedule.software.layout import ALIGNMENT_BYTES, element_bytes
from kera_hw.support import Diagnostic, KeraError

VERSION, TARGET = "6.3", "sm_75"
"""The least that the text asks for; every later GPU takes it too."""
MOST_PARAMETER_BYTES = 4_096
"""Of a kernel, on every GPU."""
MOST_DATA_BYTES = 1 << 28
"""Of constants and states, which stand in the text."""
MOST_INSTRUCTIONS = 1_000_000
_HEAD = ("items", "first", "memory")
_RESET = ".first"
_WORD_BYTES = 8

Unit = OneOf["round", "item", "batch"]
"""What a kernel has a thread for; of a batch, one block."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """``threads`` of a block; ``rounds`` of an item, where a thread has one of them."""

    name: str
    unit: Unit
    threads: int
    rounds: int
    instructions: int
    reason: str


@dataclass(frozen=True, slots=True)
class PtxModule:
    """``text`` and how to launch it: ``kernels`` one after another for a batch, ``reset`` for the state."""

    name: str
    text: str
    kernels: tuple[Kernel, ...]
    reset: Kernel | None
    params: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    plan: GridPlan
    data_bytes: int

    @property
    def vector_loops(self) -> int:
        """How many nests of loops run as threads."""
        return sum(bool(region.loops) for region in self.plan.regions)


def build_module(program: LoopProgram, least_rounds: int = LEAST_ROUNDS, fingerprint: str = "") -> PtxModule:
    """The module of a program. Raises KeraError (K0705) where it is larger than GPUs take."""
    stem = "kera_" + re.sub(r"[^A-Za-z0-9]", "_", program.name)
    plan = plan_grids(program, least_rounds)
    params, results = program.of_kind("param"), program.of_kind("result")
    writer = _Module(program, [*params, *results])
    if plan.in_turn:
        kernels = (writer.in_turn(stem, program, plan),)
    else:
        kernels = tuple(
            writer.region(f"{stem}_{k}", program, plan, region) for k, region in enumerate(plan.regions)
        )
    states = program.of_kind("state")
    reset = writer.in_turn(f"{stem}_reset", *_resetting(program)) if states else None
    size_bytes = [one.size * element_bytes(one.element) for one in writer.variables]
    _check(program.name, writer, sum(size_bytes))
    origin = f", {fingerprint}" if fingerprint else ""
    head = [f"// {program.name}{origin}", f".version {VERSION}", f".target {TARGET}", ".address_size 64", ""]
    variables = [writer.variable(buffer) for buffer in writer.variables]
    text = "\n".join([*head, *variables, *writer.written]) + "\n"
    return PtxModule(
        program.name, text, kernels, reset, tuple(params), tuple(results), plan, sum(size_bytes)
    )


def _check(name: str, writer: _Module, data_bytes: int) -> None:
    for what, count, most in (
        ("bytes of parameters", writer.parameter_bytes, MOST_PARAMETER_BYTES),
        ("bytes of constants and states", data_bytes, MOST_DATA_BYTES),
        ("instructions", writer.instructions, MOST_INSTRUCTIONS),
    ):
        if count > most:
            message = f"As a kernel, `{name}` has {count:,} {what}; {most:,} is the most."
            raise KeraError([Diagnostic("K0705", message)])


def _first(state: Buffer) -> Buffer:
    """What a state begins with, as a constant."""
    return replace(state, name=state.name + _RESET, kind="const")


def _resetting(program: LoopProgram) -> tuple[LoopProgram, GridPlan]:
    """A program that gives every state what it begins with."""
    states = program.of_kind("state")
    body: list[Statement] = []
    for k, state in enumerate(states):
        counters = [Var(f"r{k}_{axis}", COUNTER) for axis in range(len(state.shape))]
        index = tuple(affine(0, [(counter, 1)]) for counter in counters)
        value = Var(f"v{k}", state.element)
        inner = Block((Load(value, state.name + _RESET, index), Store(state.name, index, value)))
        for counter, extent in zip(reversed(counters), reversed(state.shape)):
            inner = Block((For(counter, extent, (), inner, parallel=True),))
        body += inner.body
    made = LoopProgram(program.name, (*states, *map(_first, states)), Block(tuple(body)))
    return made, plan_grids(made)


class _Module:
    """Writes kernels one after another."""

    def __init__(self, program: LoopProgram, ports: Sequence[Buffer]) -> None:
        self.ports = ports
        states = program.of_kind("state")
        self.variables = [*program.of_kind("const"), *states, *map(_first, states)]
        self._names = {
            buffer.name: f"b{k}_{re.sub('[^A-Za-z0-9]', '_', buffer.name)}"
            for k, buffer in enumerate(self.variables)
        }
        self.written: list[str] = []
        self.instructions = 0

    @property
    def parameter_bytes(self) -> int:
        return _WORD_BYTES * (len(_HEAD) + len(self.ports))

    def variable(self, buffer: Buffer) -> str:
        """A constant or a state with what it begins with."""
        size_bytes = buffer.size * element_bytes(buffer.element)
        data = buffer.data if any(buffer.data) else b""
        initial = f" = {{{', '.join(map(str, data))}}}" if data else ""
        name = self._names[buffer.name]
        return f".global .align {ALIGNMENT_BYTES} .b8 {name}[{max(size_bytes, 1)}]{initial};"

    # Kernels

    def region(self, name: str, program: LoopProgram, plan: GridPlan, region: Region) -> Kernel:
        """A kernel for one region of items that have nothing to do with each other."""
        threads = min(MOST_THREADS, -(-region.rounds // LEAST_ROUNDS) * LEAST_ROUNDS) if region.loops else 128
        frame = _Frame(self, name, program, plan)
        code, end = frame.code, frame.code.label()
        found = [code.give("mov.u32", f"%{one}.x") for one in ("ctaid", "ntid", "tid")]
        own = code.give("mad.lo.u32", *found)
        first = frame.parameter("first")
        if region.loops:
            code.op("bra", end, guard=code.give("setp.ge.u32", own, str(region.rounds)))
            which = code.give("cvt.u64.u32", code.give("mov.u32", "%ctaid.y"))
        else:
            which = code.give("cvt.u64.u32", own)
        item = code.give("add.u64", first, which)
        code.op("bra", end, guard=code.give("setp.ge.u64", item, frame.parameter("items")))
        frame.enter_item(item, [region])
        frame.region(region, own)
        code.place(end)
        unit: Unit = "round" if region.loops else "item"
        return self._finish(frame, unit, threads, region.rounds, region.reason)

    def in_turn(self, name: str, program: LoopProgram, plan: GridPlan) -> Kernel:
        """A kernel of one block for all items, one after another, with a barrier where regions meet."""
        frame = _Frame(self, name, program, plan)
        code, again, end = frame.code, frame.code.label(), frame.code.label()
        own = code.give("mov.u32", "%tid.x")
        item, items = code.give("mov.u64", "0"), frame.parameter("items")
        code.place(again)
        code.op("bra", end, guard=code.give("setp.ge.u64", item, items))
        frame.enter_item(item, plan.regions)
        waiting = _Accesses()
        for region in plan.regions:
            accesses = _accesses(region)
            if plan.threads > 1 and waiting.meet(accesses):
                code.op("bar.sync", "0")
                waiting = _Accesses()
            with frame.all_threads(region, own, plan.threads) as round_:
                frame.region(region, round_)
            waiting = waiting.and_then(accesses)
        if plan.threads > 1:
            code.op("bar.sync", "0")
        code.op("add.u64", item, item, "1")
        code.op("bra", again)
        code.place(end)
        reason = "items come one after another, since a state is kept"
        return self._finish(frame, "batch", plan.threads, 1, reason)

    def _finish(self, frame: _Frame, unit: Unit, threads: int, rounds: int, reason: str) -> Kernel:
        frame.code.op("ret")
        self.instructions += frame.code.instructions
        kernel = Kernel(frame.name, unit, threads, rounds, frame.code.instructions, reason)
        params = ",\n".join(f"\t.param .u64 {one}" for one in frame.parameters)
        declared = [f"\t{line}" for line in (*frame.code.registers(), *frame.arrays)]
        self.written += [
            "", f".visible .entry {kernel.name}(", params, ")", f".reqntid {kernel.threads}, 1, 1", "{",
            *declared, *frame.code.lines, "}",
        ]
        return kernel

    def symbol(self, buffer: str) -> str:
        """The name of a variable of the module."""
        return self._names[buffer]


class _Frame:
    """What stands around the regions of one kernel: where an item's buffers lie, and who does what."""

    def __init__(self, module: _Module, name: str, program: LoopProgram, plan: GridPlan) -> None:
        self.name, self.code = name, Code()
        self.arrays: list[str] = []
        self._module, self._program, self._plan = module, program, plan
        self._names = {one: f"{name}_{one}" for one in _HEAD}
        self._names |= {one.name: f"{name}_port{k}" for k, one in enumerate(module.ports)}
        self._places: dict[str, Place] = {}
        self._memory = Place("global", "")

    @property
    def parameters(self) -> Iterable[str]:
        return self._names.values()

    def parameter(self, name: str) -> str:
        return self.code.give("ld.param.u64", self._names[name])

    def enter_item(self, item: str, regions: Sequence[Region]) -> None:
        """Where the buffers of an item lie that the regions reach."""
        code, plan = self.code, self._plan
        reached = dict.fromkeys(name for region in regions for name in _reached(region.body))
        ports = {buffer.name: buffer for buffer in self._module.ports}
        variables = {buffer.name for buffer in self._module.variables}
        for name in reached:
            if name in ports:
                base = code.give("cvta.to.global.u64", self.parameter(name))
                size_bytes = ports[name].size * element_bytes(ports[name].element)
                self._places[name] = Place("global", code.give("mad.lo.u64", item, str(size_bytes), base))
            elif name in variables:
                self._places[name] = Place("global", code.give("mov.u64", self._module.symbol(name)))
        if plan.item_bytes:
            base = code.give("cvta.to.global.u64", self.parameter("memory"))
            if not plan.in_turn:
                base = code.give("mad.lo.u64", item, str(plan.item_bytes), base)
            self._memory = Place("global", base)
        handed = self._memory
        if plan.shared:
            self.arrays.append(f".shared .align {ALIGNMENT_BYTES} .b8 handed[{plan.shared_bytes}];")
            handed = Place("shared", code.give("mov.u64", "handed"))
        self._places |= {name: handed._replace(offset=offset) for name, offset in plan.places.items()}
        local_bytes = max((one.slot_bytes for one in regions if one.space == "local"), default=0)
        if local_bytes:
            self.arrays.append(f".local .align {ALIGNMENT_BYTES} .b8 own[{local_bytes}];")

    def region(self, region: Region, round_: str) -> None:
        """One round of a region."""
        code = self.code
        own = dict(self._places)
        if region.slot_bytes:
            if region.space == "local":
                base = Place("local", code.give("mov.u64", "own"))
            else:
                base = self._memory._replace(offset=region.slot)
            if region.space == "item" and region.loops:
                wide = code.give("cvt.u64.u32", round_)
                base = base._replace(base=code.give("mad.lo.u64", wide, str(region.slot_bytes), base.base))
            own |= {name: base._replace(offset=base.offset + at) for name, at in region.temporaries.items()}
        body = Body(code, self._program, own)
        for var, register in self._counters(region.loops, round_):
            body.hold(var, register)
        for var in region.takes:
            body.take(var, self._places[var.name])
        body.block(region.body)
        for var in region.gives:
            body.leave(var, self._places[var.name])

    def _counters(self, loops: tuple[For, ...], round_: str) -> Iterator[tuple[Var, str]]:
        """The counters of nested loops from a round's number: the innermost counts fastest."""
        code, left = self.code, round_
        for k, loop in enumerate(reversed(loops)):
            count, last = loop.count, k == len(loops) - 1
            if last:
                own = left
            elif count & (count - 1) == 0:
                own = code.give("and.b32", left, str(count - 1))
                left = code.give("shr.u32", left, str(count.bit_length() - 1))
            else:
                own = code.give("rem.u32", left, str(count))
                left = code.give("div.u32", left, str(count))
            yield loop.var, code.give("cvt.u64.u32", own)

    @contextmanager
    def all_threads(self, region: Region, own: str, threads: int) -> Generator[str]:
        """A region's rounds shared out among the threads of a block; without rounds, the first does it."""
        code = self.code
        if threads == 1 and region.rounds == 1:
            yield own
            return
        done = code.label()
        if not region.loops:
            code.op("bra", done, guard=code.give("setp.ne.u32", own, "0"))
            yield own
            code.place(done)
            return
        again, round_ = code.label(), code.give("mov.u32", own)
        code.place(again)
        code.op("bra", done, guard=code.give("setp.ge.u32", round_, str(region.rounds)))
        yield round_
        code.op("add.u32", round_, round_, str(threads))
        code.op("bra", again)
        code.place(done)


@dataclass(frozen=True, slots=True)
class _Accesses:
    """Buffers and handed scalars that are read and written since all threads last waited for each other."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()

    def and_then(self, other: _Accesses) -> _Accesses:
        return _Accesses(self.read | other.read, self.written | other.written)

    def meet(self, other: _Accesses) -> bool:
        """Whether what comes next touches what another thread may have."""
        return bool(self.written & (other.read | other.written) or self.read & other.written)


def _accesses(region: Region) -> _Accesses:
    inside = list(statements(region.body))
    read = {item.buffer for item in inside if isinstance(item, Load)}
    written = {item.buffer for item in inside if isinstance(item, Store)}
    scalars = ({var.name for var in handed} for handed in (region.takes, region.gives))
    taken, given = scalars
    return _Accesses(frozenset(read | taken), frozenset(written | given))


def _reached(block: Block) -> Iterator[str]:
    return (item.buffer for item in statements(block) if isinstance(item, (Load, Store)))

"""A loop program in native operations as kernels of a GPU: one a region, or one for all items in turn.

All kernels take the same: how many items there are, the first of those that are meant, memory for what
regions hand on, then a pointer for each parameter leaf and each result leaf, at which the items' elements
follow one another, row-major, in native types. Constants and states are variables of the module. How that is
written down is a language's (``Language``).
"""
from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Generic
from typing import Literal as OneOf

from kera_hw.cpu_gpu.gpu.body import Body
from kera_hw.cpu_gpu.gpu.byte_products import WORD_BYTES
from kera_hw.cpu_gpu.gpu.tiles import DEPTH, SIDE, WARP, Tiles, tiles_of
from kera_hw.cpu_gpu.gpu.writer import Held, Place, R, Scalar, Writer
from kera_hw.legal.native import Signature, unsigned
from kera_hw.loops.program import (
    COUNTER,
    Alloc,
    Block,
    Buffer,
    For,
    Literal,
    Load,
    LoopProgram,
    Statement,
    Store,
    Var,
    affine,
    statements,
)
from kera_hw.schedule.software.grids import MOST_THREADS, GridPlan, GridRegion, Threads, plan_grids
from kera_hw.schedule.software.layout import element_bytes
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import BOOL, Type

MOST_PARAMETER_BYTES = 4_096
"""Of a kernel, on every GPU."""
MOST_DATA_BYTES = 1 << 28
"""Of constants and states, which stand in the text."""
MOST_INSTRUCTIONS = 1_000_000
HEAD = ("items", "first", "memory")
_RESET = ".first"
_WORD_BYTES = 8
_U32, _U64 = unsigned(32), unsigned(64)

Unit = OneOf["round", "item", "batch"]
"""What a kernel has a thread for; of a batch, one block."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """``threads`` of a block; ``rounds`` of an item, where a thread has one of them. ``byte_products``: loops
    that sum four products of bytes at a time. ``resources``: what a language counts besides, as registers.
    ``tiles``: empty where tensor cores do it all, else why not."""

    name: str
    unit: Unit
    threads: int
    rounds: int
    instructions: int
    reason: str
    byte_products: int = 0
    tiles: str = ""
    resources: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)


@dataclass(frozen=True, slots=True)
class GpuModule:
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


class Language(ABC, Generic[R]):
    """How modules are written. ``threads``: what a block of threads is."""

    threads: Threads

    @abstractmethod
    def writer(self, name: str, parameters: Sequence[str]) -> Writer[R]:
        """Of a kernel; all parameters have 64 bits."""

    @abstractmethod
    def finished(self, writer: Writer[R], kernel: Kernel) -> tuple[list[str], Kernel]:
        """A kernel's text, and the kernel with what became of it. Raises KeraError (K0705)."""

    @abstractmethod
    def variable(self, name: str, size_bytes: int, data: bytes) -> str:
        """A variable of the module with what it begins with, as far as that is no zeros."""

    @abstractmethod
    def module(
        self, title: str, variables: Sequence[str], kernels: Sequence[tuple[list[str], Kernel]]
    ) -> str:
        """The whole text."""


def build_module(
    program: LoopProgram, language: Language[R], least_rounds: int, fingerprint: str = ""
) -> GpuModule:
    """The module of a program. Raises KeraError (K0705) where it is larger than GPUs take."""
    stem = "kera_" + re.sub(r"[^A-Za-z0-9]", "_", program.name)
    plan = plan_grids(program, least_rounds, language.threads)
    params, results = program.of_kind("param"), program.of_kind("result")
    writer = _Module(program, [*params, *results], language)
    if plan.in_turn:
        writer.in_turn(stem, program, plan)
    else:
        for k, region in enumerate(plan.regions):
            writer.region(f"{stem}_{k}", program, plan, region)
    kernels = tuple(kernel for _, kernel in writer.written)
    states = program.of_kind("state")
    if states:
        writer.in_turn(f"{stem}_reset", *_resetting(program, language.threads))
    reset = writer.written[-1][1] if states else None
    size_bytes = [one.size * element_bytes(one.element) for one in writer.variables]
    _check(program.name, writer, sum(size_bytes))
    variables = [
        language.variable(writer.symbol(one.name), max(size, 1), one.data if any(one.data) else b"")
        for one, size in zip(writer.variables, size_bytes)
    ]
    title = f"{program.name}, {fingerprint}" if fingerprint else program.name
    text = language.module(title, variables, writer.written)
    return GpuModule(
        program.name, text, kernels, reset, tuple(params), tuple(results), plan, sum(size_bytes)
    )


def _check(name: str, writer: _Module[R], data_bytes: int) -> None:
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


def _resetting(program: LoopProgram, threads: Threads) -> tuple[LoopProgram, GridPlan]:
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
    return made, plan_grids(made, threads.in_step, threads)


class _Module(Generic[R]):
    """Writes kernels one after another."""

    def __init__(self, program: LoopProgram, ports: Sequence[Buffer], language: Language[R]) -> None:
        self.ports, self.language = ports, language
        states = program.of_kind("state")
        self.variables = [*program.of_kind("const"), *states, *map(_first, states)]
        self._names = {
            buffer.name: f"b{k}_{re.sub('[^A-Za-z0-9]', '_', buffer.name)}"
            for k, buffer in enumerate(self.variables)
        }
        self.written: list[tuple[list[str], Kernel]] = []
        self.instructions = 0

    @property
    def parameter_bytes(self) -> int:
        return _WORD_BYTES * (len(HEAD) + len(self.ports))

    def region(self, name: str, program: LoopProgram, plan: GridPlan, region: GridRegion) -> None:
        """A kernel for one region of items that have nothing to do with each other."""
        each = self.language.threads
        frame = _Frame(self, name, program, plan)
        tiles = frame.tiles_of(region)
        rounds = tiles.rounds if isinstance(tiles, Tiles) else region.rounds
        threads = min(MOST_THREADS, -(-rounds // each.in_step) * each.in_step)
        threads = threads if region.loops else each.for_items
        block, thread = frame.word(frame.writer.block("x")), frame.word(frame.writer.thread())
        own = frame.compute("integer.add", _U32, frame.scaled(block, threads), thread)
        with frame.unless_past(own, region, rounds):
            which = frame.word(frame.writer.block("y")) if region.loops else own
            item = frame.compute("integer.add", _U64, frame.parameter("first"), frame.wide(which))
            with frame.where("compare.lt", _U64, item, frame.parameter("items")):
                frame.enter_item(item, [region])
                if isinstance(tiles, Tiles):
                    frame.tiles(tiles, own)
                else:
                    frame.region(region, own)
        unit: Unit = "round" if region.loops else "item"
        self._finish(frame, unit, threads, rounds, region.reason, "" if isinstance(tiles, Tiles) else tiles)

    def in_turn(self, name: str, program: LoopProgram, plan: GridPlan) -> None:
        """A kernel of one block for all items, one after another, with a barrier where regions meet."""
        frame = _Frame(self, name, program, plan)
        writer = frame.writer
        own = frame.word(writer.thread())
        items = frame.parameter("items")
        register = writer.register(_U64)
        writer.move(register, Scalar(_U64, Literal(_U64, 0)))
        item = Scalar(_U64, Held(register))
        with writer.repeated_together() as leave_unless:
            leave_unless(frame.compare("compare.lt", _U64, item, items))
            frame.enter_item(item, plan.regions)
            waiting = _Accesses()
            for region in plan.regions:
                accesses = _accesses(region)
                if plan.threads > 1 and waiting.meet(accesses):
                    writer.barrier()
                    waiting = _Accesses()
                with frame.all_threads(region, own, plan.threads) as round_:
                    frame.region(region, round_)
                waiting = waiting.and_then(accesses)
            if plan.threads > 1:
                writer.barrier()
            writer.move(register, frame.compute("integer.add", _U64, item, frame.constant(_U64, 1)))
        reason = "items come one after another, since a state is kept"
        self._finish(frame, "batch", plan.threads, 1, reason, "threads of a block share the rounds out")

    def _finish(
        self, frame: _Frame[R], unit: Unit, threads: int, rounds: int, reason: str, no_tiles: str
    ) -> None:
        kernel = Kernel(frame.name, unit, threads, rounds, 0, reason, frame.byte_products, no_tiles)
        text, kernel = self.language.finished(frame.writer, kernel)
        self.instructions += kernel.instructions
        self.written.append((text, kernel))

    def symbol(self, buffer: str) -> str:
        """The name of a variable of the module."""
        return self._names[buffer]


class _Frame(Generic[R]):
    """What stands around the regions of one kernel: where an item's buffers lie, and who does what."""

    def __init__(self, module: _Module[R], name: str, program: LoopProgram, plan: GridPlan) -> None:
        self.name = name
        self._names = {one: f"{name}_{one}" for one in HEAD}
        self._names |= {one.name: f"{name}_port{k}" for k, one in enumerate(module.ports)}
        self.writer = module.language.writer(name, list(self._names.values()))
        self._module, self._program, self._plan = module, program, plan
        self._places: dict[str, Place[R]] = {}
        self._memory: Place[R] | None = None
        self._own: Place[R] | None = None
        self.byte_products = 0

    # Scalars of the frame

    def word(self, register: R) -> Scalar[R]:
        return Scalar(_U32, Held(register))

    def constant(self, kind: Type, value: int) -> Scalar[R]:
        return Scalar(kind, Literal(kind, value))

    def compute(self, opcode: str, kind: Type, *args: Scalar[R]) -> Scalar[R]:
        op = Signature(opcode, tuple(one.type for one in args), kind)
        return Scalar(kind, self.writer.compute(op, args))

    def compare(self, opcode: str, kind: Type, *args: Scalar[R]) -> Scalar[R]:
        return Scalar(BOOL, self.writer.compute(Signature(opcode, (kind, kind), BOOL), args))

    def scaled(self, value: Scalar[R], factor: int) -> Scalar[R]:
        return self.compute("integer.mul", value.type, value, self.constant(value.type, factor))

    def wide(self, value: Scalar[R], kind: Type = _U64) -> Scalar[R]:
        return self.compute("convert.cast", kind, value)

    def parameter(self, name: str) -> Scalar[R]:
        return Scalar(_U64, Held(self.writer.parameter(self._names[name])))

    @contextmanager
    def where(self, opcode: str, kind: Type, *args: Scalar[R]) -> Generator[None]:
        """What follows is for threads for which a comparison holds."""
        with self.writer.either(self.compare(opcode, kind, *args)):
            yield

    @contextmanager
    def unless_past(self, own: Scalar[R], region: GridRegion, rounds: int) -> Generator[None]:
        """Of a region with rounds, for threads that have one."""
        if region.loops:
            with self.where("compare.lt", _U32, own, self.constant(_U32, rounds)):
                yield
        else:
            yield

    # Memory

    def enter_item(self, item: Scalar[R], regions: Sequence[GridRegion]) -> None:
        """Where the buffers of an item lie that the regions reach."""
        writer, plan = self.writer, self._plan
        reached = dict.fromkeys(name for region in regions for name in _reached(region.body))
        ports = {buffer.name: buffer for buffer in self._module.ports}
        variables = {buffer.name for buffer in self._module.variables}
        for name in reached:
            if name in ports:
                size_bytes = ports[name].size * element_bytes(ports[name].element)
                base = writer.advance(writer.pointer(self._names[name]), [(item, size_bytes)])
                self._places[name] = Place("global", base)
            elif name in variables:
                self._places[name] = Place("global", writer.symbol(self._module.symbol(name)))
        handed: Place[R] | None = None
        if plan.item_bytes:
            base = writer.pointer(self._names["memory"])
            if not plan.in_turn:
                base = writer.advance(base, [(item, plan.item_bytes)])
            handed = self._memory = Place("global", base)
        if plan.shared:
            handed = writer.array("shared", plan.shared_bytes)
        if handed is not None:
            self._places |= {name: replace(handed, offset=offset) for name, offset in plan.places.items()}
        local_bytes = max((one.slot_bytes for one in regions if one.space == "local"), default=0)
        if local_bytes:
            self._own = writer.array("local", local_bytes)

    def region(self, region: GridRegion, round_: Scalar[R]) -> None:
        """One round of a region."""
        own = dict(self._places)
        if region.slot_bytes:
            base = self._temporaries(region, round_)
            places = region.temporaries.items()
            own |= {name: replace(base, offset=base.offset + at) for name, at in places}
        body = Body(self.writer, self._program, own)
        for var, counter in self._counters(region.loops, round_):
            body.hold(var, counter)
        for var in region.takes:
            body.take(var, self._places[var.name])
        body.block(region.body)
        self.byte_products += body.byte_products
        for var in region.gives:
            body.leave(var, self._places[var.name])

    # Tiles

    def tiles_of(self, region: GridRegion) -> Tiles | str:
        """What a warp may do of a region at once, or why not."""
        if not self.writer.has_tiles:
            return "not among the instructions that are written"
        outside = (item.buffer for item in self._program.body.body if isinstance(item, Alloc))
        return tiles_of(region, {one.name: one for one in (*self._program.buffers, *outside)})

    def tiles(self, tiles: Tiles, own: Scalar[R]) -> None:
        """A thread's share of a warp's tile."""
        writer = self.writer
        lane, tile = self._divided(own, WARP)
        column, row = self._divided(tile, tiles.columns // SIDE)
        within, line = self._divided(lane, WARP // SIDE)
        kinds = tiles.factors[0].kind, tiles.factors[1].kind
        lines = [
            self.compute("integer.add", _U32, self.scaled(part, SIDE), line) for part in (row, column)
        ]
        totals = writer.register(tiles.kind), writer.register(tiles.kind)
        for register in totals:
            writer.move(register, Scalar(tiles.kind, Literal(tiles.kind, 0)))
        with writer.counted(tiles.depth // DEPTH) as counter:
            first, second = (
                writer.load(
                    _U32, self._behind(one.buffer, one.first),
                    [(at, one.stride), (within, WORD_BYTES), (Scalar(COUNTER, counter), DEPTH)],
                )
                for one, at in zip(tiles.factors, lines)
            )
            for register, found in zip(totals, writer.tile(totals, (first, second), kinds)):
                writer.move(register, Scalar(tiles.kind, Held(found)))
        size_bytes = element_bytes(tiles.kind)
        down, across = tiles.strides
        steps = [
            (lines[0], down * size_bytes), (column, SIDE * across * size_bytes),
            (within, 2 * across * size_bytes),
        ]
        for k, register in enumerate(totals):
            place = self._behind(tiles.result, (tiles.first + k * across) * size_bytes)
            writer.store(tiles.kind, place, steps, Scalar(tiles.kind, Held(register)))

    def _behind(self, buffer: str, size_bytes: int) -> Place[R]:
        place = self._places[buffer]
        return replace(place, offset=place.offset + size_bytes)

    def _temporaries(self, region: GridRegion, round_: Scalar[R]) -> Place[R]:
        """Where those lie that a round makes."""
        if region.space == "local":
            assert self._own is not None
            return self._own
        assert self._memory is not None and self._memory.base is not None
        base = self._memory.base
        if region.loops:
            base = self.writer.advance(base, [(round_, region.slot_bytes)])
        return Place("global", base, region.slot)

    def _counters(self, loops: tuple[For, ...], round_: Scalar[R]) -> Iterator[tuple[Var, Held[R]]]:
        """The counters of nested loops from a round's number: the innermost counts fastest."""
        left = round_
        for k, loop in enumerate(reversed(loops)):
            count, own = loop.count, left
            if k < len(loops) - 1:
                own, left = self._divided(left, count)
            counter = self.wide(own, loop.var.type).held
            assert isinstance(counter, Held)
            yield loop.var, counter

    def _divided(self, value: Scalar[R], by: int) -> tuple[Scalar[R], Scalar[R]]:
        """The remainder and the quotient."""
        if by & (by - 1) == 0:
            rest = self.compute("bits.and", _U32, value, self.constant(_U32, by - 1))
            amount = self.constant(_U32, by.bit_length() - 1)
            return rest, self.compute("bits.shr", _U32, value, amount)
        quotient = self.compute("integer.div", _U32, value, self.constant(_U32, by))
        return self.compute("integer.sub", _U32, value, self.scaled(quotient, by)), quotient

    @contextmanager
    def all_threads(self, region: GridRegion, own: Scalar[R], threads: int) -> Generator[Scalar[R]]:
        """A region's rounds shared out among the threads of a block; without rounds, the first does it."""
        writer = self.writer
        if threads == 1 and region.rounds == 1:
            yield own
            return
        if not region.loops:
            with self.where("compare.eq", _U32, own, self.constant(_U32, 0)):
                yield own
            return
        register = writer.register(_U32)
        writer.move(register, own)
        round_ = self.word(register)
        with writer.repeated(None) as leave_unless:
            leave_unless(self.compare("compare.lt", _U32, round_, self.constant(_U32, region.rounds)))
            yield round_
            writer.move(register, self.compute("integer.add", _U32, round_, self.constant(_U32, threads)))


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


def _accesses(region: GridRegion) -> _Accesses:
    inside = list(statements(region.body))
    read = {item.buffer for item in inside if isinstance(item, Load)}
    written = {item.buffer for item in inside if isinstance(item, Store)}
    scalars = ({var.name for var in handed} for handed in (region.takes, region.gives))
    taken, given = scalars
    return _Accesses(frozenset(read | taken), frozenset(written | given))


def _reached(block: Block) -> Iterator[str]:
    return (item.buffer for item in statements(block) if isinstance(item, (Load, Store)))

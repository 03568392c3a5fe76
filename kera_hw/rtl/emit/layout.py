"""Which signals a datapath consists of: names, registers and readers as the plan has them, for every emitter.

Every register bit here is one of the plan's: for each run of bits, one register in each stage it is kept for.
Emitters differ in how they write a signal down, not in which there are or what they are called.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.naming import Names, plain_name, unique_stems
from kera_hw.rtl.emit.ports import Protocol
from kera_hw.schedule.accesses import Access, clear_cycles, memories
from kera_hw.schedule.fpga.bits import Segment
from kera_hw.schedule.fpga.cells import Cell, StateNext, StateOut
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import has_valid
from kera_hw.schedule.fpga.units import Operator, Storage
from kera_hw.schedule.lifetimes import enabled_stages
from kera_hw.schedule.plan import DelayLine, Plan
from kera_hw.schedule.turns import Placed, Turn, turns, valid_stages


@dataclass(frozen=True, slots=True)
class Control:
    """How items come and go, and the control inputs of the datapath that follow from it.

    It has ``advance`` where it can stall, ``rst`` where there are registers to restore, and a valid bit for
    each of ``valid_stages``. Where memories are to be initialised after a reset, that takes ``clear_cycles``,
    with ``clear`` and ``clear_address``; items are taken again after ``reset_cycles``.
    """

    protocol: Protocol
    reset: bool
    valid_stages: tuple[int, ...]
    clear_cycles: int = 0
    reset_cycles: int = 0

    @property
    def advance(self) -> bool:
        """Whether the datapath can stall."""
        return self.protocol == "stream"

    @property
    def clear_bits(self) -> int:
        """Bits of ``clear_address``; 0 where nothing is initialised."""
        return max(1, (self.clear_cycles - 1).bit_length()) if self.clear_cycles else 0


def control_of(netlist: Netlist, plan: Plan, interface: str) -> Control:
    """The control that a plan needs: none at all without a handshake where every cycle is an item's own."""
    calls = (
        users for unit, users in netlist.calls()
        if unit.timed_by_items or (len(users) > 1 and not isinstance(unit, Operator))
    )
    called = {plan.stage[call] for users in calls for call in users}
    taken = turns_of(netlist, plan)
    told = enabled_stages(plan.lifetimes) | valid_stages(taken)
    stages = tuple(sorted({*plan.state_write, *called, *told}))
    restored = bool(netlist.states or taken)
    if interface != "none":
        return Control("stream", restored, stages, clear_cycles(netlist), plan.reset_cycles)
    strobed = has_valid(netlist, interface, plan.initiation_interval)
    assert strobed or not stages, "what lasts beyond an item belongs to a state or to an interval over 1"
    protocol: Protocol = "valid" if strobed else "none"
    return Control(protocol, restored, stages, clear_cycles(netlist), plan.reset_cycles)


def turns_of(netlist: Netlist, plan: Plan) -> tuple[Turn, ...]:
    """The operators of a plan that calls share."""
    return turns(netlist, Placed(plan.stage, plan.available, plan.lifetimes))


def free_running(control: Control) -> Control:
    """The same for a datapath that nobody stalls."""
    return replace(control, protocol="valid")


def valid_name(stage: int) -> str:
    """The control input that says whether stage ``stage`` holds an item."""
    return f"valid_stage{stage}"


@dataclass(frozen=True, slots=True)
class Run:
    """A register: bits [low, low + width) of cell ``cell`` as one signal, shown from stage ``stage`` on.

    ``stages``: for how many. Where that is more than one it takes its value for items only. ``line``: which
    delay line ends in it, if one does.
    """

    cell: int
    stage: int
    low: int
    width: int
    name: str
    stages: int = 1
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits [low, low + width) of the signal ``name``, which is ``whole`` bits wide."""

    name: str
    low: int
    width: int
    whole: int


@dataclass(frozen=True, slots=True)
class CallPlace:
    """All the calls of one unit, in order of their stages.

    Emitters write stage by stage: the first declares what the unit shows, the last, where all operands are
    there, has the unit itself.
    """

    calls: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether calls take turns."""
        return len(self.calls) > 1


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A memory in a datapath: the calls of its write port and of every read port, and its signals' beginning.

    ``stem`` is followed by ``_write``, ``_write_address``, ``_write_data``, ``_read_address`` and ``_q``; of
    several read ports the first is lowest.
    """

    storage: Storage
    writes: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    stem: str


STORAGE_SIGNALS = ("_write", "_write_address", "_write_data", "_read_address", "_q")


class Layout:
    """Names of a datapath's signals, its registers, and which signal shows which bits in which stage.

    ``wires`` names each cell's output; a state register is read where it stands, its wire is the register
    (``states``, in the netlist's order). ``delays``: of each delay line what it
    shows, lowest first. ``origins`` maps names to source places; ``register_bits`` counts the registers,
    state registers aside.
    """

    def __init__(self, netlist: Netlist, plan: Plan, control: Control) -> None:
        self.netlist, self.plan = netlist, plan
        buses = [*(bus for bus, _ in netlist.inputs), *(out.bus for out in netlist.outputs)]
        taken = {
            "clk", "rst", "advance", "clear", "clear_address", *buses, *map(valid_name, control.valid_stages),
        }
        self._names = Names(taken)
        self._stems = unique_stems(netlist, frozenset(taken))
        self.origins: dict[str, Origin] = {}
        self.register_bits = 0
        self.wires = [self.fresh(f"{stem}_s{stage}") for stem, stage in zip(self._stems, plan.available)]
        self.states = [self.wires[state.out] for state in netlist.states]
        for index, cell in enumerate(netlist.cells):
            if isinstance(cell, StateNext):
                self.wires[index] = self.states[cell.state]
        self._runs: list[Run] = []
        self._kept = self._registers()
        self._calls: dict[int, CallPlace] = {}
        for _, users in netlist.calls():
            ordered = tuple(sorted(users, key=lambda user: (plan.stage[user], user)))
            self._calls.update(dict.fromkeys(users, CallPlace(ordered)))
        self.turns = {turn.unit.name: turn for turn in turns_of(netlist, plan)}
        self.storages = [self._storage(*memory) for memory in memories(netlist)]
        for index in range(len(netlist.cells)):
            self.note(self.wires[index], netlist.cells[index])

    def _storage(self, storage: Storage, accesses: Sequence[Access]) -> StoragePlace:
        ordered = sorted(accesses, key=lambda access: (self.plan.stage[access.cell], access.cell))
        ports: dict[str, list[int]] = {}
        for access in ordered:
            ports.setdefault(access.port.name if access.reads else "", []).append(access.cell)
        writes = tuple(ports.pop("", ()))
        stem = (plain_name(storage.name) or "memory") + "_memory"
        while any(self._names.holds(stem + suffix) for suffix in STORAGE_SIGNALS):
            stem += "_"
        for suffix in STORAGE_SIGNALS:
            self._names.fresh(stem + suffix)
        return StoragePlace(storage, writes, tuple(tuple(calls) for _, calls in sorted(ports.items())), stem)

    def fresh(self, name: str) -> str:
        """``name``, made unique in the module."""
        return self._names.fresh(name)

    def note(self, name: str, cell: Cell) -> None:
        """Remembers where in the source the signal ``name`` comes from."""
        if cell.origin is not None:
            self.origins[name] = cell.origin

    def _registers(self) -> dict[tuple[int, int], list[Run]]:
        """For each (cell, stage): the registers that show its bits there; neighbouring runs share one."""
        elsewhere = self._elsewhere()
        spans: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for life in sorted(self.plan.lifetimes, key=lambda item: (item.cell, item.low)):
            for load in life.loads():
                runs = spans.setdefault((life.cell, load + 1, life.stages_each), [])
                for low, width in _without(life.low, life.width, elsewhere.get((life.cell, load + 1), ())):
                    if runs and sum(runs[-1]) == low:
                        runs[-1] = (runs[-1][0], runs[-1][1] + width)
                    else:
                        runs.append((low, width))
        kept: dict[tuple[int, int], list[Run]] = {}
        self.delays = [self._delay(number, line) for number, line in enumerate(self.plan.delay_lines)]
        for run in (run for runs in self.delays for run in runs):
            self._runs.append(run)
            kept.setdefault((run.cell, run.stage), []).append(run)
        for (cell, first, stages), runs in spans.items():
            for low, width in runs:
                run = self._run(cell, first, low, width, stages)
                self._runs.append(run)
                for stage in range(first, first + stages):
                    kept.setdefault((cell, stage), []).append(run)
        return {place: sorted(runs, key=lambda run: run.low) for place, runs in kept.items()}

    def _elsewhere(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """For each (cell, stage) the bits, as (low, width) in order, that delay lines hold or show there."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for line in self.plan.delay_lines:
            for held in line.parts:
                for stage in range(held.load + 1, held.load + line.stages + 1):
                    found.setdefault((held.cell, stage), []).append((held.low, held.width))
        return {place: sorted(parts) for place, parts in found.items()}

    def _delay(self, number: int, line: DelayLine) -> list[Run]:
        """What a delay line shows, lowest first."""
        return [
            self._run(held.cell, held.load + line.stages, held.low, held.width, 1, number)
            for held in line.parts
        ]

    def _run(
        self, cell: int, stage: int, low: int, width: int, stages: int, line: int | None = None
    ) -> Run:
        self.register_bits += width
        name = f"{self._stems[cell]}_s{stage}"
        if width != self.netlist.cells[cell].width:
            name += f"_{low + width - 1}_{low}"
        name = self.fresh(name)
        self.note(name, self.netlist.cells[cell])
        return Run(cell, stage, low, width, name, stages, line)

    def runs(self) -> Iterable[Run]:
        """All registers."""
        return iter(self._runs)

    def runs_by_stage(self) -> dict[int, list[Run]]:
        """The registers that show their bits in a stage, that is, end the one before."""
        entering: dict[int, list[Run]] = {}
        for run in self.runs():
            entering.setdefault(run.stage, []).append(run)
        return entering

    def cells_by_stage(self) -> dict[int, list[int]]:
        """The cells that work in a stage."""
        working: dict[int, list[int]] = {}
        for index, stage in enumerate(self.plan.stage):
            working.setdefault(stage, []).append(index)
        return working

    def call(self, index: int) -> CallPlace:
        """Where a cell stands among its unit's calls, in order of their stages."""
        return self._calls[index]

    def _stands_until(self, cell: int) -> int:
        """The last stage in which a value is there without a register."""
        source = self.netlist.cells[cell]
        if isinstance(source, StateOut):
            return self.plan.state_write[source.state]
        return self.plan.available[cell]

    def pieces(self, segment: Segment, stage: int) -> list[Piece]:
        """The signals that show a segment in a stage, least significant first."""
        cell = segment.cell
        assert cell is not None
        if self.plan.available[cell] <= stage <= self._stands_until(cell):
            return [Piece(self.wires[cell], segment.low, segment.width, self.netlist.cells[cell].width)]
        pieces: list[Piece] = []
        low, end = segment.low, segment.low + segment.width
        for run in self._kept.get((cell, stage), ()):
            if run.low <= low < run.low + run.width:
                width = min(end, run.low + run.width) - low
                pieces.append(Piece(run.name, low - run.low, width, run.width))
                low += width
                if low == end:
                    return pieces
        raise ValueError(f"the plan keeps no bit {low} of cell {cell} for stage {stage}")


def _without(low: int, width: int, others: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """What is left of bits without others, which are in order."""
    end = low + width
    for other, count in others:
        if low < other < end:
            yield low, other - low
        if other < end and other + count > low:
            low = other + count
    if low < end:
        yield low, end - low

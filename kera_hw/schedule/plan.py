"""The plan: in which stage every cell works, how long every bit is kept, and what that should cost.

A pipeline of ``latency_cycles`` = N stages, numbered 0 to N - 1. The module's inputs are present at the
start of stage 0. A cell placed in stage s computes its output within stage s (``available[cell] == s``),
except cells with L > 0 pipeline registers inside, whose output appears at the start of stage s + L. A value
needed in stage t passes through t - available registers, one at the end of each stage in between; outputs
are needed in "stage N", that is, behind the register that ends stage N - 1. Constants need no registers. A
state register is read in stage ``stage[state.out]`` and takes its next value at the end of stage
``state_write[i]``.

Plans are immutable plain data: the emitter writes down what they say, the verifier checks them, JSON carries
them. Nothing here decides anything.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Resources:
    """Device resources of one design, in the device's own units, and the clock it reaches (MHz)."""

    lut: int
    ff: int
    dsp: int
    bram: int
    fmax_mhz: float


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A run of output bits with the same readers: ``width`` bits of ``cell`` from bit ``low``.

    The value is present unregistered from stage ``available`` for ``standing`` stages more: none, but of a
    state register those until it is written. It then passes ``registers`` more, each of which shows it for
    ``stages_each``: one that takes the next value in every cycle for 1, one that is enabled when the stage
    before holds an item for a whole initiation interval, in which no other item can want it.
    """

    cell: int
    low: int
    width: int
    available: int
    registers: int
    standing: int = 0
    stages_each: int = 1

    @property
    def register_bits(self) -> int:
        return self.width * self.registers

    @property
    def unregistered_until(self) -> int:
        """The last stage in which the value is present without a register."""
        return self.available + self.standing

    @property
    def until(self) -> int:
        """The last stage in which it is there."""
        return self.unregistered_until + self.registers * self.stages_each

    def loads(self) -> range:
        """The stages at whose ends its registers take the value, one after another."""
        return range(self.unregistered_until, self.until, self.stages_each)


@dataclass(frozen=True, slots=True)
class DelayPart:
    """Bits [low, low + width) of ``cell`` that a delay line takes at the end of stage ``load``."""

    cell: int
    low: int
    width: int
    load: int


@dataclass(frozen=True, slots=True)
class DelayLine:
    """A memory in LUTs in place of ``stages`` registers in a row, of which the last stays one.

    It holds the bits of its parts side by side, lowest first, and shows them ``stages`` after it took them,
    in between not at all.
    """

    stages: int
    parts: tuple[DelayPart, ...]

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    @property
    def saved_bits(self) -> int:
        """Register bits that are none any more."""
        return self.width * (self.stages - 1)


@dataclass(frozen=True, slots=True)
class PathStep:
    """One cell on a timing path: what it adds (ps, the wire to it included) and when its output settles."""

    cell: int
    delay_ps: int
    arrival_ps: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The loop through state that set the initiation interval: its cells in order and the stages it takes."""

    cells: tuple[int, ...]
    states: tuple[str, ...]
    stages: int


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """The pace of a unit, which is a region of its own, and when it is reserved.

    Each of ``calls``, cells of the netlist, has it from its stage on for ``initiation_interval`` cycles;
    its result is there ``latency_cycles`` after that stage. Counted modulo the plan's own interval, no two
    reservations meet.
    """

    name: str
    latency_cycles: int
    initiation_interval: int
    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule of one netlist. Tuples ``stage``, ``available`` and ``arrival_ps`` are indexed by cell id.

    ``arrival_ps``  when the cell's output has settled, counted from the clock edge that starts the stage
                    ``available``; the way to its readers is not included.
    ``lifetimes``   every run of bits that somebody reads, constants excepted, in order of (cell, low).
    ``delay_lines``  what stands in place of some of the registers of lifetimes.
    ``register_bits``  pipeline and output registers together, state registers and handshake not counted.
    ``critical_paths``  one path a stage, the longest; empty for a stage without logic.
    ``units``      the pace of every unit, in order of their first calls.
    ``reset_cycles``  after a reset, until memories hold their initial words and items are taken again.
    ``setup_ps``   what a register at the end of any stage needs on top of an arrival.
    """

    device: str
    interface: str
    clock_ps: int
    latency_cycles: int
    initiation_interval: int
    stage: tuple[int, ...]
    available: tuple[int, ...]
    arrival_ps: tuple[int, ...]
    state_write: tuple[int, ...]
    lifetimes: tuple[Lifetime, ...]
    register_bits: int
    setup_ps: int
    critical_paths: tuple[tuple[PathStep, ...], ...]
    estimate: Resources
    units: tuple[UnitPlan, ...] = ()
    recurrence: Recurrence | None = None
    reset_cycles: int = 0
    notes: tuple[str, ...] = ()
    delay_lines: tuple[DelayLine, ...] = ()

    def __repr__(self) -> str:
        pace = f"latency {self.latency_cycles}, interval {self.initiation_interval}"
        return f"<Plan for {self.device} at {self.clock_mhz:g} MHz: {pace}, {len(self.stage)} cells>"

    @property
    def clock_mhz(self) -> float:
        """The clock asked for."""
        return 1e6 / self.clock_ps

    def to_json(self) -> dict[str, Any]:
        """A plain JSON object that ``from_json`` reads back to an equal plan."""
        return {"format": "kera-plan-4", **asdict(self)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Plan:
        """The plan that ``to_json`` wrote. Raises ValueError or KeyError when it is none."""
        if data.get("format") != "kera-plan-4":
            raise ValueError("not a plan")
        loop = cast("Mapping[str, Any] | None", data["recurrence"])
        return Plan(
            device=data["device"],
            interface=data["interface"],
            clock_ps=data["clock_ps"],
            latency_cycles=data["latency_cycles"],
            initiation_interval=data["initiation_interval"],
            stage=tuple(data["stage"]),
            available=tuple(data["available"]),
            arrival_ps=tuple(data["arrival_ps"]),
            state_write=tuple(data["state_write"]),
            lifetimes=tuple(Lifetime(**item) for item in data["lifetimes"]),
            register_bits=data["register_bits"],
            setup_ps=data["setup_ps"],
            critical_paths=tuple(
                tuple(PathStep(**step) for step in path) for path in data["critical_paths"]
            ),
            estimate=Resources(**data["estimate"]),
            units=tuple(
                UnitPlan(
                    item["name"], item["latency_cycles"], item["initiation_interval"], tuple(item["calls"])
                )
                for item in data["units"]
            ),
            recurrence=None if loop is None else Recurrence(
                tuple(loop["cells"]), tuple(loop["states"]), loop["stages"],
            ),
            reset_cycles=data["reset_cycles"],
            notes=tuple(data["notes"]),
            delay_lines=tuple(
                DelayLine(line["stages"], tuple(DelayPart(**part) for part in line["parts"]))
                for line in data["delay_lines"]
            ),
        )

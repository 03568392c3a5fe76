"""What a caller may ask of a target, and what a target gives back: the words that all of them share.

Every option is checked here, whoever gives it: the command line, the Python interface or a script. An option
that cannot be used is a KeraError (K0908; K0605 for a device) that says what it takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NoReturn, Protocol, TypedDict

from kera_hw.driver.messages import shown
from kera_hw.schedule.fpga.device import device_names, find_device
from kera_hw.schedule.plan import Resources
from kera_hw.support import Diagnostic, KeraError


class GivenPlan(Protocol):
    """A plan to be made again (``plan_file.SavedPlan``)."""

    @property
    def options(self) -> TargetOptions:
        """What it was planned for."""
        ...


class Stepper(Protocol):
    """Runs one export item by item; what a stream keeps stays until ``reset``."""

    def step(self, inputs: Mapping[str, Any]) -> Any:
        """The result of one item, both with a leading axis of one. Raises KeraError as ``run`` does."""
        ...

    def reset(self) -> None:
        """Back to the state at first."""
        ...

    def close(self) -> None:
        """Gives back what it holds, such as a process."""
        ...


class Executor(Protocol):
    """Runs one export on batches: values by parameter name, leading axis = items (a stream's sequence)."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was decided: plain JSON data."""
        ...

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        """The results of ``batch`` items. Raises KeraError for unfit values or a tool's failure."""
        ...

    def stepper(self) -> Stepper:
        """The same item by item, from reset; whoever steps does not run the executor meanwhile."""
        ...


DEFAULT_DEVICE = "ecp5-85k"
INTERFACES = ("stream", "none", "axis", "axi-lite")
EMITTERS = ("text", "amaranth")
SIMULATORS = ("verilator", "icarus")
"""The first always runs; the second replays what it did."""
PRODUCTS = ("verilog", "bitstream")
"""What a build may stop at."""
CPU_TARGETS = ("cpu", "x86-64-sse2", "x86-64-avx2", "x86-64-avx512", "aarch64", "riscv64")
"""This processor's best level, and all levels by name."""
ISAS = CPU_TARGETS[1:]
"""What machine code is for, as `--isa` says it."""
AMD_TARGETS = ("amdgcn", "gfx90a", "gfx942")
"""AMD's GPUs, of which the first means the second, and its processors by name."""
GPU_TARGETS = ("ptx", *AMD_TARGETS)
SOFTWARE_PRODUCTS = (*CPU_TARGETS, *GPU_TARGETS, "wasm", "web")
"""Targets of software that are built, which take none of the options of hardware."""


@dataclass(frozen=True, slots=True)
class Count:
    """An option that is an integer from ``least`` to ``most``."""

    name: str
    unit: str
    least: int
    most: int
    example: int

    def check(self, value: object) -> int:
        """The value as a plain integer. Raises KeraError (K0908)."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            _refuse(self.name, self._takes, value)
        number = int(value)
        if not self.least <= number <= self.most:
            _refuse(self.name, self._takes, number)
        return number

    def check_given(self, value: object) -> int | None:
        """The same for an option that may be left out, which is None."""
        return None if value is None else self.check(value)

    @property
    def _takes(self) -> str:
        of_unit = f" of {self.unit}" if self.unit else ""
        return f"a whole number{of_unit} from {self.least:,} to {self.most:,}, such as {self.example}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An option that is a number with a unit, from ``least`` to ``most``."""

    name: str
    unit: str
    least: float
    most: float
    example: float

    def check(self, value: object) -> float:
        """The value as a plain number. Raises KeraError (K0908), also for NaN and infinities."""
        if isinstance(value, bool) or not isinstance(value, Real):
            _refuse(self.name, self._takes, value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not self.least <= number <= self.most:
            _refuse(self.name, self._takes, value)
        return number

    def check_given(self, value: object) -> float | None:
        """The same for an option that may be left out, which is None."""
        return None if value is None else self.check(value)

    @property
    def _takes(self) -> str:
        return f"a number of {self.unit} from {self.least:,g} to {self.most:,g}, such as {self.example:g}"


CLOCK_MHZ = Quantity("clock (`--clock`)", "MHz", 1, 1000, 150)
LATENCY = Count("latency (`--latency`)", "cycles", 1, 65_530, 12)
INTERVAL = Count("interval (`--ii`)", "cycles", 1, 1 << 24, 4)
"""The longest is that of a picture of 4,096 by 4,096 elements, one in a cycle."""
DSP = Count("limit of multipliers (`--dsp`)", "blocks", 0, 1_000_000, 8)
LUT = Count("limit of LUTs (`--lut`)", "LUTs", 1, 100_000_000, 2000)
BRAM = Count("limit of block RAMs (`--bram`)", "blocks", 0, 1_000_000, 8)
SITES = Count("limit of sites (`--sites`)", "sites", 1, 100_000_000, 2000)
UNITS = Count("number of units (`--units`)", "units", 1, 64, 4)
THREADS = Count("number of threads (`--threads`)", "threads", 1, 256, 4)
LANES = Count("number of lanes (`--lanes`)", "elements", 1, 65_530, 4)
PLACEMENT_SEED = Count("seed of placement (`--seed`)", "", 0, 2**31 - 1, 1)
VECTOR_SEED = Count("seed of items (`--seed`)", "", 0, 2**63 - 1, 1)
VECTORS = Count("number of items (`--vectors`)", "items", 1, 10_000_000, 1000)
FAULTS = Count("number of faults (`--mutate`)", "faults", 1, 100_000, 100)
BENCH_ITEMS = Count("number of items (`--items`)", "items", 1, 1 << 31, 1000)
BENCH_SECONDS = Quantity("time to measure (`--seconds`)", "seconds", 0.01, 3600, 1)
TIME_LIMIT_S = Quantity("time limit (`--time-limit`)", "seconds", 0.1, 1e6, 60)


def check_choice(name: str, value: object, known: tuple[str, ...]) -> str:
    """The word if it is one of ``known``. Raises KeraError (K0908)."""
    if not isinstance(value, str) or value not in known:
        _refuse(name, f"one of {', '.join(known)}", value)
    return value


def check_text(name: str, value: object) -> str:
    """The value if it is text. Raises KeraError (K0908)."""
    if not isinstance(value, str):
        _refuse(name, "text", value)
    return value


def check_device(value: object) -> str:
    """The name of a part, `fpga:` before it or not. Raises KeraError (K0605)."""
    name = value.removeprefix("fpga:") if isinstance(value, str) else ""
    if find_device(name) is None:
        known = ", ".join(device_names())
        raise KeraError([Diagnostic("K0605", f"There is no device {shown(value)}; there are: {known}.")])
    return name


_UNITS_MHZ = {"hz": 1e-6, "khz": 1e-3, "mhz": 1.0, "ghz": 1e3}
_FREQUENCY = re.compile(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*([kMG]?Hz)?\s*", re.IGNORECASE | re.ASCII)


def clock_of_text(text: str | None) -> float | None:
    """MHz from `150MHz`, `0.15GHz`, `150000kHz` or a bare number of MHz. Raises KeraError (K0908)."""
    if text is None:
        return None
    match = _FREQUENCY.fullmatch(text)
    if match is None:
        _refuse(CLOCK_MHZ.name, "a frequency from 1 to 1,000 MHz, such as 150MHz", text)
    return CLOCK_MHZ.check(float(match[1]) * _UNITS_MHZ[(match[2] or "MHz").lower()])


APART = frozenset({"plan", "threads"})
"""Options that say nothing of how a circuit is made: in no saved plan and no receipt."""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Requests to any target; a target ignores what it has no use for. Raises KeraError for what none takes.

    ``device`` is a part's name (`ecp5-85k`). None leaves a choice to the target: ``clock_mhz``, ``latency``
    and ``interval`` (cycles), ``dsp``, ``lut``, ``bram`` and ``sites`` (multiplier blocks, LUTs, block RAMs,
    pairs of LUT and flip-flop that may be used), ``units`` of a loop that ends by a condition, ``lanes``
    (elements a beat of a tensor that is a channel of its own), ``threads`` that machine code runs on.
    ``interface`` is one of INTERFACES: valid and ready, clock and data alone, or AXI4-Streams. ``emitter`` is
    one of EMITTERS: the way to Verilog. ``plan`` is made again instead of a search; the other options are its
    own.
    """

    device: str = DEFAULT_DEVICE
    clock_mhz: float | None = None
    latency: int | None = None
    interface: str = "stream"
    interval: int | None = None
    dsp: int | None = None
    emitter: str = "text"
    lanes: int | None = None
    lut: int | None = None
    bram: int | None = None
    sites: int | None = None
    units: int | None = None
    threads: int | None = None
    plan: GivenPlan | None = None

    def __post_init__(self) -> None:
        """Checks every field, and makes plain numbers of NumPy's. Raises KeraError (K0822) beside a plan."""
        checked = {
            "device": check_device(self.device),
            "clock_mhz": CLOCK_MHZ.check_given(self.clock_mhz),
            "latency": LATENCY.check_given(self.latency),
            "interface": check_choice("interface", self.interface, INTERFACES),
            "interval": INTERVAL.check_given(self.interval),
            "dsp": DSP.check_given(self.dsp),
            "emitter": check_choice("emitter", self.emitter, EMITTERS),
            "lanes": LANES.check_given(self.lanes),
            "lut": LUT.check_given(self.lut),
            "bram": BRAM.check_given(self.bram),
            "sites": SITES.check_given(self.sites),
            "units": UNITS.check_given(self.units),
        }
        object.__setattr__(self, "threads", THREADS.check_given(self.threads))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
            if self.plan is not None and value != (planned := getattr(self.plan.options, name)):
                message = f"The plan cannot be used: its {name.replace('_', ' ')} is {shown(planned)}, "
                raise KeraError([Diagnostic("K0822", f"{message}and {shown(value)} is asked for.")])


class Requests(TypedDict, total=False):
    """What a caller of the Python interface may ask for: ``TargetOptions``, each None where a target chooses.

    ``interval`` is the `--ii` of the command line, ``clock_mhz`` its `--clock` in MHz.
    """

    device: str | None
    clock_mhz: float | None
    latency: int | None
    interface: str | None
    interval: int | None
    dsp: int | None
    emitter: str | None
    lanes: int | None
    lut: int | None
    bram: int | None
    sites: int | None
    units: int | None
    threads: int | None


def exceeds(estimate: Resources, options: TargetOptions) -> str | None:
    """What an estimate has more of than was asked for, in words."""
    rows = (
        ("lut", "LUTs", estimate.lut), ("dsp", "DSP blocks", estimate.dsp),
        ("bram", "block RAMs", estimate.bram), ("sites", "sites", max(estimate.lut, estimate.ff)),
    )
    for name, what, needs in rows:
        limit = getattr(options, name)
        if limit is not None and needs > limit:
            return f"{needs:,} {what}, and {limit:,} may be used (`--{name}`)"
    return None


def _refuse(name: str, takes: str, value: object) -> NoReturn:
    raise KeraError([Diagnostic("K0908", f"The {name} is {takes}; {shown(value)} is not.")])

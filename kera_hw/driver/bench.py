"""Times of a user's own function on this machine, beside those of another that should do the same."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from kera_hw.driver.api import Function
from kera_hw.driver.options import BENCH_ITEMS, BENCH_SECONDS, VECTOR_SEED, TargetOptions
from kera_hw.driver.pace import rate_text
from kera_hw.driver.sampling import ordinary_value
from kera_hw.driver.session import identity
from kera_hw.driver.targets import make_executor
from kera_hw.driver.values import Array, read_some_inputs
from kera_hw.graph import Export, Graph
from kera_hw.interp import flatten_value
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import leaf_types

SAMPLE_S = 0.005
"""What one sample lasts at least: many calls where one is quicker, since clocks and loops take time too."""
LEAST_SAMPLES, MOST_SAMPLES = 5, 10_000
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds a call; ``spread`` is the distance of the quartiles in parts of the median."""

    minimum_s: float
    median_s: float
    spread: float
    samples: int
    calls_per_sample: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How another function's result compares, bit for bit; ``what`` says where it cannot be compared."""

    equal: bool
    differing: int
    elements: int
    largest_difference: float | None
    what: str = ""

    def text(self) -> str:
        if self.what:
            return self.what
        if self.equal:
            return f"the same bits in all {self.elements:,} elements"
        by = "" if self.largest_difference is None else f", by {self.largest_difference:.3g} at most"
        return f"other bits in {self.differing:,} of {self.elements:,} elements{by}"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a benchmark found, and of what, where and how."""

    function: str
    target: str
    identity: Mapping[str, str]
    items: int | None
    bytes_a_call: int
    prepare_s: float
    times: Times
    against: str | None
    other: Times | None
    agreement: Agreement | None
    plan: Mapping[str, Any]
    machine: Mapping[str, Any]
    flags: Mapping[str, Any]

    def text(self) -> str:
        """A table for people."""
        rows = [(self.target, self.times), *([(self.against or "", self.other)] if self.other else [])]
        width = max(len("target"), *(len(name) for name, _ in rows))
        lines = [f"{'target':{width}}  {'minimum':>10}  {'median':>10}  spread  {self._rate_of}"]
        for name, times in rows:
            low, median = _seconds(times.minimum_s), _seconds(times.median_s)
            spread = f"{100 * times.spread:5.1f}%"
            lines.append(f"{name:{width}}  {low:>10}  {median:>10}  {spread}  {self._rate(times)}")
        if self.other is not None and self.agreement is not None:
            ratio = self.other.median_s / self.times.median_s
            lines.append(f"{self.against}: {ratio:.2f} times that of {self.target}; {self.agreement.text()}")
        isa = f", {self.plan['isa']}" if "isa" in self.plan else ""
        lines += [
            f"prepared in {_seconds(self.prepare_s)}; {self.times.samples} samples, "
            f"each of calls: {self.times.calls_per_sample}",
            f"on {self.machine['cpu']}{isa}; kera {self.machine['kera']}, NumPy {self.machine['numpy']}, "
            f"Python {self.machine['python']}",
            self.identity["fingerprint"],
        ]
        return "\n".join(lines)

    @property
    def _rate_of(self) -> str:
        return "a call" if self.items is None else f"{self.items:,} items a call"

    def _rate(self, times: Times) -> str:
        rate = (self.items or 1) / times.median_s
        what = "calls" if self.items is None else "items"
        return f"{rate_text(rate, what)}, {rate_text(self.bytes_a_call / times.median_s, 'B')}"

    def to_json(self) -> dict[str, Any]:
        count = self.items or 1
        return {
            "function": self.function, "target": self.target, **self.identity, "items": self.items,
            "bytes_a_call": self.bytes_a_call, "prepare_s": self.prepare_s, **asdict(self.times),
            "items_per_s": count / self.times.median_s, "against": self.against,
            "other": None if self.other is None else asdict(self.other),
            "agreement": None if self.agreement is None else asdict(self.agreement),
            "plan": dict(self.plan), "machine": dict(self.machine), "flags": dict(self.flags),
        }  # fmt: skip


def bench_export(
    graph: Graph, export: Export, target: str, options: TargetOptions, *, items: int | None = None,
    seconds: float = 1.0, against: str | None = None, inputs: Sequence[str] = (), seed: int = 1,
    step: Report = lambda _: None,
) -> Figures:
    """Measures calls of an export, of one item or of a batch of ``items``; and of ``against``, alike.

    Values that ``inputs`` does not give are ordinary ones. Raises KeraError.
    """
    items = BENCH_ITEMS.check_given(items)
    seconds = BENCH_SECONDS.check(seconds)
    rng = np.random.default_rng(VECTOR_SEED.check(seed))
    other = None if against is None else _imported(against)
    step("preparing")
    start = time.perf_counter()
    function = Function(export, make_executor(graph, export, target, options))
    prepare_s = time.perf_counter() - start
    values = _values(export, items, inputs, rng)
    call = function if items is None else function.batch
    result = call(**values)
    step(f"measuring {target}")
    times = measure(lambda: call(**values), seconds)
    theirs, agreement = None, None
    if other is not None:
        step(f"measuring {against}")
        given = list(values.values())
        theirs, agreement = _compared(other, against or "", given, seconds, export, result, items)
    flags = {"target": target, "items": items, "seconds": seconds, "seed": seed, "inputs": list(inputs)}
    moved = sum(leaf.nbytes for leaf in _leaves(export, values, result, items))
    return Figures(
        export.name, target, identity(graph, export), items, moved, prepare_s, times, against, theirs,
        agreement, function.plan, machine(), flags,
    )


def measure(call: Callable[[], Any], seconds: float) -> Times:
    """Samples of a call for about so long, at least a few; the collector of garbage rests meanwhile."""
    calls = 1
    with _no_garbage():
        while (once := _sample(call, calls)) * calls < SAMPLE_S:
            calls = max(2 * calls, min(int(1.2 * SAMPLE_S / max(once, 1e-9)), 100 * calls))
        found: list[float] = []
        end = time.perf_counter() + seconds
        while len(found) < LEAST_SAMPLES or (time.perf_counter() < end and len(found) < MOST_SAMPLES):
            found.append(_sample(call, calls))
    low, median, high = statistics.quantiles(found, n=4)
    return Times(min(found), median, (high - low) / median, len(found), calls)


def _sample(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


@contextmanager
def _no_garbage() -> Generator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _values(
    export: Export, items: int | None, inputs: Sequence[str], rng: np.random.Generator
) -> dict[str, Any]:
    """The user's values by parameter, and ordinary ones for the rest."""
    given = read_some_inputs(export, inputs)
    found: dict[str, Any] = {}
    for name, kind in export.params:
        made = ordinary_value(kind, 1 if items is None else items, rng)
        found[name] = given.get(name, _first(made) if items is None else made)
    return found


def _first(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _first(item) for name, item in cast("Mapping[str, Any]", value).items()}
    return tuple(map(_first, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else value[0]


def _leaves(export: Export, values: Mapping[str, Any], result: Any, items: int | None) -> list[Array]:
    found = [leaf for name, kind in export.params for leaf in flatten_value(kind, values[name], items, name)]
    return [*found, *flatten_value(export.result, result, items, "the result")]


# ---------------------------------------------------------------- another function


def _imported(name: str) -> Callable[..., Any]:
    """`module:function`, or `file.py:function`. Raises KeraError (K0925)."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise _unusable(f"`{name}` is not of the form module:function.")
    try:
        found: Any = _module(place)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise _unusable(f"`{place}` has no `{attribute}`.") from None
    except Exception as fault:
        raise _unusable(f"`{place}` cannot be imported: {type(fault).__name__}: {fault}.") from None
    if not callable(found):
        raise _unusable(f"`{name}` is a {type(found).__name__}, which cannot be called.")
    return found


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # as `python -m` has it
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _unusable(message: str) -> KeraError:
    return KeraError([Diagnostic("K0925", message)])


def _compared(
    other: Callable[..., Any], name: str, values: Sequence[Any], seconds: float, export: Export, result: Any,
    items: int | None,
) -> tuple[Times, Agreement]:
    try:
        with np.errstate(all="ignore"):
            found = other(*values)
            times = measure(lambda: other(*values), seconds)
    except Exception as fault:
        raise _unusable(f"`{name}` failed: {type(fault).__name__}: {fault}.") from None
    return times, compared(export, result, found, items)


def compared(export: Export, result: Any, other: Any, items: int | None) -> Agreement:
    """How another result of the export's type, or whatever it is, compares with ours."""
    ours = flatten_value(export.result, result, items, "the result")
    count = sum(leaf.size for leaf in ours)
    theirs: list[Array]
    if len(leaf_types(export.result)) == 1:
        theirs = [np.asarray(other)]
    else:
        try:
            theirs = list(flatten_value(export.result, other, items, "the result"))
        except KeraError as fault:
            return Agreement(False, count, count, None, f"not comparable: {fault.diagnostics[0].message}")
    differing, largest = 0, 0.0
    for mine, its in zip(ours, theirs):
        if items is None and its.shape == mine.shape[1:]:
            its = its[np.newaxis]
        if its.shape != mine.shape:
            text = f"not comparable: it gives an array of shape {its.shape}, and this {mine.shape}"
            return Agreement(False, count, count, None, text)
        if its.dtype != mine.dtype:
            text = f"not comparable bit for bit: it gives {its.dtype}, and this {mine.dtype}"
            return Agreement(False, count, count, _distance(mine, its, np.ones(mine.shape, np.bool_)), text)
        other_bits = _bits(mine) != _bits(its)
        differing += int(other_bits.sum())
        largest = max(largest, _distance(mine, its, other_bits))
    return Agreement(differing == 0, differing, count, largest if differing else None)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _distance(mine: Array, its: Array, where: Array) -> float:
    """The largest difference among elements; infinite where only one of two is a number."""
    with np.errstate(all="ignore"):
        a, b = mine[where].astype(np.float64), its[where].astype(np.float64)
        gaps = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return float(np.where(np.isnan(gaps), np.inf, gaps).max(initial=0.0))


# ---------------------------------------------------------------- the machine


def machine() -> dict[str, Any]:
    """What figures depend on beside the program."""
    from kera_hw import __version__

    return {
        "cpu": _cpu_model(), "architecture": platform.machine(), "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2), "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(), "numpy": np.__version__, "kera": __version__,
    }  # fmt: skip


def _cpu_model() -> str:
    """The processor's name as Linux has it; elsewhere what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for wanted in ("model name", "uarch", "CPU part", "Model"):
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == wanted and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()


def _seconds(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"

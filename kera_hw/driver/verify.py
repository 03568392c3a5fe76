"""Comparing targets bit for bit, and finding the smallest input on which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kera_hw.driver.options import Executor, TargetOptions
from kera_hw.driver.targets import make_executor
from kera_hw.driver.values import Array, flatten_named, map_leaves, random_value, read_inputs, to_bits
from kera_hw.graph import Export, Graph
from kera_hw.interp import flatten_value
from kera_hw.types import bit_width, element_type, flatten_type


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The smallest failing case found: item number, the inputs up to it, and both bit patterns of one leaf."""

    target: str
    item: int
    leaf: str
    element: tuple[int, ...]
    inputs: Mapping[str, Any]
    expected_bits: str
    actual_bits: str

    def text(self) -> str:
        shown = "\n".join(
            f"    {name} = {np.array2string(array, threshold=64)}"
            for name, array in flatten_named(self.inputs)
        )
        place = f"{self.leaf}{list(self.element) if self.element else ''}"
        return (
            f"{self.target} differs at item {self.item}, {place}:\n"
            f"    expected {self.expected_bits}\n    actual   {self.actual_bits}\n  with\n{shown}"
        )


@dataclass(frozen=True, slots=True)
class VerifyReport:
    fingerprint: str
    function: str
    targets: tuple[str, ...]
    items: int
    bits_per_target: int
    plans: Mapping[str, Mapping[str, Any]]
    mismatches: tuple[Mismatch, ...]

    @property
    def equal(self) -> bool:
        return not self.mismatches

    def text(self) -> str:
        """For people: what was compared, cycles and resources, the first difference of each target."""
        reference, *others = self.targets
        lines = [
            f"{self.function}: {self.items} items, {self.bits_per_target} bits each target",
            f"  {self.fingerprint}",
        ]
        for target in others:
            plan = self.plans[target]
            failed = next((m for m in self.mismatches if m.target == target), None)
            verdict = "DIFFERS" if failed else f"equal to {reference}, 0 differing bits"
            lines.append(f"  {target}: {verdict}{_facts(plan)}")
            if failed:
                lines.append("  " + failed.text())
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "fingerprint": self.fingerprint,
            "function": self.function,
            "targets": self.targets,
            "items": self.items,
            "bits_compared": self.bits_per_target,
            "plans": {name: dict(plan) for name, plan in self.plans.items()},
            "mismatches": [
                {
                    "target": m.target,
                    "item": m.item,
                    "leaf": m.leaf,
                    "element": m.element,
                    "inputs": dict(flatten_named(m.inputs)),
                    "expected": m.expected_bits,
                    "actual": m.actual_bits,
                }
                for m in self.mismatches
            ],
        }


def _facts(plan: Mapping[str, Any]) -> str:
    if "latency_cycles" not in plan:
        return ""
    estimate = plan.get("estimate", {})
    cost = ", ".join(
        f"{estimate[key]} {key.upper()}" for key in ("lut", "ff", "dsp", "bram") if key in estimate
    )
    return f"; latency {plan['latency_cycles']} cycles, II {plan['initiation_interval']} as predicted; {cost}"


def verify_export(
    graph: Graph,
    export: Export,
    targets: Sequence[str],
    vectors: int,
    seed: int,
    given: Sequence[str],
    options: TargetOptions,
) -> VerifyReport:
    """Runs every target on the same items and compares all result bits with the first target's."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, Any] = {name: random_value(kind, vectors, rng) for name, kind in export.params}
    batch = vectors
    if given:
        own = read_inputs(export, given, True)
        inputs, batch = _append(export, inputs, own, vectors)
    executors = {name: make_executor(graph, export, name, options) for name in targets}
    reference, *others = targets
    expected = executors[reference].run(inputs, batch)
    mismatches: list[Mismatch] = []
    for name in others:
        found = _first_difference(export, expected, executors[name].run(inputs, batch))
        if found is not None:
            mismatches.append(_minimise(export, name, executors[reference], executors[name], inputs, found))
    return VerifyReport(
        graph.fingerprint,
        export.name,
        tuple(targets),
        batch,
        batch * bit_width(export.result),
        {name: executor.plan for name, executor in executors.items()},
        tuple(mismatches),
    )


def _append(
    export: Export, random: dict[str, Any], own: Mapping[str, Any], vectors: int
) -> tuple[dict[str, Any], int]:
    """The user's items first, then the random ones."""
    count = len(next(iter(flatten_named(own)))[1])
    joined: dict[str, Any] = {}
    for name, kind in export.params:
        rows = iter(flatten_value(kind, own[name], count))
        joined[name] = map_leaves(random[name], lambda tail, rows=rows: np.concatenate([next(rows), tail]))
    return joined, count + vectors


@dataclass(frozen=True, slots=True)
class _Difference:
    item: int
    leaf: str
    element: tuple[int, ...]
    expected: str
    actual: str


def _first_difference(export: Export, expected: Any, actual: Any) -> _Difference | None:
    """The first item at which any leaf differs in a bit."""
    found: _Difference | None = None
    names = [".".join(leaf.path) or "result" for leaf in flatten_type(export.result)]
    kinds = [leaf.type for leaf in flatten_type(export.result)]
    batch = len(next(flatten_named(expected))[1]) if kinds else 0
    pairs = zip(
        names,
        kinds,
        flatten_value(export.result, expected, batch),
        flatten_value(export.result, actual, batch),
        strict=True,
    )
    for name, kind, left, right in pairs:
        scalar = element_type(kind)
        a, b = to_bits(scalar, left), to_bits(scalar, right)
        where = np.argwhere(a != b)
        if len(where) and (found is None or where[0][0] < found.item):
            place = tuple(int(i) for i in where[0])
            digits = bit_width(scalar)
            found = _Difference(
                place[0], name, place[1:], f"0b{int(a[place]):0{digits}b}", f"0b{int(b[place]):0{digits}b}"
            )
    return found


def _minimise(
    export: Export,
    target: str,
    reference: Executor,
    executor: Executor,
    inputs: Mapping[str, Any],
    found: _Difference,
) -> Mismatch:
    """Shrinks the failing case: for a fn the one item, bits cleared while it still fails; for a stream the
    shortest suffix of the sequence that fails from reset."""

    def failing(candidate: Mapping[str, Any], count: int) -> _Difference | None:
        return _first_difference(export, reference.run(candidate, count), executor.run(candidate, count))

    if export.kind == "fn":
        best = _slice(inputs, found.item, found.item + 1)
    else:
        best = _slice(inputs, 0, found.item + 1)
        start = found.item
        while start > 0:
            candidate = _slice(inputs, start, found.item + 1)
            if failing(candidate, found.item + 1 - start) is not None:
                best = candidate
                break
            start //= 2
    count = len(next(flatten_named(best))[1]) if export.params else 1
    best = _clear_bits(best, lambda candidate: failing(candidate, count) is not None)
    final = failing(best, count) or found
    return Mismatch(target, final.item, final.leaf, final.element, best, final.expected, final.actual)


def _slice(inputs: Mapping[str, Any], low: int, high: int) -> dict[str, Any]:
    return {name: map_leaves(value, lambda a: a[low:high]) for name, value in inputs.items()}


# Enough to shrink a scalar function fully and a tensor one mostly; each trial runs both targets.
_MAX_TRIALS = 200


def _clear_bits(inputs: dict[str, Any], still_fails: Any) -> dict[str, Any]:
    """Greedy: zero whole leaves, then single elements, as long as the difference stays."""
    trials = 0
    leaves: list[Array] = []
    inputs = {
        name: map_leaves(value, lambda a: leaves.append(a.copy()) or leaves[-1])
        for name, value in inputs.items()
    }
    for array in leaves:
        flat = array.reshape(-1)
        for part in (slice(None), *(slice(i, i + 1) for i in range(flat.size))):
            if trials >= _MAX_TRIALS or not np.any(flat[part]):
                continue
            kept = flat[part].copy()
            flat[part] = 0
            trials += 1
            if not still_fails(inputs):
                flat[part] = kept
    return inputs

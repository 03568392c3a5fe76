"""The first difference of two results, and the smallest input that still shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kera_hw.driver.options import Executor
from kera_hw.driver.sampling import map_leaves, to_bits
from kera_hw.driver.values import Array, flatten_named, show_array
from kera_hw.graph import Export
from kera_hw.interp import flatten_value
from kera_hw.types import bit_width, element_type, flatten_type


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The smallest failing case: item number, the inputs up to it, both bit patterns of one leaf."""

    target: str
    item: int
    leaf: str
    element: tuple[int, ...]
    inputs: Mapping[str, Any]
    expected_bits: str
    actual_bits: str

    def text(self) -> str:
        shown = "\n".join(
            f"    {name} = {show_array(array)}"
            for name, array in flatten_named(self.inputs)
        )
        place = f"{self.leaf}{list(self.element) if self.element else ''}"
        return (
            f"{self.target} differs at item {self.item}, {place}:\n"
            f"    expected {self.expected_bits}\n    actual   {self.actual_bits}\n  with\n{shown}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON object."""
        return {
            "target": self.target,
            "item": self.item,
            "leaf": self.leaf,
            "element": self.element,
            "inputs": dict(flatten_named(self.inputs)),
            "expected": self.expected_bits,
            "actual": self.actual_bits,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """The first item at which two results differ, and one leaf of it."""

    item: int
    leaf: str
    element: tuple[int, ...]
    expected: str
    actual: str


def first_difference(export: Export, expected: Any, actual: Any, batch: int) -> Difference | None:
    """The first item at which any leaf differs in a bit."""
    found: Difference | None = None
    leaves = flatten_type(export.result)
    left_leaves = flatten_value(export.result, expected, batch)
    right_leaves = flatten_value(export.result, actual, batch)
    for leaf, left, right in zip(leaves, left_leaves, right_leaves, strict=True):
        scalar = element_type(leaf.type)
        a, b = to_bits(scalar, left), to_bits(scalar, right)
        where = np.argwhere(a != b)
        if len(where) and (found is None or where[0][0] < found.item):
            place = tuple(int(i) for i in where[0])
            digits = bit_width(scalar)
            patterns = (f"0b{int(bits[place]):0{digits}b}" for bits in (a, b))
            found = Difference(place[0], ".".join(leaf.path) or "result", place[1:], *patterns)
    return found


def minimise(
    export: Export,
    target: str,
    reference: Executor,
    executor: Executor,
    inputs: Mapping[str, Any],
    batch: int,
    found: Difference,
) -> Mismatch:
    """Shrinks a failing case: a fn's to the one item, a stream's to a short sequence that fails from reset;
    then zeroes what it can and clears bits while the difference stays."""

    def failing(candidate: Mapping[str, Any], count: int) -> Difference | None:
        expected, actual = reference.run(candidate, count), executor.run(candidate, count)
        return first_difference(export, expected, actual, count)

    last = found.item + 1
    best, count = _slice(inputs, 0, last), last
    starts = (found.item,) if export.kind == "fn" else _suffixes(found.item)
    for start in starts:
        candidate = _slice(inputs, start, last)
        if failing(candidate, last - start) is not None:
            best, count = candidate, last - start
            break
    best = _shrink_values(best, lambda candidate: failing(candidate, count) is not None)
    final = failing(best, count) or found
    return Mismatch(target, final.item, final.leaf, final.element, best, final.expected, final.actual)


def _suffixes(item: int) -> list[int]:
    """Where a suffix that ends at ``item`` may begin, shortest first: lengths 1, 2, 4, ..."""
    lengths = [1 << k for k in range((item + 1).bit_length())]
    return [item + 1 - length for length in lengths if length <= item + 1]


def _slice(inputs: Mapping[str, Any], low: int, high: int) -> dict[str, Any]:
    return {name: map_leaves(value, lambda a: a[low:high]) for name, value in inputs.items()}


# Enough to shrink a scalar function fully and a tensor one mostly; each trial runs both targets.
_MAX_TRIALS = 200


def _shrink_values(
    inputs: dict[str, Any], still_fails: Callable[[Mapping[str, Any]], bool]
) -> dict[str, Any]:
    """Greedy: zero whole leaves, then elements, then single bits, as long as the difference stays."""
    leaves: list[Array] = []

    def copied(array: Array) -> Array:
        leaves.append(array.copy())
        return leaves[-1]

    inputs = {name: map_leaves(value, copied) for name, value in inputs.items()}
    trials = 0

    def attempt(flat: Array, part: slice, value: Any) -> None:
        nonlocal trials
        if trials >= _MAX_TRIALS or np.array_equal(flat[part], np.broadcast_to(value, flat[part].shape)):
            return
        kept = flat[part].copy()
        flat[part] = value
        trials += 1
        if not still_fails(inputs):
            flat[part] = kept

    # A float shrinks as its bit pattern: fewer ones is simpler, and a NaN's payload is nobody's business.
    numbers = [_words(array).reshape(-1) for array in leaves]
    for flat in numbers:
        attempt(flat, slice(None), 0)
    for flat in numbers:
        for index in np.flatnonzero(flat).tolist():
            attempt(flat, slice(index, index + 1), 0)
    for flat in numbers:
        for index in np.flatnonzero(flat).tolist() if flat.dtype.kind in "iu" else ():
            for position in reversed(range(8 * flat.dtype.itemsize)):
                attempt(flat, slice(index, index + 1), _without_bit(int(flat[index]), position))
    return inputs


def _words(array: Array) -> Array:
    """The same memory; floats as unsigned integers."""
    return array if array.dtype.kind in "iub" else array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _without_bit(value: int, position: int) -> int:
    """The number with one bit cleared; of a negative one its complement's, so that it moves towards -1."""
    mask = ~(1 << position)
    return ~(~value & mask) if value < 0 else value & mask

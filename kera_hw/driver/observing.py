"""What a run shows beside its results: failed assertions, points reached, lines printed; on any target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, cast

import numpy as np

from kera_hw.driver.options import TargetOptions
from kera_hw.driver.sampling import map_leaves
from kera_hw.driver.targets import make_executor
from kera_hw.driver.values import Array, flatten_named, show_array
from kera_hw.frontend.sema.constants.printed import read_record
from kera_hw.graph import Export, Graph, Node, Origin, only_probes, probes_of
from kera_hw.support import Diagnostic, Severity, SourceFile
from kera_hw.types import Type

_MOST_LINES = 1000


@dataclass(frozen=True, slots=True)
class Point:
    """An assertion (and the items for which it failed) or a cover point (and the items that reached it)."""

    kind: str
    label: str
    origin: Origin | None
    items: tuple[int, ...]

    @property
    def place(self) -> str:
        where = f"line {self.origin.line}" if self.origin is not None else "an unknown line"
        return f"`{self.label}` ({where})" if self.label else where

    def to_json(self) -> dict[str, Any]:
        key = "failures" if self.kind == "assert" else "hits"
        line = self.origin.line if self.origin is not None else None
        first = self.items[0] if self.items else None
        return {"label": self.label, "line": line, key: len(self.items), "first_item": first}


@dataclass(frozen=True, slots=True)
class Observed:
    """The observations of a run; ``printed`` are (item, line) in order."""

    points: tuple[Point, ...] = ()
    printed: tuple[tuple[int, str], ...] = ()

    @property
    def failed(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.kind == "assert" and point.items)

    @property
    def covers(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.kind == "cover")

    def lines(self, numbered: bool) -> list[str]:
        """What was printed, for people, each line with its item where there are several."""
        shown = [f"item {item}: {line}" if numbered else line for item, line in self.printed[:_MOST_LINES]]
        missing = len(self.printed) - len(shown)
        return [*shown, *([f"... and {missing} lines more"] if missing else [])]

    def cover_lines(self) -> list[str]:
        return [f"  cover {point.place}: {_times(len(point.items))}" for point in self.covers]

    def to_json(self) -> dict[str, Any]:
        return {
            "printed": [{"item": item, "line": line} for item, line in self.printed],
            "assertions": [point.to_json() for point in self.points if point.kind == "assert"],
            "covers": [point.to_json() for point in self.covers],
        }

    def faults(
        self, export: Export, inputs: Mapping[str, Any], files: Mapping[str, SourceFile]
    ) -> list[Diagnostic]:
        """A K0921 for each assertion that failed, by its first item; ``inputs`` have an axis of items."""
        return [self._fault(export, point, inputs, files) for point in self.failed]

    def _fault(
        self, export: Export, point: Point, inputs: Mapping[str, Any], files: Mapping[str, SourceFile]
    ) -> Diagnostic:
        item, more = point.items[0], len(point.items) - 1
        what = f"The assertion `{point.label}`" if point.label else "An assertion"
        others = f" and {more} more" if more else ""
        message = f"{what} of `{export.name}` fails for item {item}{others}."
        shown = map_leaves({name: inputs[name] for name, _ in export.params}, lambda leaf: leaf[item])
        notes = tuple(f"{name} = {show_array(array)}" for name, array in flatten_named(shown))
        if export.state:
            notes += ("The state is that which the items before it left.",)
        return Diagnostic("K0921", message, *_source(point, files), notes=notes)

    def differences(self, other: Observed, name: str, other_name: str) -> tuple[str, ...]:
        """In words, where another target observes something else: a line for each point, one for prints."""
        found: list[str] = []
        for one, two in zip(self.points, other.points, strict=True):
            apart = sorted(set(one.items) ^ set(two.items))
            if apart:
                where, elsewhere = (name, other_name) if apart[0] in one.items else (other_name, name)
                what = "fails for" if one.kind == "assert" else "is reached by"
                counts = f"{len(one.items)} on {name}, {len(two.items)} on {other_name}"
                found.append(f"{one.kind} {one.place} {what} item {apart[0]} on {where}, not on {elsewhere} "
                             f"(items: {counts})")
        for one, two in zip_longest(self.printed, other.printed):
            if one != two:
                shown = [f"item {row[0]}: {row[1]}" if row is not None else "nothing" for row in (one, two)]
                found.append(f"printed on {name}: {shown[0]}; on {other_name}: {shown[1]}")
                break
        return tuple(found)

    def never(self, export: Export, files: Mapping[str, SourceFile]) -> list[Diagnostic]:
        """A warning (K0922) for each point that no item reached."""
        found: list[Diagnostic] = []
        for point in self.covers:
            if not point.items:
                what = f"the point `{point.label}`" if point.label else "a point"
                message = f"No item reached {what} of `{export.name}`."
                place = _source(point, files)
                found.append(Diagnostic("K0922", message, *place, severity=Severity.WARNING))
        return found


def _source(point: Point, files: Mapping[str, SourceFile]) -> tuple[Any, Any]:
    file = files.get(point.origin.path) if point.origin is not None else None
    return (None, None) if file is None or point.origin is None else (file, point.origin.span)


def _times(count: int) -> str:
    return "never" if not count else "1 item" if count == 1 else f"{count} items"


def observe(
    graph: Graph, export: Export, target: str, options: TargetOptions, inputs: Mapping[str, Any], batch: int
) -> Observed:
    """Runs the observations of an export on a target: a circuit of their own beside that of the results.

    Raises KeraError where the target refuses them.
    """
    if not probes_of(export):
        return Observed()
    # The circuit of the observations only has to keep up; nothing is asked of its clock or its size.
    wanted = TargetOptions(options.device)
    executor = make_executor(graph, only_probes(export), target, wanted)
    leaves = [np.asarray(leaf) for leaf in cast("tuple[Array, ...]", executor.run(inputs, batch))]
    return read_observations(graph, export, leaves)


def read_observations(graph: Graph, export: Export, leaves: Sequence[Array]) -> Observed:
    """The observations from their leaves in order, each with an axis of items."""
    points: list[Point] = []
    printed: list[tuple[int, str]] = []
    rest = list(leaves)
    for node in probes_of(export):
        given, rest = rest[: len(node.types)], rest[len(node.types):]
        if node.opcode == "effect.print":
            labels = cast("tuple[str, ...]", node.attr("labels"))
            types = cast("tuple[tuple[Type, ...], ...]", node.attr("types"))
            printed += read_record(labels, types, *given)
        else:
            points.append(_point(graph, node, given[0]))
    return Observed(tuple(points), tuple(printed))


def _point(graph: Graph, node: Node, flags: Array) -> Point:
    kind = node.opcode.removeprefix("effect.")
    items = tuple(np.flatnonzero(flags).tolist())
    return Point(kind, cast(str, node.attr("label")), graph.origins.get(node), items)

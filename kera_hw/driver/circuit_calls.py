"""In-file tests against a circuit: calls of exports that a test makes are run on an executor.

A test has no parameters, so each call in its own body, outside loops, branches and other functions, has
arguments that are known once those before it have run. Such calls go to the target; all else, the assertions
too, is evaluated by the interpreter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from kera_hw.driver.options import Executor, TargetOptions
from kera_hw.driver.targets import make_executor
from kera_hw.frontend.sema.constants.run import run_closed
from kera_hw.frontend.sema.testing import LoweredTest
from kera_hw.graph import (
    Export,
    Graph,
    Node,
    Origin,
    Ref,
    Region,
    Store,
    only_probes,
    probes_of,
    regions_in_order,
    regions_of,
    unmarked,
)
from kera_hw.interp import flatten_value, unflatten_value
from kera_hw.ops.spec import Array
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import leaf_types

_INSIDE = "in a loop, a branch or another function"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an export that a test makes; ``reason`` says why it was not run on the target."""

    function: str
    line: int | None
    reason: str | None = None

    def __str__(self) -> str:
        place = f" (line {self.line})" if self.line is not None else ""
        return f"{self.function}{place}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class _OnTarget:
    """An export on the target, and its observations there where it has any."""

    results: Executor
    observations: tuple[Export, Executor] | None


@dataclass(frozen=True, slots=True)
class _Site:
    """A node that calls an export, and for how many items: one, or those of a stream from reset."""

    export: Export
    items: int | None
    hidden: int  # outputs before those of the export: a scan's last state


class CircuitCalls:
    """Evaluates tests of one program with its exports on ``target``; ``calls`` are kept by test."""

    def __init__(self, graph: Graph, target: str, options: TargetOptions) -> None:
        self.calls: dict[str, list[Call]] = {}
        self._noted: list[Call] = []
        self._graph, self._target, self._options = graph, target, options
        self._exports = {unmarked(item.region).hash: item for item in reversed(graph.exports)}
        self._executors: dict[str, _OnTarget | Diagnostic] = {}

    def evaluate(self, test: LoweredTest) -> Sequence[Array]:
        """The results of the test's region. Raises KeraError where a tool is missing or a run fails."""
        self.calls[test.name] = self._noted = []
        nodes = test.region.nodes()
        uses = Counter(ref for node in nodes for ref in node.inputs)
        uses.update(test.region.results)
        store, known = Store(), dict[Node, tuple[Ref, ...]]()
        for node in nodes:
            inputs = [known[ref.node][ref.index] for ref in node.inputs]
            site = self._site(node)
            executor = None
            if site is not None and not any(uses[node.out(k)] for k in range(site.hidden)):
                executor = self._executor(site.export, test.origins.get(node))
            if site is None or executor is None:
                made = store.node(node.opcode, inputs, dict(node.attrs))
                known[node] = tuple(made.out(index) for index in range(len(made.types)))
                self._noted += self._inside(node, test) if site is None else ()
                continue
            given = run_closed(store.region((), inputs[site.hidden:]))
            results = _run(site, executor, given)
            # A scan's last state has no reader: any value stands in for it.
            states = tuple(known[ref.node][ref.index] for ref in node.inputs[: site.hidden])
            kinds = node.types[site.hidden:]
            known[node] = (*states, *map(store.constant, kinds, results))
        return run_closed(store.region((), [known[ref.node][ref.index] for ref in test.region.results]))

    def _executor(self, export: Export, origin: Origin | None) -> _OnTarget | None:
        """The export on the target, made once; None where the target refuses it. Notes the call."""
        if export.name not in self._executors:
            try:
                made = self._on_target(export)
            except KeraError as fault:
                if any(item.code.startswith("K09") for item in fault.diagnostics):
                    raise
                made = fault.diagnostics[0]
            self._executors[export.name] = made
        found = self._executors[export.name]
        refused = isinstance(found, Diagnostic)
        self._noted.append(Call(export.name, origin and origin.line, found.message if refused else None))
        return None if isinstance(found, Diagnostic) else found

    def _on_target(self, export: Export) -> _OnTarget:
        executor = make_executor(self._graph, export, self._target, self._options)
        if not probes_of(export):
            return _OnTarget(executor, None)
        observing = only_probes(export)
        options = TargetOptions(self._options.device)
        return _OnTarget(executor, (observing, make_executor(self._graph, observing, self._target, options)))

    def _site(self, node: Node) -> _Site | None:
        if node.opcode == "control.call":
            export = self._exports.get(cast(Region, node.attr("region")).hash)
            if export is None or export.kind != "fn" or len(node.types) != _outputs(export):
                return None
            return _Site(export, None, 0)
        return self._stream_site(node) if node.opcode == "control.scan" else None

    def _stream_site(self, node: Node) -> _Site | None:
        """A stream over its items from reset, as the front end writes it: a scan whose body is the call."""
        region, carried = cast(Region, node.attr("region")), cast(int, node.attr("carried"))
        body = [inner for inner in region.nodes() if inner.opcode != "core.param"]
        if len(body) != 1 or body[0].opcode != "control.call":
            return None
        call, rows = body[0], len(node.inputs) - carried
        export = self._exports.get(cast(Region, call.attr("region")).hash)
        if export is None or export.kind != "stream" or node.attr("items") != rows:
            return None
        initial = [ref.node.hash for ref in node.inputs[:carried]]
        params = [ref.node.attr("index") for ref in call.inputs if ref.node.opcode == "core.param"]
        count, total = len(leaf_types(export.result)), len(call.types)
        order = (*range(count, count + carried), *range(count), *range(count + carried, total))
        wired = (
            initial == [var.initial.node.hash for var in export.state]
            and params == [*range(carried, carried + rows), *range(carried)]
            and list(region.results) == [call.out(k) for k in order] and total == carried + _outputs(export)
        )
        return _Site(export, cast(int, node.attr("length")), carried) if wired else None

    def _inside(self, node: Node, test: LoweredTest) -> Iterator[Call]:
        """Calls of exports in the regions that a node holds."""
        for region in regions_in_order(regions_of(node)):
            for inner in region.nodes():
                if inner.opcode == "control.call":
                    export = self._exports.get(cast(Region, inner.attr("region")).hash)
                    if export is not None:
                        origin = test.origins.get(inner) or test.origins.get(node)
                        yield Call(export.name, origin and origin.line, _INSIDE)


def _outputs(export: Export) -> int:
    """Leaves of an export's result and observations."""
    return len(leaf_types(export.result)) + sum(len(node.types) for node in probes_of(export))


def _run(site: _Site, executor: _OnTarget, given: Sequence[Array]) -> list[Array]:
    """The export's result leaves and observations, with the items along the first axis for a stream."""
    export, items = site.export, 1 if site.items is None else site.items
    leaves = list(given if site.items is not None else (array[None] for array in given))
    inputs: dict[str, object] = {}
    for name, kind in export.params:
        count = len(leaf_types(kind))
        inputs[name] = unflatten_value(kind, leaves[:count])
        leaves = leaves[count:]
    results = flatten_value(export.result, executor.results.run(inputs, items), items)
    if executor.observations is not None:
        observing, runner = executor.observations
        results += flatten_value(observing.result, runner.run(inputs, items), items)
    return results if site.items is not None else [array[0] for array in results]

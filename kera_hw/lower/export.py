"""An export as a loop program: parameters, results and states are buffers by leaf, the body is its region."""
from __future__ import annotations

from collections.abc import Collection, Mapping

from kera_hw.graph.nesting import check_nesting
from kera_hw.graph.node import Export, Node, Origin, Region, Scopes, within
from kera_hw.loops.program import Buffer, LoopProgram
from kera_hw.lower import control, elementwise, reductions, tensors
from kera_hw.lower.emitter import Emitter
from kera_hw.lower.options import PLAIN, LoweringOptions
from kera_hw.lower.region import Lowering, Rule, Update
from kera_hw.lower.views import Value, View, whole
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.support import KeraError, deep_recursion
from kera_hw.target import TargetTable
from kera_hw.types import Type, element_type, flatten_type, leaf_types, shape_of


def observe(_lower: Lowering, _node: Node, args: list[Value]) -> list[Value]:
    """An observation is the value that it is given."""
    return args


RULES: dict[str, Rule] = {
    **{name: observe for name, spec in OPS.items() if Trait.OBSERVES in spec.traits},
    **elementwise.RULES, **tensors.RULES, **reductions.RULES, **control.RULES,
}


TABLE: TargetTable[object] = TargetTable(
    "loops", "loop program", {**RULES, "core.constant": Lowering.constant}
)


def check_lowerable(region: Region) -> None:
    """Raises KeraError (K07xx) for every kind of operation without loops."""
    faults = TABLE.faults(region)
    if faults:
        raise KeraError(faults)


def lower_export(
    export: Export, origins: Mapping[Node, Origin] | None = None, expanding: Collection[str] = (),
    scopes: Mapping[Region, Scopes] | None = None,
) -> LoopProgram:
    """The loop program of an export; what it observes follows its results.

    Operations in ``expanding`` are written out by their expansions, as a target without them wants it.
    Raises KeraError (K07xx) where an operation has no loops.
    """
    return lower_with_updates(export, origins, scopes, LoweringOptions(frozenset(expanding)))[0]


@deep_recursion()
def lower_with_updates(
    export: Export, origins: Mapping[Node, Origin] | None = None,
    scopes: Mapping[Region, Scopes] | None = None, options: LoweringOptions = PLAIN,
) -> tuple[LoopProgram, list[Update]]:
    """The loop program of an export, and which tensors are updated in place and which in copies.

    Raises TooLong beyond what the options allow.
    """
    check_nesting(export)
    check_lowerable(export.region)
    emit = Emitter(options)
    rules = {name: rule for name, rule in RULES.items() if name not in options.expanding}
    lower = Lowering(emit, rules, origins or {}, scopes or {})
    params = [
        Buffer(".".join(("in", name, *leaf.path)), element_type(leaf.type), shape_of(leaf.type), "param")
        for name, kind in export.params for leaf in flatten_type(kind)
    ]
    states = [
        Buffer(f"state.{var.name}", element_type(var.initial.type), shape_of(var.initial.type), "state",
               _data(var.initial.node))
        for var in export.state
    ]
    args = [_argument(emit, buffer) for buffer in (*params, *states)]
    values = lower.region(export.region, args)
    kinds = leaf_types(export.result)
    results = [_result(f"out.{k}", kind) for k, kind in enumerate(kinds)]
    for target, value, ref in zip(results, values, export.region.results):
        emit.place = within(lower.origins.get(ref.node), lower.scopes.get(export.region, ()))
        _deliver(lower, target, value)
    emit.place = None
    seen = values[len(results) + len(states) :]
    last = export.region.results[len(values) - len(seen) :]
    observed = [_result(f"observed.{k}", ref.type) for k, ref in enumerate(last)]
    for target, value in zip(observed, seen):
        _deliver(lower, target, value)
    _advance(lower, states, values[len(results) : len(results) + len(states)])
    buffers = (*params, *results, *observed, *states, *emit.constants.values())
    return LoopProgram(export.name, buffers, emit.finish()), list(dict.fromkeys(lower.updates))


def _data(node: Node) -> bytes:
    data = node.attr("value")
    assert isinstance(data, bytes)
    return data


def _argument(emit: Emitter, buffer: Buffer) -> Value:
    return whole(buffer, buffer.kind == "state") if buffer.shape else emit.load(buffer, ())


def _result(name: str, kind: Type) -> Buffer:
    return Buffer(name, element_type(kind), shape_of(kind), "result")


def _deliver(lower: Lowering, target: Buffer, value: Value) -> None:
    if isinstance(value, View):
        lower.copy_into(whole(target), value)
    else:
        lower.emit.store(target, (), value)


def _advance(lower: Lowering, states: list[Buffer], values: list[Value]) -> None:
    """The next states; what is read from a state's buffer is put aside before any is overwritten."""
    own = {buffer.name for buffer in states}
    kept: list[Value] = []
    for value, state in zip(values, states):
        if isinstance(value, View) and value.buffer.name in own and not _is_all_of(value, state):
            kept.append(lower.copy(value))
        else:
            kept.append(value)
    for state, value in zip(states, kept):
        if not _is_all_of(value, state):
            _deliver(lower, state, value)


def _is_all_of(value: Value, state: Buffer) -> bool:
    return isinstance(value, View) and value.buffer == state and value.is_whole

"""A whole export as one flat region: its loop program with every loop unrolled.

The result is still a graph of registry operations, so the interpreter runs it: the lowering is checked
against the original on the same vectors.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from kera_hw.graph.node import Export, Origin, Ref, StateVar, regions_in_order
from kera_hw.graph.store import Store
from kera_hw.loops.program import Bank, Buffer, LoopProgram, Storage
from kera_hw.lower.elementwise import RULES as ELEMENTWISE
from kera_hw.lower.export import RULES, lower_with_updates
from kera_hw.lower.options import TooLong
from kera_hw.rtl.lower.budget import Meter, check_ports, check_state, registers_suffice
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.rtl.lower.certain import certain_operations
from kera_hw.rtl.lower.design import FlatDesign, FlatState, LoweringError
from kera_hw.rtl.lower.division import PatientBuilder
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.lower.floats.table import NOUN, UNITS
from kera_hw.rtl.lower.general import UNROLLED
from kera_hw.rtl.lower.keeping import better_apart, candidates
from kera_hw.rtl.lower.operations import SCALAR, circuit_of
from kera_hw.rtl.lower.ports import bus_widths, parameter_buses, place_leaves, result_buses
from kera_hw.rtl.lower.storage import Elements, Kept, Memory, Unkept, memories_of, words_of
from kera_hw.rtl.lower.walk import Walker
from kera_hw.support import Diagnostic, KeraError, deep_recursion
from kera_hw.target import TargetTable
from kera_hw.types import TokenType, Type

_GIVEN = ("param", "state")
"""Kinds of buffers that hold something when an item comes."""

TABLE: TargetTable[object] = TargetTable("rtl", NOUN, {
    **{name: rule for name, rule in RULES.items() if name not in (*ELEMENTWISE, *UNROLLED.expanding)},
    **dict.fromkeys((*SCALAR, *UNITS, "control.select", "core.constant"), circuit_of),
})
"""What has loops or a circuit; all else is made of its expansion."""


@deep_recursion()
def flatten_export(
    export: Export, store: Store, initiation_interval: int = 1, carry_logic: bool = False
) -> FlatDesign | Diagnostic:
    """Flatten an export to scalar operations in ``store``; a Diagnostic (K06xx, K07xx) where it cannot be.

    Units that take several cycles an item are used where ``initiation_interval`` cycles allow, and such as
    need logic in carry cells with ``carry_logic``.
    """
    saved = store.origin
    try:
        _check(export)
        program = _program(export, store)
        return _with_memories(export, program, lambda meter: PatientBuilder(
            store, initiation_interval, carry_logic, meter
        ))
    except LoweringError as problem:
        return problem.diagnostic
    except KeraError as problem:
        return problem.diagnostics[0]
    finally:
        store.origin = saved


def _with_memories(
    export: Export, program: LoopProgram, build: Callable[[Meter], Builder]
) -> FlatDesign:
    """The design with such state in memories as can be, or is better, there."""
    kept, reasons = candidates(program), dict[str, str]()
    small = registers_suffice(export)
    names = {buffer.name: var.name for buffer, var in zip(program.of_kind("state"), export.state)}
    while True:
        check_state(export, [names[name] for name in kept], reasons)
        check_ports(export, [names[name] for name in kept])
        meter = Meter(export.name)
        meter.will_make(certain_operations(program))
        flat = _Flattening(export, program, build(meter), meter, kept)
        try:
            design = flat.design()
            unkept = better_apart(flat.kept, [name for name in kept if names[name] in small])
            if unkept is None:
                return design
        except Unkept as fault:
            unkept = fault
        reasons[names[unkept.buffer]] = unkept.reason
        if unkept.axis is None:
            del kept[unkept.buffer]
        else:
            kept[unkept.buffer] = unkept.axis


def _check(export: Export) -> None:
    """Raise for what hardware cannot do, before any of it is made."""
    for name, _ in export.params:
        if name in ("valid", "ready"):
            raise LoweringError(Diagnostic(
                "K0612",
                f"The parameter `{name}` of `{export.name}` would collide with the handshake port in_{name}.",
                notes=("Rename the parameter.",),
            ))
    for node in (node for region in regions_in_order([export.region]) for node in region.nodes()):
        if any(isinstance(kind, TokenType) for kind in (*(ref.type for ref in node.inputs), *node.types)):
            raise LoweringError(Diagnostic(
                "K0613", f"`{node.opcode}` orders an effect, and effects are not available in hardware yet.",
                notes=("Keep effects out of the exported function, or run it on the interpreter.",),
            ))
    for fault in TABLE.faults(export.region):
        raise LoweringError(fault)


def _program(export: Export, store: Store) -> LoopProgram:
    try:
        return lower_with_updates(export, store.origins, store.scopes, UNROLLED)[0]
    except TooLong:
        Meter(export.name).too_long()


class _Flattening:
    """One export, ``kept`` of its state in memories, each with how many leading axes are banks."""

    def __init__(
        self, export: Export, program: LoopProgram, builder: Builder, meter: Meter, kept: Mapping[str, int]
    ) -> None:
        self._export = export
        self._program = program
        self._builder = builder
        self._meter = meter
        self._banks = kept
        self._walker = Walker(builder, meter)
        self._params: list[Type] = []
        self.kept: list[Kept] = []

    def design(self) -> FlatDesign:
        """The flat design. Raises Unkept for state that cannot be in memories, LoweringError for size."""
        export, store = self._export, self._builder.store
        buses, out_buses = parameter_buses(export), result_buses(export)
        inputs, outputs, states = place_leaves(buses), place_leaves(out_buses), self._states()
        declared = dict(zip((bus for bus, _ in buses), export.places))
        given = [self._scalar(leaf.type, declared.get(leaf.bus)) for leaf in inputs]
        held = [self._scalar(state.type, state.origin) for state in states]
        self._builder.states.update(held)
        store.origin = None
        self._buffers(iter([*given, *held]))
        self._walker.block(self._program.body)
        results = list(self._contents())
        ends = [*(leaf.type for leaf in outputs), *(state.type for state in states)]
        assert len(results) == len(ends), "leaves of the results and of the program differ"
        for k, (kind, ref) in enumerate(zip(ends, results)):
            store.origin = store.origins.get(ref.node)
            results[k] = floats.leaving(self._builder, kind, ref)
        store.origin = None
        banks = [bank for storage in self.kept for bank in storage.banks]
        return FlatDesign(
            name=export.name,
            region=store.region(self._params, [*results, *(bank.head for bank in banks)]),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            states=tuple(states),
            in_buses=bus_widths(buses),
            out_buses=bus_widths(out_buses),
            origins=store.origins,
            general=self._meter.shares(),
            memories=tuple(bank.memory for bank in banks),
        )

    def _states(self) -> list[FlatState]:
        """State in registers, by scalar."""
        found: list[FlatState] = []
        for var, buffer in zip(self._export.state, self._program.of_kind("state")):
            for place, word in enumerate(words_of(buffer) if buffer.name not in self._banks else ()):
                name = f"{var.name}_{place}" if buffer.shape else var.name
                found.append(FlatState(name, width_of(buffer.element), buffer.element, word, var.origin))
        return found

    def _param(self, kind: Type) -> Ref:
        self._params.append(kind)
        return self._builder.store.param(len(self._params) - 1, kind)

    def _scalar(self, kind: Type, place: Origin | None) -> Ref:
        """A parameter as it is carried, credited to where it is declared."""
        self._builder.store.origin = place
        return floats.entering(self._builder, kind, self._param(kind))

    def _buffers(self, given: Iterator[Ref]) -> None:
        """What every buffer is at the beginning."""
        walker, origins = self._walker, dict(zip(self._program.of_kind("state"), self._export.state))
        for buffer in self._program.buffers:
            if buffer.kind == "const":
                walker.storage[buffer.name] = walker.constant(buffer)
            elif buffer.name in self._banks:
                walker.storage[buffer.name] = self._memories(buffer, origins[buffer])
            else:
                taken = [next(given) for _ in range(buffer.size)] if buffer.kind in _GIVEN else None
                walker.storage[buffer.name] = Elements(self._builder, buffer, taken)
        assert next(given, None) is None, "leaves of the ports and of the program differ"

    def _memories(self, buffer: Buffer, var: StateVar) -> Kept:
        axes = range(self._banks[buffer.name])
        banks = tuple(Bank(axis, buffer.shape[axis], "cyclic") for axis in axes)
        made = replace(buffer, storage=Storage(banks=banks))
        flat = memories_of(made, var.origin)
        names = [f"{var.name}_{number}" if banks else var.name for number in range(len(flat))]
        kept = Kept(self._builder, made, [
            Memory(self._builder, replace(memory, name=name), self._param(memory.type))
            for memory, name in zip(flat, names)
        ], exact=True)
        self.kept.append(kept)
        return kept

    def _contents(self) -> Iterator[Ref]:
        """The results, then the next states."""
        for buffer in (*self._program.of_kind("result"), *self._program.of_kind("state")):
            storage = self._walker.storage[buffer.name]
            if isinstance(storage, Elements):
                yield from (storage.item(place) for place in range(buffer.size))

"""Part of a loop program as a flat design: what a round of a kept loop does, or straight code between loops.

A test says what comes in and goes out of a block; within it loops are unrolled as ever.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kera_hw.graph.node import Origin, Ref
from kera_hw.graph.store import Store
from kera_hw.loops.program import Block, Buffer, Var
from kera_hw.ops.intervals import Interval
from kera_hw.rtl.lower.budget import Meter
from kera_hw.rtl.lower.builder import Builder, carrier, width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatState, LoweringError
from kera_hw.rtl.lower.division import PatientBuilder
from kera_hw.rtl.lower.storage import Kept, Memory, Storage, memories_of
from kera_hw.rtl.lower.walk import Walker
from kera_hw.support import Diagnostic, deep_recursion
from kera_hw.types import Type


class Given(NamedTuple):
    """A scalar that a block is given on a bus, and the values that it has, where its type says too little."""

    bus: str
    var: Var
    range: Interval | None = None


class Carried(NamedTuple):
    """A scalar that goes from one round to the next; ``initial`` are its bits at reset."""

    name: str
    var: Var
    initial: int
    range: Interval | None = None
    origin: Origin | None = None


@deep_recursion()
def flatten_block(
    name: str, block: Block, inputs: Sequence[Given], states: Sequence[Carried], outputs: Sequence[str],
    store: Store, *, buffers: Mapping[str, Buffer], memories: Collection[str] = (),
    initiation_interval: int = 1, carry_logic: bool = False,
) -> FlatDesign | Diagnostic:
    """A block whose yields are the outputs, then the next states; a Diagnostic (K06xx) where it is too large.

    Floats travel as their bits, in which any NaN may stand: the canonical one is made where a word goes into
    a buffer that can be seen. ``memories`` are the buffers that are reached by address; constants among them
    are tables. Of the others only constants are read from outside.
    """
    saved = store.origin
    builder = PatientBuilder(store, initiation_interval, carry_logic, Meter(name))
    try:
        return _flatten(name, block, inputs, states, outputs, builder, buffers, memories)
    except LoweringError as problem:
        return problem.diagnostic
    finally:
        store.origin = saved


def _flatten(
    name: str, block: Block, inputs: Sequence[Given], states: Sequence[Carried], outputs: Sequence[str],
    builder: Builder, buffers: Mapping[str, Buffer], memories: Collection[str],
) -> FlatDesign:
    store, meter = builder.store, builder.meter
    assert meter is not None
    store.origin = None
    params: list[Ref] = []

    def param(kind: Type) -> Ref:
        params.append(store.param(len(params), kind))
        return params[-1]

    def outside(buffer: str) -> Storage:
        """A buffer on its first access."""
        found = buffers[buffer]
        assert found.kind == "const", f"{buffer} is no memory and comes from outside"
        return walker.constant(found, buffer in memories)

    walker = Walker(builder, meter, buffers=outside)
    for given in (*inputs, *states):
        ref = param(carrier(given.var.type))
        if given.range is not None:
            builder.assume(ref, given.range)
        walker.define(given.var, ref)
        if isinstance(given, Carried):
            builder.states.add(ref)
    kept: list[Kept] = []
    for buffer in (buffers[item] for item in memories if buffers[item].kind != "const"):
        flat = memories_of(buffer)
        banks = [Memory(builder, memory, param(memory.type)) for memory in flat]
        kept.append(Kept(builder, buffer, banks))
        walker.storage[buffer.name] = kept[-1]
    yields = walker.block(block)
    assert len(yields) == len(outputs) + len(states), f"{name} yields its outputs, then its next states"
    store.origin = None
    banks = [bank for storage in kept for bank in storage.banks]
    taken = [FlatLeaf(given.bus, 0, width_of(given.var.type), carrier(given.var.type)) for given in inputs]
    made = [FlatLeaf(bus, 0, width_of(ref.type), ref.type) for bus, ref in zip(outputs, yields)]
    return FlatDesign(
        name=name,
        region=store.region([ref.type for ref in params], [*yields, *(bank.head for bank in banks)]),
        inputs=tuple(taken),
        outputs=tuple(made),
        states=tuple(
            FlatState(item.name, width_of(item.var.type), carrier(item.var.type), item.initial, item.origin)
            for item in states
        ),
        in_buses=tuple((leaf.bus, leaf.width_bits) for leaf in taken),
        out_buses=tuple((leaf.bus, leaf.width_bits) for leaf in made),
        origins=store.origins,
        general=meter.shares(),
        memories=tuple(bank.memory for bank in banks),
    )

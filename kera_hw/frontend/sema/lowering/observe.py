"""Lowering of assertions, cover points and prints: operations on the hidden variables of ``observing``."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.frontend.sema.lowering.core import Leaves, Lowering
from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.observing import MOST_WORDS, SITE, Site, Sites
from kera_hw.graph.node import Origin, Ref
from kera_hw.types import (
    BOOL,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    element_type,
    shape_of,
)


def begin(ctx: Lowering, frame: Frame, sites: Sites) -> None:
    """Declare the hidden variables: nothing failed, nothing met, nothing printed."""
    if sites.entries * sites.words > MOST_WORDS:
        raise ctx.error(
            "K0505", f"This may print {sites.entries} times, up to {sites.words} numbers each, for one item; "
            f"the record of an item holds {MOST_WORDS} numbers.", sites.prints[0].span,
        )
    for site in sites.checks:
        frame.bind(ctx.observations.var(site), [ctx.store.constant(BOOL, False)])
    if sites.entries:
        frame.bind(ctx.observations.record, [ctx.zeros(kind) for kind in sites.record_types])


def finish(ctx: Lowering, frame: Frame, sites: Sites) -> Leaves:
    """The observations at the end: a flag for each check, then the record."""
    flags = [frame.leaf(ctx.observations.var(site), 0) for site in sites.checks]
    return [*flags, *(frame.leaves(ctx.observations.record) if sites.entries else [])]


def marked(ctx: Lowering, sites: Sites, leaves: Sequence[Ref]) -> Leaves:
    """The observations under the operations that say what they are, as an export ends in them."""
    store = ctx.store
    found: Leaves = []
    for number, (site, flag) in enumerate(zip(sites.checks, leaves)):
        assert isinstance(site.part, hir.Observe)
        store.origin = _origin(site)
        found.append(store.op(f"effect.{site.part.kind}", flag, label=site.label, site=number))
    if sites.entries:
        store.origin = _origin(sites.prints[0])
        node = store.node("effect.print", leaves[len(sites.checks):], {
            "labels": tuple(site.label for site in sites.prints),
            "types": tuple(_printed_types(site) for site in sites.prints),
        })
        found += [node.out(index) for index in range(3)]
    store.origin = None
    return found


def _origin(site: Site) -> Origin:
    return Origin(site.file.path, site.span, site.file.line_column(site.span.start)[0])


def _printed_types(site: Site) -> tuple[Type, ...]:
    assert isinstance(site.part, hir.Op)
    return tuple(arg.type for arg in site.part.args)


def lower_observe(ctx: Lowering, frame: Frame, stmt: hir.Observe) -> None:
    met = ctx.scalar(frame, stmt.cond)
    if stmt.kind == "assert":
        met = ctx.store.op("bits.not", met)
    _meet(ctx, frame, ctx.observations.var_of(stmt), met)


def _meet(ctx: Lowering, frame: Frame, var: hir.Var, met: Ref) -> None:
    if frame.knows(var):  # the value of a constant is computed without
        frame.assign(var, 0, [ctx.store.op("bits.or", frame.leaf(var, 0), met)])


def lower_print(ctx: Lowering, frame: Frame, expr: hir.Op) -> Leaves:
    """The record with one entry more; a print gives nothing."""
    values = [ctx.scalar(frame, arg) for arg in expr.args]
    record = ctx.observations.record
    if frame.knows(record):
        count, numbers, words = frame.leaves(record)
        row = _row([_word(ctx, value, element_type(words.type)) for value in values], words.type, ctx)
        number = ctx.store.constant(SITE, ctx.print_numbers[id(expr)])
        frame.assign(record, 0, [
            ctx.store.op("integer.add", count, ctx.index_constant(1)),
            ctx.store.op("tensor.update", numbers, number, count),
            ctx.store.op("tensor.update_slice", words, row, count, ctx.index_constant(0)),
        ])
    return []


def _word(ctx: Lowering, value: Ref, word: Type) -> Ref:
    """The bits of a value, each element in a word, as one row."""
    kind = value.type
    if isinstance(kind, TensorType) and kind.space != "host":
        value = ctx.store.op("memory.transfer", value, space="host")
    element = element_type(kind)
    if isinstance(element, IntType | FixType | FloatType):
        value = ctx.store.op("convert.bitcast", value, type=IntType(element.width_bits, False))
    else:
        assert isinstance(element, BoolType)
    if element_type(value.type) != word:
        value = ctx.store.op("convert.cast", value, type=word)
    if isinstance(value.type, TensorType):
        return ctx.store.op("tensor.reshape", value, shape=(value.type.size,))
    return ctx.store.op("tensor.stack", value)


def _row(parts: Leaves, words: Type, ctx: Lowering) -> Ref:
    """One row of the record: the parts one after another, then zeros."""
    width, zero = shape_of(words)[1], ctx.zeros(element_type(words))
    row = ctx.zeros(TensorType(element_type(words), (0,))) if not parts else parts[0]
    if len(parts) > 1:
        row = ctx.store.op("tensor.concat", *parts, axis=0)
    used = shape_of(row.type)[0]
    if used < width:
        row = ctx.store.op("tensor.pad", row, zero, high=(width - used,), low=(0,))
    return ctx.store.op("tensor.reshape", row, shape=(1, width))


def add_observed(ctx: Lowering, frame: Frame, inner: Sites, leaves: Sequence[Ref]) -> None:
    """What a callee observed, added to what its caller has so far."""
    for site, flag in zip(inner.checks, leaves):
        _meet(ctx, frame, ctx.observations.var(site), flag)
    record = ctx.observations.record
    if not inner.entries or not frame.knows(record):
        return
    store, zero = ctx.store, ctx.index_constant(0)
    more, numbers, words = leaves[len(inner.checks):]
    count, all_numbers, all_words = frame.leaves(record)
    renumbered = [ctx.print_numbers[id(site.part)] for site in inner.prints]
    table = store.constant(TensorType(SITE, (len(renumbered),)), ctx.numbers_array(renumbered))
    numbers = store.op("tensor.gather", table, numbers)
    word = element_type(all_words.type)
    if element_type(words.type) != word:
        words = store.op("convert.cast", words, type=word)
    missing = shape_of(all_words.type)[1] - shape_of(words.type)[1]
    if missing:
        words = store.op("tensor.pad", words, ctx.zeros(word), high=(0, missing), low=(0, 0))
    frame.assign(record, 0, [
        store.op("integer.add", count, more),
        store.op("tensor.update_slice", all_numbers, numbers, count),
        store.op("tensor.update_slice", all_words, words, count, zero),
    ])


def hidden_changes(frame: Frame, inner: Frame) -> list[tuple[hir.Var, Ref]]:
    """The flags that the body of a lambda changes: of all that it can assign nothing else lives outside."""
    return [(var, inner.leaf(var, index)) for var, index in inner.changed() if frame.knows(var)]


def meet_any(ctx: Lowering, frame: Frame, var: hir.Var, flags: Ref) -> None:
    """A flag of each row of a tensor, added to the flag so far."""
    _meet(ctx, frame, var, ctx.store.op("reduce.any", flags, axis=-1))

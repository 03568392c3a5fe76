"""What an export must compute, as values of one free item: its graph translated to terms."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kera_hw.graph.node import Export
from kera_hw.rtl.formal.blocks import Block
from kera_hw.rtl.formal.cases import Case, whole
from kera_hw.rtl.formal.floats import carries
from kera_hw.rtl.formal.graph import Translator, free_block, leaf_count
from kera_hw.rtl.formal.implementation import Item
from kera_hw.rtl.formal.replay import scalars_of
from kera_hw.rtl.formal.terms import FloatSort, Term, Terms
from kera_hw.types import FloatType, Type, bit_width


@dataclass(frozen=True, slots=True)
class Specification:
    """A graph's meaning on one item: values of results and next states, and facts about the states."""

    export: Export
    item: Item
    values: tuple[Term, ...]
    assumptions: tuple[Term, ...] = field(default=())

    def bindings(self, terms: Terms, case: Case) -> dict[Term, Term]:
        """What the item's variables are in a case: themselves but for the bits that it knows."""
        variables = (*self.item.inputs, *self.item.states)
        pairs = zip(variables, case, strict=True)
        return {var: known.pattern(terms, var) for var, known in pairs if not known.anything}

    def claim(self, terms: Terms, patterns: Sequence[Term | None]) -> Term:
        """Whether patterns are those of the specified values, one bit."""
        return terms.all_of(
            carries(terms, bits, value) if isinstance(value.sort, FloatSort) else terms.eq(value, bits)
            for value, bits in zip(self.values, patterns, strict=True)
            if bits is not None
        )


def inputs_of(export: Export) -> list[Type]:
    """The scalar types of an item's parameters, then of the states it meets."""
    return scalars_of(export.region.params)


def case_of(export: Export) -> Case:
    """The case of all items."""
    return whole(inputs_of(export))


def item_of(terms: Terms, export: Export) -> Item:
    """A free variable for each scalar."""
    held = sum(leaf_count(var.initial.type) for var in export.state)
    variables = [terms.var(f"in{k}", bit_width(kind)) for k, kind in enumerate(inputs_of(export))]
    split = len(variables) - held
    return Item(tuple(variables[:split]), tuple(variables[split:]))


def specify(terms: Terms, export: Export) -> Specification:
    """The specification of an export. Raises NoMeaning for what the theories cannot say."""
    item = item_of(terms, export)
    translator = Translator(terms)
    args: list[Block] = []
    given, used = (*item.inputs, *item.states), 0
    for kind in export.region.params:
        count = leaf_count(kind)
        args.append(free_block(translator, kind, given[used : used + count]))
        used += count
    results = translator.region(export.region, args)
    values = tuple(term for block in results for term in block.items)
    return Specification(export, item, values, _state_facts(terms, export, item))


def _state_facts(terms: Terms, export: Export, item: Item) -> tuple[Term, ...]:
    """A state never holds a NaN other than the canonical one: claimed of the next states, so assumed here."""
    translator = Translator(terms)
    kinds = scalars_of([var.initial.type for var in export.state])
    return tuple(
        carries(terms, bits, translator.value(kind, bits))
        for kind, bits in zip(kinds, item.states, strict=True)
        if isinstance(kind, FloatType)
    )

"""The proof of one implementation against a graph: the claim, the verdict, and the planted fault.

A proof counts only if the same machinery refutes a faulty implementation: for that, a fault is planted, the
solver has to find an input that shows it, and the interpreter has to confirm it on that input. So neither
contradictory assumptions nor a comparison of something with itself can pass for a proof.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from kera_hw.graph.node import Export
from kera_hw.rtl.formal.blocks import Block
from kera_hw.rtl.formal.floats import carries
from kera_hw.rtl.formal.graph import Translator, free_block, leaf_count
from kera_hw.rtl.formal.implementation import Implementation, Item, Made, item_of
from kera_hw.rtl.formal.replay import interpret, scalars_of
from kera_hw.rtl.formal.solver import PLAIN, Tuning, prove
from kera_hw.rtl.formal.terms import FloatSort, Term, Terms, evaluate
from kera_hw.types import FloatType, bit_width

FAULT_TRIALS = 8
"""Planted faults to try: one may sit where no input shows it."""

Outcome = Literal["proved", "refuted", "unfinished", "unconfirmed"]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """One item as patterns of scalars (parameters, then states), and all results and next states."""

    inputs: tuple[int, ...]
    states: tuple[int, ...]
    expected: tuple[int, ...]
    actual: tuple[int, ...]

    @property
    def first(self) -> int:
        """The first result that differs."""
        pairs = enumerate(zip(self.expected, self.actual))
        return next(k for k, (a, b) in pairs if a != b)


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """The fault that had to be refuted: what it was, and the item that shows it."""

    text: str
    trials: int
    seconds: float
    shown_by: Counterexample


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one proof. ``unconfirmed``: no planted fault was refuted, so the proof doesn't count."""

    level: str
    outcome: Outcome
    seconds: float
    limit_s: float
    fault: PlantedFault | None = None
    counterexample: Counterexample | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Specification:
    """A graph's meaning on one free item: values of results and next states, and facts about the states."""

    export: Export
    item: Item
    values: tuple[Term, ...]
    assumptions: tuple[Term, ...] = field(default=())

    def claim(self, terms: Terms, patterns: Sequence[Term | None]) -> Term:
        """Whether patterns are those of the specified values, one bit."""
        return terms.all_of(
            carries(terms, bits, value) if isinstance(value.sort, FloatSort) else terms.eq(value, bits)
            for value, bits in zip(self.values, patterns, strict=True)
            if bits is not None
        )


def specify(terms: Terms, export: Export) -> Specification:
    """The specification of an export. Raises NoMeaning for what the theories cannot say."""
    kinds = export.region.params
    widths = [bit_width(kind) for kind in scalars_of(kinds)]
    held = sum(leaf_count(var.initial.type) for var in export.state)
    item = item_of(terms, widths[: len(widths) - held], widths[len(widths) - held :])
    translator = Translator(terms)
    args: list[Block] = []
    given, used = (*item.inputs, *item.states), 0
    for kind in kinds:
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


def check(
    export: Export,
    implementation: Implementation,
    limit_s: float,
    seed: int = 1,
    tuning: Tuning = PLAIN,
    progress: Progress = lambda _: None,
) -> Verdict:
    """Prove one implementation equal to its graph for all inputs, or say why not."""
    terms = Terms()
    spec = specify(terms, export)
    progress(f"proving the {implementation.label}")
    made = implementation.make(terms, spec.item)
    answer = prove(terms, spec.claim(terms, made.results), limit_s, spec.assumptions, tuning)
    label = implementation.label
    if answer.status == "unfinished":
        return Verdict(label, "unfinished", answer.seconds, limit_s)
    if answer.status == "refuted":
        return Verdict(label, "refuted", answer.seconds, limit_s, None, _replayed(spec, made, answer.model))
    progress("refuting a planted fault")
    fault, note = _plant(terms, spec, implementation, made, limit_s, seed, tuning)
    outcome: Outcome = "proved" if fault is not None else "unconfirmed"
    return Verdict(label, outcome, answer.seconds, limit_s, fault, None, note)


def _plant(
    terms: Terms,
    spec: Specification,
    implementation: Implementation,
    sound: Made,
    limit_s: float,
    seed: int,
    tuning: Tuning,
) -> tuple[PlantedFault | None, str]:
    """The first of a few faults that solver and interpreter both find; otherwise what went wrong."""
    rng, start = random.Random(seed), monotonic()
    reasons: list[str] = []
    for trial in range(1, FAULT_TRIALS + 1):
        left = limit_s - (monotonic() - start)
        if left <= 0:
            reasons.append("the time limit was reached")
            break
        made = implementation.make_faulty(terms, spec.item, rng)
        assert made.fault is not None
        answer = prove(terms, spec.claim(terms, made.results), left, spec.assumptions, tuning)
        if answer.status != "refuted":
            reasons.append(f"{made.fault}: {_NOT_REFUTED[answer.status]}")
            continue
        shown = _replayed(spec, made, answer.model)
        right = _replayed(spec, sound, answer.model)
        if shown.expected == shown.actual or right.expected != right.actual:
            return None, f"{made.fault}: the interpreter does not confirm the solver's item"
        return PlantedFault(made.fault, trial, round(monotonic() - start, 3), shown), ""
    return None, "; ".join(reasons)


_NOT_REFUTED = {"proved": "no input shows it", "unfinished": "not refuted in the time limit"}


def _replayed(spec: Specification, made: Made, model: Mapping[str, int]) -> Counterexample:
    """An item of the solver's on the interpreter and in the implementation's own terms."""
    inputs, states = (
        tuple(model.get(str(term.params[0]), 0) for term in group)
        for group in (spec.item.inputs, spec.item.states)
    )
    expected = tuple(interpret(spec.export, [*inputs, *states]))
    shown = iter(evaluate([term for term in made.results if term is not None], model))
    actual = tuple(right if term is None else next(shown) for term, right in zip(made.results, expected))
    return Counterexample(inputs, states, expected, actual)


"""The proof of one implementation against a graph: the verdict, and the planted fault.

A proof counts only if the same machinery refutes a faulty implementation: for that, a fault is planted, the
solver has to find an input that shows it, and the interpreter has to confirm it on that input. So neither
contradictory assumptions nor a comparison of something with itself can pass for a proof.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal

from kera_hw.graph.node import Export
from kera_hw.rtl.formal.cases import Case
from kera_hw.rtl.formal.implementation import Clocked, Implementation, Item, Made
from kera_hw.rtl.formal.replay import interpret
from kera_hw.rtl.formal.search import DEFAULT, Found, Strategy, decide
from kera_hw.rtl.formal.solver import Answer, Claim
from kera_hw.rtl.formal.specification import case_of, inputs_of, item_of, specify
from kera_hw.rtl.formal.sweep import Sweeper
from kera_hw.rtl.formal.terms import Term, Terms, evaluate

FAULT_TRIALS = 8
"""Planted faults to try: one may sit where no input shows it."""
# Of the time limit: for a netlist piece by piece; of that for cut points; a part of it for one of those.
_PIECES_SHARE, _SWEEP_SHARE, _QUERY_PART = 0.6, 0.8, 60

Outcome = Literal["proved", "refuted", "unfinished", "unconfirmed", "not modelled"]
Progress = Callable[[str], None]
Maker = Callable[[Terms, Item], Made]


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
    """What came of one proof, which took ``cases`` claims.

    ``unconfirmed``: no planted fault was refuted, so the proof doesn't count. ``not modelled``: ``note``
    names a cell without a meaning here. ``through`` names the proved
    implementation that this one was held against, empty where it was the graph itself.
    """

    level: str
    outcome: Outcome
    seconds: float
    limit_s: float
    cases: int = 1
    fault: PlantedFault | None = None
    counterexample: Counterexample | None = None
    note: str = ""
    through: str = ""


class Prover:
    """Proofs about one implementation of one export."""

    def __init__(
        self,
        export: Export,
        implementation: Implementation,
        strategy: Strategy = DEFAULT,
        progress: Progress = lambda _: None,
    ) -> None:
        self.export, self.implementation, self.strategy = export, implementation, strategy
        self.progress = progress

    def decide(self, make: Maker, limit_s: float) -> Found:
        """Whether what ``make`` makes equals the graph, in every case."""

        terms = Terms()
        spec = specify(terms, self.export)
        kept = self._kept(terms, spec.item, spec.values)
        results = make(terms, spec.item).results
        holds = terms.bit_and(spec.claim(terms, results), kept)
        claim = Claim(terms, holds, spec.assumptions, self.strategy.tuning)

        def ask(case: Case, seconds: float) -> Answer:
            return claim.decide(seconds, spec.bindings(terms, case))

        kinds, start = inputs_of(self.export), case_of(self.export)
        return decide(ask, kinds, start, limit_s, self.strategy, self.progress)

    def _kept(self, terms: Terms, item: Item, results: Sequence[Term | None]) -> Term:
        """Assumes what the implementation relies on states to hold; whether the next ones hold it, too.

        That the initial ones do is no matter for a solver.
        """
        for state, fact in self.implementation.held(terms, item.states):
            terms.define(state, fact)
        nexts = results[len(results) - len(item.states) :]
        known = [term for term in nexts if term is not None]
        assert len(known) == len(nexts), "the graph gives every state its next value"
        return terms.all_of(fact for _, fact in self.implementation.held(terms, known))

    def decide_against(self, reference: Implementation, make: Maker, limit_s: float) -> Found:
        """Whether what ``make`` makes equals an implementation that is known to equal the graph."""
        terms = Terms()
        item = item_of(terms, self.export)
        right = reference.make(terms, item).results
        kept = self._kept(terms, item, right)
        pairs = zip(right, make(terms, item).results, strict=True)
        claim = terms.all_of(terms.eq(a, b) for a, b in pairs if a is not None and b is not None)
        answer = Claim(terms, terms.bit_and(claim, kept), (), self.strategy.tuning).decide(limit_s)
        return Found(answer.status, answer.seconds, 1, case_of(self.export), answer.model)

    def decide_by_cuts(self, reference: Implementation, limit_s: float, seed: int) -> Found:
        """The same against an implementation that is known to equal the graph, cut point by cut point."""
        assert isinstance(self.implementation, Clocked)
        start = monotonic()
        terms = Terms()
        spec = specify(terms, self.export)
        right = reference.make(terms, spec.item).results
        known = [term for term in right if term is not None]
        kept = self._kept(terms, spec.item, right)
        sweeper = Sweeper(terms, known, _SWEEP_SHARE * limit_s, limit_s / _QUERY_PART, seed)
        made = self.implementation.make_by(terms, spec.item, sweeper).results
        pairs = [(a, b) for a, b in zip(right, made, strict=True) if a is not None and b is not None]
        holds = terms.bit_and(terms.all_of(terms.eq(a, b) for a, b in pairs), kept)
        claim = Claim(terms, holds, (), self.strategy.tuning)
        answer = claim.decide(limit_s - (monotonic() - start))
        asked = 1 + sweeper.asked
        return Found(answer.status, monotonic() - start, asked, case_of(self.export), answer.model)

    def replay(self, make: Maker, found: Found) -> Counterexample:
        """The solver's item on the interpreter, and in the implementation's own terms."""
        terms = Terms()
        item = item_of(terms, self.export)
        results = make(terms, item).results
        variables = [*item.inputs, *item.states]
        names = [str(term.params[0]) for term in variables]
        shapes = [known.pattern(terms, term) for known, term in zip(found.case, variables)]
        patterns = evaluate(shapes, found.model)
        expected = tuple(interpret(self.export, patterns))
        model = {**found.model, **dict(zip(names, patterns))}
        shown = iter(evaluate([term for term in results if term is not None], model))
        actual = tuple(right if term is None else next(shown) for term, right in zip(results, expected))
        split = len(item.inputs)
        return Counterexample(tuple(patterns[:split]), tuple(patterns[split:]), expected, actual)

    def plant(
        self, limit_s: float, seed: int, reference: Implementation | None = None
    ) -> tuple[Outcome, PlantedFault | None, str]:
        """The first of a few faults that solver and interpreter both find; otherwise what went wrong.

        With ``reference`` the solver compares with that, as in the proof; the interpreter has the graph.
        ``unfinished`` where time ran out over it, ``unconfirmed`` where the solver let all of them pass.
        """
        start = monotonic()
        reasons: list[str] = []
        late = False
        for trial in range(1, FAULT_TRIALS + 1):
            left = limit_s - (monotonic() - start)
            if left <= 0:
                late = True
                break

            def make(terms: Terms, item: Item, trial: int = trial) -> Made:
                return self.implementation.make_faulty(terms, item, random.Random(f"{seed}.{trial}"))

            if reference is None:
                found = self.decide(make, left)
            else:
                found = self.decide_against(reference, make, left)
            terms = Terms()
            text = make(terms, item_of(terms, self.export)).fault
            assert text is not None
            if found.status != "refuted":
                reasons.append(f"{text}: {_NOT_REFUTED[found.status]}")
                late = late or found.status == "unfinished"
                continue
            shown, right = self.replay(make, found), self.replay(self.implementation.make, found)
            if shown.expected == shown.actual or right.expected != right.actual:
                return "unconfirmed", None, f"{text}: the interpreter does not confirm the solver's item"
            return "proved", PlantedFault(text, trial, round(monotonic() - start, 3), shown), ""
        return "unfinished" if late else "unconfirmed", None, "; ".join(reasons)


_NOT_REFUTED = {"proved": "no input shows it", "unfinished": "not refuted in the time limit"}


def check(
    export: Export,
    implementation: Implementation,
    limit_s: float,
    seed: int = 1,
    strategy: Strategy = DEFAULT,
    progress: Progress = lambda _: None,
    reference: Implementation | None = None,
) -> Verdict:
    """Prove one implementation equal to its graph for all inputs, or say why not.

    A netlist is held against ``reference``, which must have been proved, piece by piece; if that leads
    nowhere, or without a reference, an implementation is held against the graph. The planted fault has as
    much time again as the proof. Raises NoMeaning and NotModelled.
    """
    label = implementation.label
    prover = Prover(export, implementation, strategy, progress)
    progress(f"proving the {label}")
    found = None
    if reference is not None and isinstance(implementation, Clocked):
        found = prover.decide_by_cuts(reference, limit_s * _PIECES_SHARE, seed)
    if found is None or found.status == "unfinished":
        spent, reference = 0.0 if found is None else found.seconds, None
        found = prover.decide(implementation.make, limit_s - spent)
        found = replace(found, seconds=found.seconds + spent)
    through = "" if reference is None else reference.label
    if found.status == "unfinished":
        return Verdict(label, "unfinished", found.seconds, limit_s, found.cases)
    if found.status == "refuted":
        shown = prover.replay(implementation.make, found)
        return Verdict(label, "refuted", found.seconds, limit_s, found.cases, None, shown)
    progress("refuting a planted fault")
    outcome, fault, note = prover.plant(limit_s, seed, reference)
    return Verdict(label, outcome, found.seconds, limit_s, found.cases, fault, None, note, through)

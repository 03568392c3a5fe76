"""Assertions and cover points of an export, decided for all inputs.

Of a function each is one claim about a free item. Of a stream the items from reset on are unrolled as far as
the time allows, each meeting the state that those before left; then induction over a few items with a free
state may show that what held so far holds for ever. A proof counts only if the same terms also let the
condition be met: a model in which it is met has to be found, and the interpreter has to confirm it.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal

from kera_hw.graph import Export, Node, Region, probes_of
from kera_hw.rtl.formal.blocks import Block
from kera_hw.rtl.formal.floats import carries
from kera_hw.rtl.formal.graph import Translator, free_block, leaf_count
from kera_hw.rtl.formal.replay import interpret, scalars_of
from kera_hw.rtl.formal.solver import Answer, Claim
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.types import FloatType, bit_width

MOST_ITEMS = 32
MOST_INDUCTION = 4
_BASE_SHARE = 0.6  # of the time limit, for the items from reset on

Outcome = Literal["proved", "bounded", "refuted", "reached", "unreachable", "unreached", "unfinished",
                  "unconfirmed"]


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of one assertion or cover point.

    ``items``: how many from reset on were looked at, of a stream; ``induction``: over how many the proof for
    all of them goes, 0 where there is none. ``inputs`` are the patterns of the parameters' scalars, item by
    item, that show a failure, or reach a point.
    """

    node: Node
    outcome: Outcome
    seconds: float
    items: int = 1
    induction: int = 0
    inputs: tuple[tuple[int, ...], ...] = ()


def decide_probes(export: Export, limit_s: float) -> list[Decided]:
    """A verdict for each assertion and cover point, each within ``limit_s`` seconds. Raises NoMeaning.

    What is proved helps with those after it.
    """
    found: list[Decided] = []
    proved: list[Node] = []
    for node in probes_of(export):
        if node.opcode != "effect.print":
            found.append(_Decider(export, node, proved, limit_s).decide())
            if found[-1].outcome == "proved":
                proved.append(node)
    return found


class _Decider:
    """One assertion or cover point: a flag that must never be set, or be set by some items.

    ``proved`` are assertions whose flags are never set.
    """

    def __init__(self, export: Export, node: Node, proved: Sequence[Node], limit_s: float) -> None:
        self.node, self.limit_s, self.start = node, limit_s, monotonic()
        plain = [ref for ref in export.region.results if ref.node not in probes_of(export)]
        nexts = plain[len(plain) - len(export.state):]
        known = [item.inputs[0] for item in proved]
        params = export.region.params
        self.export = replace(export, region=Region(params, (node.inputs[0], *nexts)))
        self.helped = Region(params, (node.inputs[0], *nexts, *known))
        self.params = export.region.params[: len(export.region.params) - len(export.state)]
        self.asserts = node.opcode == "effect.assert"

    def decide(self) -> Decided:
        found = self._from_reset() if self.export.state else self._once()
        if found.outcome in ("proved", "bounded") and not self._can_hold():
            found = replace(found, outcome="unconfirmed")
        return replace(found, seconds=monotonic() - self.start)

    def _left(self) -> float:
        return max(0.0, self.limit_s - (monotonic() - self.start))

    # One item

    def _item(
        self, terms: Terms, number: int, states: Sequence[Block], region: Region | None = None
    ) -> tuple[Term, list[Block]]:
        """The flag of an item with free inputs, and the other results of the region."""
        translator = Translator(terms)
        args: list[Block] = []
        for place, kind in enumerate(self.params):
            element = scalars_of([kind])
            names = [f"i{number}_{place}_{k}" for k in range(leaf_count(kind))]
            bits = [terms.var(name, bit_width(item)) for name, item in zip(names, element, strict=True)]
            args.append(free_block(translator, kind, bits))
        flag, *after = translator.region(region or self.export.region, [*args, *states])
        return flag.item, after

    def _inputs(self, model: dict[str, int], items: int) -> tuple[tuple[int, ...], ...]:
        """The patterns of a model, 0 for what it leaves open."""
        return tuple(
            tuple(
                model.get(f"i{number}_{place}_{k}", 0)
                for place, kind in enumerate(self.params) for k in range(leaf_count(kind))
            )
            for number in range(items)
        )

    def _initial(self, terms: Terms) -> list[Block]:
        region = Region((), tuple(var.initial for var in self.export.state))
        return Translator(terms).region(region, [])

    def _confirmed(self, inputs: Sequence[tuple[int, ...]]) -> bool:
        """Whether the interpreter sees the flag set by the last of these items from reset on."""
        initial = interpret(replace(self.export, region=self._constants()), [])
        states, flag = initial, 0
        for item in inputs:
            flag, *states = interpret(self.export, [*item, *states])
        return bool(flag)

    def _constants(self) -> Region:
        return Region((), tuple(var.initial for var in self.export.state))

    # Verdicts

    def _found(self, answer: Answer, items: int) -> Decided:
        """The verdict on a set flag."""
        inputs = self._inputs(dict(answer.model), items)
        if not self._confirmed(inputs):
            return Decided(self.node, "unconfirmed", 0.0, items)
        return Decided(self.node, "refuted" if self.asserts else "reached", 0.0, items, 0, inputs)

    def _once(self) -> Decided:
        terms = Terms()
        flag, _ = self._item(terms, 0, ())
        answer = Claim(terms, terms.bit_not(flag)).decide(self._left())
        if answer.status == "refuted":
            return self._found(answer, 1)
        if answer.status == "proved":
            return Decided(self.node, "proved" if self.asserts else "unreachable", 0.0)
        return Decided(self.node, "unfinished", 0.0)

    def _from_reset(self) -> Decided:
        terms = Terms()
        states, items = self._initial(terms), 0
        while items < MOST_ITEMS and self._left() > self.limit_s * (1 - _BASE_SHARE):
            flag, states = self._item(terms, items, states)
            answer = Claim(terms, terms.bit_not(flag)).decide(self._left())
            if answer.status == "refuted":
                return self._found(answer, items + 1)
            if answer.status == "unfinished":
                break
            items += 1
        steps = next((k for k in range(1, min(items, MOST_INDUCTION) + 1) if self._inductive(k)), 0)
        if not items:
            return Decided(self.node, "unfinished", 0.0, 0)
        if steps:
            return Decided(self.node, "proved" if self.asserts else "unreachable", 0.0, items, steps)
        return Decided(self.node, "bounded" if self.asserts else "unreached", 0.0, items)

    def _inductive(self, steps: int) -> bool:
        """Whether the flag stays clear for one item more, whatever the state, if it did for ``steps``."""
        terms = Terms()
        translator = Translator(terms)
        states: list[Block] = []
        facts: list[Term] = []
        for place, var in enumerate(self.export.state):
            kinds = scalars_of([var.initial.type])
            bits = [terms.var(f"s{place}_{k}", bit_width(kind)) for k, kind in enumerate(kinds)]
            facts += [
                carries(terms, pattern, translator.value(kind, pattern))
                for kind, pattern in zip(kinds, bits, strict=True) if isinstance(kind, FloatType)
            ]
            states.append(free_block(translator, var.initial.type, bits))
        flag = terms.const(0, 1)
        for number in range(steps + 1):
            facts.append(terms.bit_not(flag))
            flag, after = self._item(terms, number, states, self.helped)
            states, known = after[: len(states)], after[len(states):]
            facts += [terms.bit_not(block.item) for block in known]
        return Claim(terms, terms.bit_not(flag), facts).decide(self._left()).status == "proved"

    def _can_hold(self) -> bool:
        """Whether the solver finds an item that meets the condition, and the interpreter agrees."""
        terms = Terms()
        flag, _ = self._item(terms, 0, self._initial(terms))
        answer = Claim(terms, flag).decide(max(1.0, self._left()))
        return answer.status == "refuted" and not self._confirmed(self._inputs(dict(answer.model), 1))

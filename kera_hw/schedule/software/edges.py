"""Loops cut where lanes begin and end to ask about an edge, for machines on which a choice by lanes costs.

A convolution's window reaches over the edge of an image in its first and last tile of columns, and there at
one end of the window. Cut there, the rounds in between have no question left, and they are most.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.loops.counters import Counters
from kera_hw.loops.program import Affine, For, Load, LoopProgram, Op, Store, Var, statements
from kera_hw.loops.spans import affine_span, spans_within
from kera_hw.loops.transforms.plan import Step, apply_step
from kera_hw.ops.intervals import Interval
from kera_hw.schedule.software.folding import answer, asks, counts

_MOST_ROUNDS = 64
"""Of a loop that is looked at round by round."""
_MOST_LOOPS = 8
"""That are cut: each time a loop's body is written down once or twice more."""

Question = tuple[str, Affine]
"""How something is compared with 0."""


def edges_apart(program: LoopProgram) -> LoopProgram:
    """The program with such loops cut, as long as most rounds of one are then free of questions.

    A product that is written out for want of an instruction outweighs a choice, and is not written again.
    """
    if any(isinstance(item, Op) and item.opcode == "floating.fma" for item in statements(program.body)):
        return program
    for _ in range(_MOST_LOOPS):
        cuts = _cuts(program)
        if not cuts:
            break
        for cut in cuts:
            program = apply_step(program, Step("split", cut, "few rounds are at an edge"), claimed=False)
    return program


def _cuts(program: LoopProgram) -> list[tuple[str, int]]:
    """A loop with the rounds before which, and from which on, no lane asks; the last comes first, since what
    is before a cut keeps its name."""
    spans = spans_within(program.body)
    loops = [item for item in statements(program.body) if isinstance(item, For)]
    lanes = _lanes(program, loops)
    questions = [item for item in _questions(program, spans) if not lanes.isdisjoint(_counters(item))]
    for loop in loops:
        own = [item for item in questions if loop.var in _counters(item)]
        if own and loop.var not in lanes and 1 < loop.count <= _MOST_ROUNDS:
            first, end = _free(loop, own, spans)
            if 2 * (end - first) >= loop.count and (first, end) != (0, loop.count):
                return [(loop.var.name, at) for at in (end, first) if 0 < at < loop.count]
    return []


def _lanes(program: LoopProgram, loops: Sequence[For]) -> set[Var]:
    """Counters of parallel loops whose rounds touch neighbouring elements."""
    neighbouring = {
        var for item in statements(program.body) if isinstance(item, Load | Store) and item.index
        for var, factor in item.index[-1].terms if factor == 1
    }
    return {loop.var for loop in loops if loop.parallel and loop.var in neighbouring}


def _questions(program: LoopProgram, spans: Mapping[Var, Interval]) -> list[Question]:
    """Those that ranges leave open."""
    counters = Counters(spans, counts)
    found: list[Question] = []
    for item in statements(program.body):
        if not isinstance(item, Op) or len(item.results) != 1:
            continue
        counters.note(item)
        if not asks(item):
            continue
        difference = counters.difference(item)
        if difference is not None:
            found.append((item.opcode.partition(".")[2], difference))
    return [question for question in found if not _is_settled(question, spans)]


def _counters(question: Question) -> set[Var]:
    return {var for var, _ in question[1].terms}


def _is_settled(question: Question, spans: Mapping[Var, Interval]) -> bool:
    verb, difference = question
    span = affine_span(difference, spans)
    return span is not None and answer(verb, span) is not None


def _free(loop: For, questions: Sequence[Question], spans: Mapping[Var, Interval]) -> tuple[int, int]:
    """The longest row of rounds without a question: the first, and the one after the last."""
    best, first = (0, 0), 0
    for number in range(loop.count):
        here = {**spans, loop.var: Interval(number, number)}
        if not all(_is_settled(question, here) for question in questions):
            first = number + 1
        elif number + 1 - first > best[1] - best[0]:
            best = first, number + 1
    return best

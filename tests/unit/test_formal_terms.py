"""Terms mean what the interpreter computes: random graphs, and the solver's opinion on the same terms."""
from __future__ import annotations

import random

import pytest

from kera_hw.graph import Export
from kera_hw.rtl.formal.reductions import NoMeaning
from kera_hw.rtl.formal.replay import interpret, scalars_of
from kera_hw.rtl.formal.solver import prove
from kera_hw.rtl.formal.specification import Specification, specify
from kera_hw.rtl.formal.terms import Term, Terms, evaluate, in_order
from kera_hw.types import Type, bit_width
from tests.differential.hardware_support import random_graph

BLOCKS, SEEDS_A_BLOCK, ITEMS = 6, 40, 6


def _pattern(kind: Type, rng: random.Random) -> int:
    width = bit_width(kind)
    near = rng.choice((0, 1, 2, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1))
    return rng.choice((near, rng.getrandbits(width), rng.getrandbits(width) & 7)) & ((1 << width) - 1)


def _specified(terms: Terms, export: Export) -> Specification | None:
    try:
        return specify(terms, export)
    except NoMeaning:
        return None


def _agrees(terms: Terms, spec: Specification, patterns: list[int], expected: list[int]) -> bool:
    """Whether the specification takes the patterns to the expected ones; the solver judges numbers."""
    variables = [*spec.item.inputs, *spec.item.states]
    claim = spec.claim(terms, [terms.const(bits, width) for bits, width in zip(expected, _widths(spec))])
    roots = [claim, *terms.facts_below([claim])]
    if not any(term.op.startswith("fp.") for term in in_order(roots)):
        model = {str(term.params[0]): bits for term, bits in zip(variables, patterns)}
        return evaluate(spec.values, model) == expected
    facts = [terms.eq(term, terms.const(bits, term.width)) for term, bits in zip(variables, patterns)]
    return prove(terms, claim, 60, facts).status == "proved"


def _widths(spec: Specification) -> list[int]:
    return [bit_width(kind) for kind in scalars_of(spec.export.region.result_types)]


@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_graphs_mean_what_the_interpreter_says(block: int) -> None:
    compared = 0
    for seed in range(block * SEEDS_A_BLOCK, (block + 1) * SEEDS_A_BLOCK):
        graph, rng = random_graph(seed), random.Random(seed)
        for export in graph.exports:
            terms = Terms()
            spec = _specified(terms, export)
            for _ in range(ITEMS if spec else 0):
                assert spec is not None
                patterns = [_pattern(kind, rng) for kind in scalars_of(export.region.params)]
                assert _agrees(terms, spec, patterns, interpret(export, patterns)), (seed, patterns)
                compared += 1
    assert compared > SEEDS_A_BLOCK


def _random_term(terms: Terms, rng: random.Random, depth: int) -> Term:
    width = rng.choice((1, 3, 8))
    pool = [terms.var(f"v{k}", width) for k in range(2)] + [terms.const(rng.getrandbits(width), width)]
    for _ in range(depth):
        a, b, c = (rng.choice(pool) for _ in range(3))
        pool.append(_random_step(terms, rng, width, a, b, c))
    return pool[-1]


def _random_step(terms: Terms, rng: random.Random, width: int, a: Term, b: Term, c: Term) -> Term:
    op = rng.choice(("add", "sub", "mul", "udiv", "urem", "shl", "lshr", "ashr"))
    signed, or_equal = rng.random() < 0.5, rng.random() < 0.5
    joined = terms.concat([a, b, terms.sext(c, width + 2)])
    return rng.choice((
        terms.arith(op, a, b), terms.bit_and(a, b), terms.bit_or(a, b), terms.bit_xor(a, b), terms.bit_not(a),
        terms.neg(a), terms.ite(terms.less(a, b, signed, or_equal), b, c), terms.ite(terms.eq(a, c), a, b),
        terms.extract(joined, rng.randrange(width), width),
        terms.resize(terms.resize(a, width + rng.randrange(5), signed), width, signed=False),
    ))


def test_solver_and_evaluation_agree() -> None:
    """A claim that a term has the value evaluated, under the assumption of its variables' values."""
    rng, proved = random.Random(5), 0
    for _ in range(60):
        terms = Terms()
        term = _random_term(terms, rng, 12)
        model = {f"v{k}": rng.getrandbits(term.width) for k in range(2)}
        width = term.width
        facts = [terms.eq(terms.var(name, width), terms.const(bits, width)) for name, bits in model.items()]
        (value,) = evaluate([term], model)
        right, wrong = (terms.eq(term, terms.const(v, term.width)) for v in (value, value ^ 1))
        assert prove(terms, right, 10, facts).status == "proved"
        answer = prove(terms, wrong, 10, facts)
        assert answer.status == "refuted"
        assert all(answer.model.get(name, model[name]) == model[name] for name in model)
        proved += 1
    assert proved == 60

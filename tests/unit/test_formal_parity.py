"""Sums modulo 2: networks that are equal have one form, and one form means equal values."""
from __future__ import annotations

import random

from kera_hw.rtl.formal.parity import Parities
from kera_hw.rtl.formal.terms import Term, Terms, evaluate

WIDTH = 8


def crc(terms: Terms, word: Term, by_choice: bool) -> Term:
    """A checksum by a choice for each bit, or by masks, over the bits in the other writing."""
    state = word
    poly = terms.const(0x8C, WIDTH)
    for _ in range(12):
        low = terms.extract(state, 0, 1)
        moved = terms.arith("lshr", state, terms.const(1, WIDTH))
        if by_choice:
            state = terms.ite(low, terms.bit_xor(moved, poly), moved)
        else:
            state = terms.bit_xor(terms.bit_and(terms.sext(low, WIDTH), poly), moved)
    return state


def test_two_writings_of_a_checksum_have_one_form() -> None:
    terms = Terms()
    word = terms.var("w", WIDTH)
    a, b = crc(terms, word, by_choice=True), crc(terms, word, by_choice=False)
    assert a is not b and Parities().equal(a, b)
    assert not Parities().equal(a, terms.bit_xor(b, terms.const(4, WIDTH)))


def _random(terms: Terms, rng: random.Random, steps: int) -> Term:
    pool = [terms.var(f"v{k}", WIDTH) for k in range(3)] + [terms.const(rng.getrandbits(WIDTH), WIDTH)]
    for _ in range(steps):
        a, b, c = (rng.choice(pool) for _ in range(3))
        bit, amount = terms.extract(c, rng.randrange(WIDTH), 1), terms.const(rng.randrange(10), WIDTH)
        pool.append(rng.choice((
            terms.bit_xor(a, b), terms.bit_not(a), terms.bit_and(a, b), terms.bit_or(a, b),
            terms.arith("shl", a, amount), terms.arith("lshr", a, amount), terms.arith("add", a, b),
            terms.ite(bit, terms.bit_xor(a, c), a), terms.ite(bit, terms.bit_not(a), a),
            terms.ite(terms.eq(terms.bit_and(a, terms.const(4, WIDTH)), terms.const(0, WIDTH)), b, c),
            terms.concat([terms.extract(a, 2, 6), terms.extract(b, 0, 2)]), terms.sext(bit, WIDTH),
            terms.zext(terms.eq(a, b), WIDTH),
        )))  # fmt: skip
    return pool[-1]


def test_a_form_gives_the_value_of_its_bit() -> None:
    """Adding up the atoms of a form modulo 2 gives the bit, on random items."""
    rng, atoms_seen = random.Random(4), 0
    for _ in range(60):
        terms, parities = Terms(), Parities()
        term = _random(terms, rng, 14)
        forms = parities.of(term)
        atoms = sorted({atom for form in forms for atom in form[0]}, key=lambda atom: (id(atom[0]), atom[1]))
        atoms_seen += len(atoms)
        for _ in range(8):
            model = {f"v{k}": rng.getrandbits(WIDTH) for k in range(3)}
            (value, *words) = evaluate([term, *(atom for atom, _ in atoms)], model)
            bits = {atom: word >> atom[1] & 1 for atom, word in zip(atoms, words)}
            sums = [(sum(bits[atom] for atom in form[0]) + form[1]) & 1 for form in forms]
            assert sums == [value >> k & 1 for k in range(WIDTH)]
    assert atoms_seen > 100

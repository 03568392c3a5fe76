"""Linear combinations of values: coefficients and a constant."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Node, Ref

Variable = tuple[Ref, int]
"""A value (index -1), one tile of a product (0 and up), or a word made for a gated sum (-2, -3)."""


@dataclass
class LinearCombination:
    """Coefficients of variables and a constant."""

    terms: dict[Variable, int]
    constant: int


def combine(a: LinearCombination, b: LinearCombination, sign: int) -> LinearCombination:
    """``a + sign * b``."""
    terms = dict(a.terms)
    for variable, value in b.terms.items():
        total = terms.get(variable, 0) + sign * value
        if total:
            terms[variable] = total
        else:
            terms.pop(variable, None)
    return LinearCombination(terms, a.constant + sign * b.constant)


def scale(sum_of: LinearCombination, factor: int) -> LinearCombination:
    """``factor * sum_of``."""
    if factor == 0:
        return LinearCombination({}, 0)
    terms = {variable: value * factor for variable, value in sum_of.terms.items()}
    return LinearCombination(terms, sum_of.constant * factor)


def summands(node: Node) -> tuple[Ref, ...]:
    """The operands whose combinations a linear node's combination is made of."""
    if node.opcode == "bits.shl":
        return node.inputs[:1]
    return node.inputs[1:] if node.opcode == "control.select" else node.inputs

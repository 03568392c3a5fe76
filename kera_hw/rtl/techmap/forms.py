"""Linear forms over values: coefficients and a constant."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Node, Ref

Atom = tuple[Ref, int]
"""A value (index -1), one tile of a product (0 and up), or a word made for a gated sum (-2, -3)."""


@dataclass
class Form:
    """Coefficients of atoms and a constant."""

    terms: dict[Atom, int]
    constant: int


def combine(a: Form, b: Form, sign: int) -> Form:
    """``a + sign * b``."""
    terms = dict(a.terms)
    for atom, value in b.terms.items():
        total = terms.get(atom, 0) + sign * value
        if total:
            terms[atom] = total
        else:
            terms.pop(atom, None)
    return Form(terms, a.constant + sign * b.constant)


def scale(form: Form, factor: int) -> Form:
    """``factor * form``."""
    if factor == 0:
        return Form({}, 0)
    return Form({atom: value * factor for atom, value in form.terms.items()}, form.constant * factor)


def summands(node: Node) -> tuple[Ref, ...]:
    """The operands whose forms a linear node's form is made of."""
    if node.opcode == "bits.shl":
        return node.inputs[:1]
    return node.inputs[1:] if node.opcode == "control.select" else node.inputs

"""Bits as sums modulo 2: a normal form in which networks of exclusive ors are equal when they are equal.

Solvers take exponential time over such networks written in different orders; here the order disappears. A
bit is a constant plus a set of atoms: bits of terms that are no sums themselves.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.rtl.formal.terms import Term, in_order

Atom = tuple[Term, int]
Form = tuple[frozenset[Atom], int]

LARGEST = 256
"""Atoms of one form; a larger one becomes an atom itself."""


def _plus(a: Form, b: Form) -> Form:
    return a[0] ^ b[0], a[1] ^ b[1]


def _constant(value: int) -> Form:
    return frozenset(), value & 1


class Parities:
    """Normal forms of terms' bits, each worked out once."""

    def __init__(self) -> None:
        self._forms: dict[Term, list[Form]] = {}

    def equal(self, a: Term, b: Term) -> bool:
        """Whether two bit-vectors have the same forms; if not, they may still be equal."""
        return a.width == b.width and self.of(a) == self.of(b)

    def of(self, term: Term) -> list[Form]:
        """The form of every bit, the lowest first."""
        if term not in self._forms:
            for item in in_order([term]):
                if item not in self._forms:
                    forms = self._make(item)
                    self._forms[item] = [
                        form if len(form[0]) <= LARGEST else self._atom(item, bit)
                        for bit, form in enumerate(forms)
                    ]
        return self._forms[term]

    def _atom(self, term: Term, bit: int) -> Form:
        return frozenset({(term, bit)}), 0

    def _make(self, term: Term) -> list[Form]:
        args = [self._forms[arg] for arg in term.args]
        width = term.width
        match term.op:
            case "const":
                return [_constant(int(term.params[0]) >> bit) for bit in range(width)]
            case "not":
                return [_plus(form, _constant(1)) for form in args[0]]
            case "xor":
                return [_plus(a, b) for a, b in zip(*args)]
            case "concat":
                return [form for part in args for form in part]
            case "extract":
                low = int(term.params[0])
                return args[0][low : low + width]
            case "zext" | "sext":
                fill = args[0][-1] if term.op == "sext" else _constant(0)
                return [*args[0], *[fill] * (width - len(args[0]))]
            case "shl" | "lshr" if term.args[1].value is not None:
                return self._shifted(term, args[0])
            case "and" | "or":
                return [self._joined(term, bit, a, b) for bit, (a, b) in enumerate(zip(*args))]
            case "ite":
                pairs = enumerate(zip(args[1], args[2]))
                return [self._chosen(term, bit, args[0][0], then, other) for bit, (then, other) in pairs]
            case "eq":
                return [self._equal(term, args[0], args[1])]
            case _:
                return [self._atom(term, bit) for bit in range(width)]

    def _shifted(self, term: Term, forms: Sequence[Form]) -> list[Form]:
        amount = min(term.args[1].value or 0, term.width)
        fill = [_constant(0)] * amount
        kept = term.width - amount
        return [*fill, *forms[:kept]] if term.op == "shl" else [*forms[amount:], *fill]

    def _joined(self, term: Term, bit: int, a: Form, b: Form) -> Form:
        """And, or: settled where one side is constant or both are the same."""
        absorbing = int(term.op == "or")
        for one, other in ((a, b), (b, a)):
            if not one[0]:
                return one if one[1] == absorbing else other
        return a if a == b else self._atom(term, bit)

    def _chosen(self, term: Term, bit: int, condition: Form, then: Form, other: Form) -> Form:
        """A choice between a bit and its opposite adds the condition."""
        if not condition[0]:
            return then if condition[1] else other
        difference = _plus(then, other)
        if difference[0]:
            return self._atom(term, bit)
        return _plus(other, condition) if difference[1] else other

    def _equal(self, term: Term, a: Sequence[Form], b: Sequence[Form]) -> Form:
        """Settled where all but one pair of bits is."""
        open_ = [form for form in map(_plus, a, b) if form[0] or form[1]]
        if any(not form[0] for form in open_):
            return _constant(0)
        if len(open_) > 1:
            return self._atom(term, 0)
        return _plus(open_[0], _constant(1)) if open_ else _constant(1)

"""Hash-consed terms over bit-vectors and floating-point numbers, simplified a little while they are built.

Terms are our own so that they can be evaluated on concrete values without any solver (``values.py``) and
handed to one (``solver.py``). A sort is a width in bits, or a ``FloatSort``. Truth values are one bit wide.
Operators have their SMT-LIB meaning: x / 0 has all bits set, x % 0 is x, shifts by the width or more give
zeros or copies of the sign.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.rtl.formal.values import OPERATORS
from kera_hw.support import toposort


@dataclass(frozen=True, slots=True)
class FloatSort:
    """An IEEE binary format: exponent bits, and significand bits with the hidden one."""

    exponent_bits: int
    significand_bits: int

    @property
    def width_bits(self) -> int:
        return self.exponent_bits + self.significand_bits


Sort = int | FloatSort


class Term:
    """One node: operator, operands, static parameters, sort. Equal terms of one table are one object."""

    __slots__ = ("args", "op", "params", "sort")

    def __init__(self, op: str, args: tuple[Term, ...], params: tuple[int | str, ...], sort: Sort) -> None:
        self.op = op
        self.args = args
        self.params = params
        self.sort = sort

    @property
    def width(self) -> int:
        """Bits of a bit-vector term."""
        assert isinstance(self.sort, int), f"{self.op} is a floating-point term"
        return self.sort

    @property
    def value(self) -> int | None:
        """The number that a constant is, None for any other term."""
        return int(self.params[0]) if self.op == "const" else None

    def __repr__(self) -> str:
        return f"<{self.op} {self.sort}>"


def in_order(roots: Iterable[Term]) -> list[Term]:
    """All terms below the roots, operands first."""
    return toposort(roots, lambda term: term.args)


def evaluate(terms: Sequence[Term], variables: Mapping[str, int]) -> list[int]:
    """The numbers of bit-vector terms without floating point; a variable not given is 0."""
    found: dict[Term, int] = {}
    for term in in_order(terms):
        if term.op == "const":
            found[term] = int(term.params[0])
        elif term.op == "var":
            found[term] = variables.get(str(term.params[0]), 0)
        else:
            operands = [found[arg] for arg in term.args]
            widths = [arg.width for arg in term.args]
            value = OPERATORS[term.op](operands, widths, term.params, term.width)
            found[term] = value & ((1 << term.width) - 1)
    return [found[term] for term in terms]


class Terms:
    """A table of terms and their constructors.

    ``definitions`` lists facts about variables. Those that give fresh ones their meaning are satisfiable by
    exactly one value of their variable, whatever the others are; others say which values a state may hold.
    """

    def __init__(self) -> None:
        self._table: dict[tuple[object, ...], Term] = {}
        self.definitions: dict[Term, Term] = {}
        self._fresh = 0

    def make(self, op: str, args: tuple[Term, ...], params: tuple[int | str, ...], sort: Sort) -> Term:
        """The term, folded when all its operands are constants."""
        rule = OPERATORS.get(op)
        if rule is not None and args and all(arg.op == "const" for arg in args):
            assert isinstance(sort, int)
            numbers = [int(arg.params[0]) for arg in args]
            return self.const(rule(numbers, [arg.width for arg in args], params, sort), sort)
        key = (op, args, params, sort)
        found = self._table.get(key)
        if found is None:
            found = Term(op, args, params, sort)
            self._table[key] = found
        return found

    # Sources

    def const(self, value: int, width: int) -> Term:
        """The number modulo 2^width."""
        return self.make("const", (), (value & ((1 << width) - 1),), width)

    def var(self, name: str, width: int) -> Term:
        """A free variable; one name is one variable."""
        return self.make("var", (), (name,), width)

    def fresh(self, stem: str, width: int) -> Term:
        """A variable nobody has yet."""
        self._fresh += 1
        return self.var(f"{stem}.{self._fresh}", width)

    # Wiring

    def extract(self, x: Term, low: int, width: int) -> Term:
        """Bits [low, low + width)."""
        assert low >= 0 and width > 0 and low + width <= x.width
        if width == x.width:
            return x
        if x.op == "extract":
            return self.extract(x.args[0], int(x.params[0]) + low, width)
        if x.op == "concat":
            return self._extract_of_concat(x, low, width)
        if x.op == "zext" and low + width <= x.args[0].width:
            return self.extract(x.args[0], low, width)
        if x.op == "zext" and low >= x.args[0].width:
            return self.const(0, width)
        return self.make("extract", (x,), (low,), width)

    def _extract_of_concat(self, x: Term, low: int, width: int) -> Term:
        parts: list[Term] = []
        position = 0
        for part in x.args:  # least significant first
            first, last = max(low, position), min(low + width, position + part.width)
            if first < last:
                parts.append(self.extract(part, first - position, last - first))
            position += part.width
        return self.concat(parts)

    def concat(self, parts: Sequence[Term]) -> Term:
        """Terms joined, the LEAST significant first; neighbouring slices of one term become one slice."""
        flat: list[Term] = []
        for part in parts:
            for piece in part.args if part.op == "concat" else (part,):
                joined = self._join(flat[-1], piece) if flat else None
                if joined is None:
                    flat.append(piece)
                else:
                    flat[-1] = joined
        if len(flat) == 1:
            return flat[0]
        if flat[-1].value == 0:
            return self.zext(self.concat(flat[:-1]), sum(part.width for part in flat))
        return self.make("concat", tuple(flat), (), sum(part.width for part in flat))

    def _join(self, below: Term, above: Term) -> Term | None:
        if below.op == "const" and above.op == "const":
            value = int(below.params[0]) | int(above.params[0]) << below.width
            return self.const(value, below.width + above.width)
        if below.op == "extract" and above.op == "extract" and below.args == above.args:
            low = int(below.params[0])
            if low + below.width == above.params[0]:
                return self.extract(below.args[0], low, below.width + above.width)
        return None

    def zext(self, x: Term, width: int) -> Term:
        """Zeros above, or the term itself."""
        if width == x.width:
            return x
        if x.op == "zext":
            return self.zext(x.args[0], width)
        return self.make("zext", (x,), (), width)

    def sext(self, x: Term, width: int) -> Term:
        """Copies of the top bit above, or the term itself."""
        return x if width == x.width else self.make("sext", (x,), (), width)

    def resize(self, x: Term, width: int, signed: bool) -> Term:
        """Cut off or extended to a width."""
        if width <= x.width:
            return self.extract(x, 0, width)
        return self.sext(x, width) if signed else self.zext(x, width)

    # Bitwise

    def bit_not(self, x: Term) -> Term:
        return x.args[0] if x.op == "not" else self.make("not", (x,), (), x.sort)

    def bit_and(self, a: Term, b: Term) -> Term:
        zero, ones = 0, (1 << a.width) - 1
        for x, y in ((a, b), (b, a)):
            if x.value == zero:
                return x
            if x.value == ones or x is y:
                return y
        return self._commutative("and", a, b)

    def bit_or(self, a: Term, b: Term) -> Term:
        zero, ones = 0, (1 << a.width) - 1
        for x, y in ((a, b), (b, a)):
            if x.value == ones:
                return x
            if x.value == zero or x is y:
                return y
        return self._commutative("or", a, b)

    def bit_xor(self, a: Term, b: Term) -> Term:
        for x, y in ((a, b), (b, a)):
            if x.value == 0:
                return y
            if x.value == (1 << a.width) - 1:
                return self.bit_not(y)
        return self.const(0, a.width) if a is b else self._commutative("xor", a, b)

    def _commutative(self, op: str, a: Term, b: Term) -> Term:
        assert a.width == b.width, f"{op} of {a.width} and {b.width} bits"
        if (op, (b, a), (), a.sort) in self._table:
            a, b = b, a
        return self.make(op, (a, b), (), a.sort)

    # Arithmetic and shifts: both operands as wide as the result

    def arith(self, op: str, a: Term, b: Term) -> Term:
        """add, sub, mul, udiv, urem, shl, lshr or ashr."""
        assert a.width == b.width, f"{op} of {a.width} and {b.width} bits"
        if b.value == 0 and op in ("add", "sub", "shl", "lshr", "ashr"):
            return a
        if op in ("add", "mul"):
            return b if op == "add" and a.value == 0 else self._commutative(op, a, b)
        return self.make(op, (a, b), (), a.sort)

    def neg(self, x: Term) -> Term:
        return self.make("neg", (x,), (), x.sort)

    # Predicates, one bit wide

    def eq(self, a: Term, b: Term) -> Term:
        assert a.width == b.width, f"eq of {a.width} and {b.width} bits"
        if a is b:
            return self.const(1, 1)
        for x, y in ((a, b), (b, a)):
            if a.width == 1 and x.value is not None:
                return y if x.value else self.bit_not(y)
        if ("eq", (b, a), (), 1) in self._table:
            a, b = b, a
        return self.make("eq", (a, b), (), 1)

    def less(self, a: Term, b: Term, signed: bool, or_equal: bool = False) -> Term:
        assert a.width == b.width, f"a comparison of {a.width} and {b.width} bits"
        op = ("s" if signed else "u") + ("le" if or_equal else "lt")
        return self.const(int(or_equal), 1) if a is b else self.make(op, (a, b), (), 1)

    def ite(self, condition: Term, then: Term, otherwise: Term) -> Term:
        """``then`` where the one-bit condition is 1."""
        if condition.value is not None:
            return then if condition.value else otherwise
        if then is otherwise:
            return then
        if condition.op == "not":
            return self.ite(condition.args[0], otherwise, then)
        if then.sort == 1 and then.value is not None and otherwise.value is not None:
            return condition if then.value else self.bit_not(condition)
        assert then.sort == otherwise.sort, f"ite of {then.sort} and {otherwise.sort}"
        return self.make("ite", (condition, then, otherwise), (), then.sort)

    def all_of(self, terms: Iterable[Term]) -> Term:
        """1 where every one-bit term is."""
        result = self.const(1, 1)
        for term in terms:
            result = self.bit_and(result, term)
        return result

    # Floating point

    def float_op(self, op: str, args: tuple[Term, ...], sort: Sort, *params: int | str) -> Term:
        """A floating-point operator of SMT-LIB by its name here, see ``solver.py``."""
        return self.make(op, args, params, sort)

    def as_float(self, bits: Term, sort: FloatSort) -> Term:
        """The number that a bit pattern stands for."""
        assert bits.width == sort.width_bits
        return self.make("fp.from_bits", (bits,), (), sort)

    def same_float(self, a: Term, b: Term) -> Term:
        """SMT-LIB's `=` on numbers: NaN is itself, the zeros differ."""
        return self.const(1, 1) if a is b else self.make("fp.same", (a, b), (), 1)

    def define(self, variable: Term, fact: Term) -> None:
        """Give a variable its meaning, or its limits."""
        self.definitions[variable] = fact

    def facts_below(self, roots: Iterable[Term]) -> list[Term]:
        """The definitions of every defined variable that the roots depend on, directly or through others."""
        facts: dict[Term, None] = {}
        pending = list(roots)
        while pending:
            found = [self.definitions[t] for t in in_order(pending) if t in self.definitions]
            pending = [fact for fact in found if fact not in facts]
            facts.update(dict.fromkeys(pending))
        return list(facts)

"""Terms given to Bitwuzla: whether a claim holds for all values of the variables, within a time limit."""
from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import bitwuzla
from bitwuzla import Kind, Option, Result, RoundingMode

from kera_hw.rtl.formal.terms import FloatSort, Sort, Term, Terms, in_order
from kera_hw.support import toposort

Status = Literal["proved", "refuted", "unfinished"]

# Operators that Bitwuzla has under another name; the one-bit predicates come back as Bool.
_KINDS: Mapping[str, Kind] = {
    "not": Kind.BV_NOT, "and": Kind.BV_AND, "or": Kind.BV_OR, "xor": Kind.BV_XOR,
    "neg": Kind.BV_NEG, "add": Kind.BV_ADD, "sub": Kind.BV_SUB, "mul": Kind.BV_MUL,
    "udiv": Kind.BV_UDIV, "urem": Kind.BV_UREM,
    "shl": Kind.BV_SHL, "lshr": Kind.BV_SHR, "ashr": Kind.BV_ASHR, "eq": Kind.BV_COMP,
    "fp.abs": Kind.FP_ABS, "fp.neg": Kind.FP_NEG, "fp.from_bits": Kind.FP_TO_FP_FROM_BV,
}
_ROUNDED: Mapping[str, Kind] = {  # these take the rounding mode first
    "fp.add": Kind.FP_ADD, "fp.sub": Kind.FP_SUB, "fp.mul": Kind.FP_MUL, "fp.div": Kind.FP_DIV,
    "fp.fma": Kind.FP_FMA, "fp.sqrt": Kind.FP_SQRT, "fp.rti": Kind.FP_RTI,
    "fp.from_fp": Kind.FP_TO_FP_FROM_FP, "fp.from_sbv": Kind.FP_TO_FP_FROM_SBV,
    "fp.from_ubv": Kind.FP_TO_FP_FROM_UBV, "fp.to_sbv": Kind.FP_TO_SBV, "fp.to_ubv": Kind.FP_TO_UBV,
}
_PREDICATES: Mapping[str, Kind] = {
    "ult": Kind.BV_ULT, "ule": Kind.BV_ULE, "slt": Kind.BV_SLT, "sle": Kind.BV_SLE,
    "fp.same": Kind.EQUAL, "fp.eq": Kind.FP_EQUAL, "fp.lt": Kind.FP_LT, "fp.le": Kind.FP_LEQ,
    "fp.is_nan": Kind.FP_IS_NAN, "fp.is_inf": Kind.FP_IS_INF, "fp.is_zero": Kind.FP_IS_ZERO,
    "fp.is_neg": Kind.FP_IS_NEG,
}
_MODES: Mapping[str, RoundingMode] = {
    "rne": RoundingMode.RNE, "rtz": RoundingMode.RTZ, "rtp": RoundingMode.RTP, "rtn": RoundingMode.RTN,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a claim; ``model`` gives every variable of a counterexample its number."""

    status: Status
    seconds: float
    model: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Tuning:
    """Solver options by Bitwuzla's long names; ``seed`` of its random choices."""

    options: tuple[tuple[str, str | int | bool], ...] = ()
    seed: int = 1


PLAIN = Tuning()
NOTHING: Mapping[Term, Term] = {}


def solver_version() -> str:
    """Name and version of the solver."""
    return f"Bitwuzla {bitwuzla.version()}"


class Encoder:
    """Terms as terms of one Bitwuzla manager."""

    def __init__(self) -> None:
        self.manager = bitwuzla.TermManager()
        self._done: dict[Term, bitwuzla.Term] = {}
        self._truths: dict[Term, bitwuzla.Term] = {}
        self._sorts: dict[Sort, bitwuzla.Sort] = {}
        self._modes = {name: self.manager.mk_rm_value(mode) for name, mode in _MODES.items()}
        self._one = self.manager.mk_bv_value(self.sort(1), 1)
        self._zero = self.manager.mk_bv_value(self.sort(1), 0)

    def sort(self, sort: Sort) -> bitwuzla.Sort:
        found = self._sorts.get(sort)
        if found is None:
            if isinstance(sort, FloatSort):
                found = self.manager.mk_fp_sort(sort.exponent_bits, sort.significand_bits)
            else:
                found = self.manager.mk_bv_sort(sort)
            self._sorts[sort] = found
        return found

    def encode(self, term: Term) -> bitwuzla.Term:
        """The solver's term of the same sort."""
        if term not in self._done:
            for item in toposort([term], lambda t: () if t in self._done else t.args):
                if item not in self._done:
                    self._done[item] = self._node(item)
        return self._done[term]

    def forget(self, term: Term) -> None:
        """Let a bit-vector term stand for any value at all, whatever it is made of."""
        self._done[term] = self.manager.mk_const(self.sort(term.sort))

    def truth(self, term: Term) -> bitwuzla.Term:
        """A one-bit term as a Bool."""
        encoded = self.encode(term)
        found = self._truths.get(term)
        return self.manager.mk_term(Kind.EQUAL, [encoded, self._one]) if found is None else found

    def _node(self, term: Term) -> bitwuzla.Term:
        make = self.manager.mk_term
        op, args = term.op, [self._done[arg] for arg in term.args]
        if op == "const":
            return self.manager.mk_bv_value(self.sort(term.sort), int(term.params[0]))
        if op == "var":
            return self.manager.mk_const(self.sort(term.sort), str(term.params[0]))
        if op == "ite":
            return make(Kind.ITE, [self.truth(term.args[0]), *args[1:]])
        if op == "concat":
            return make(Kind.BV_CONCAT, args[::-1])
        if op == "extract":
            low = int(term.params[0])
            return make(Kind.BV_EXTRACT, args, [low + term.width - 1, low])
        if op in ("zext", "sext"):
            kind = Kind.BV_ZERO_EXTEND if op == "zext" else Kind.BV_SIGN_EXTEND
            return make(kind, args, [term.width - term.args[0].width])
        if op in _PREDICATES:
            self._truths[term] = truth = make(_PREDICATES[op], args)
            return make(Kind.ITE, [truth, self._one, self._zero])
        if op in _ROUNDED:
            return make(_ROUNDED[op], [self._modes[str(term.params[0])], *args], _indices(term))
        return make(_KINDS[op], args, _indices(term))


def _indices(term: Term) -> list[int]:
    """What an indexed operator is indexed by: the format or the width it converts to."""
    if not term.op.startswith(("fp.from_", "fp.to_")):
        return []
    if isinstance(term.sort, FloatSort):
        return [term.sort.exponent_bits, term.sort.significand_bits]
    return [term.sort]


class Claim:
    """A one-bit claim under assumptions, encoded once and decided for as many cases as one likes."""

    def __init__(
        self, terms: Terms, claim: Term, assumptions: Sequence[Term] = (), tuning: Tuning = PLAIN
    ) -> None:
        self._trivial = claim.value == 1
        self._encoder = Encoder()
        self._tuning = tuning
        roots = [claim, *assumptions]
        facts = [*assumptions, *terms.facts_below(roots)]
        make = self._encoder.manager.mk_term
        self._formulas = [self._encoder.truth(fact) for fact in facts]
        self._formulas.append(make(Kind.NOT, [self._encoder.truth(claim)]))
        self._variables = [term for term in in_order([*roots, *facts]) if term.op == "var"]

    def decide(self, limit_s: float, case: Mapping[Term, Term] = NOTHING) -> Answer:
        """Whether the claim holds wherever its assumptions do, with variables replaced as ``case`` says.

        Ends as unfinished after ``limit_s`` seconds, or soon after. A replaced variable may occur in what
        replaces it, where it stands for itself.
        """
        start = time.monotonic()
        if self._trivial:
            return Answer("proved", 0.0)
        encode, manager = self._encoder.encode, self._encoder.manager
        changes = {encode(variable): encode(term) for variable, term in case.items()}
        formulas = self._formulas
        if changes:
            formulas = [manager.substitute_term(item, changes) for item in formulas]
        options = bitwuzla.Options()
        options.set(Option.PRODUCE_MODELS, True)
        options.set(Option.SEED, self._tuning.seed)
        for name, value in self._tuning.options:
            options.set(name, value)
        solver = bitwuzla.Bitwuzla(manager, options)
        for formula in formulas:
            solver.assert_formula(formula)
        end = start + limit_s
        solver.configure_terminator(lambda: time.monotonic() > end)
        result = solver.check_sat()
        seconds = time.monotonic() - start
        if result == Result.UNSAT:
            return Answer("proved", seconds)
        if result == Result.UNKNOWN:
            return Answer("unfinished", seconds)
        return Answer("refuted", seconds, _values(solver, self._encoder, self._variables))


def prove(
    terms: Terms, claim: Term, limit_s: float, assumptions: Sequence[Term] = (), tuning: Tuning = PLAIN
) -> Answer:
    """Whether the one-bit claim is 1 wherever the assumptions are, for all values of the variables."""
    return Claim(terms, claim, assumptions, tuning).decide(limit_s)


def holds_locally(claim: Term, cut: Iterable[Term], limit_s: float) -> bool:
    """Whether a one-bit claim is 1 for all values of the terms in ``cut``: then it is 1 for theirs."""
    encoder = Encoder()
    for term in cut:
        encoder.forget(term)
    solver = bitwuzla.Bitwuzla(encoder.manager, bitwuzla.Options())
    solver.assert_formula(encoder.manager.mk_term(Kind.NOT, [encoder.truth(claim)]))
    end = time.monotonic() + limit_s
    solver.configure_terminator(lambda: time.monotonic() > end)
    return solver.check_sat() == Result.UNSAT


class Questions:
    """Many claims about the terms of one table, asked of one solver that keeps what it has learnt."""

    def __init__(self) -> None:
        self._encoder = Encoder()
        options = bitwuzla.Options()
        options.set(Option.PRODUCE_MODELS, True)
        self._solver = bitwuzla.Bitwuzla(self._encoder.manager, options)
        self._end = 0.0
        self._solver.configure_terminator(lambda: time.monotonic() > self._end)

    def holds(self, claim: Term, limit_s: float) -> Answer:
        """Whether a one-bit claim without defined variables is 1 for all values."""
        start = time.monotonic()
        self._end = start + limit_s
        negated = self._encoder.manager.mk_term(Kind.NOT, [self._encoder.truth(claim)])
        result = self._solver.check_sat(negated)
        seconds = time.monotonic() - start
        if result == Result.UNSAT:
            return Answer("proved", seconds)
        if result == Result.UNKNOWN:
            return Answer("unfinished", seconds)
        return Answer("refuted", seconds, self._model(claim))

    def _model(self, claim: Term) -> dict[str, int]:
        variables = [term for term in in_order([claim]) if term.op == "var"]
        return _values(self._solver, self._encoder, variables)


def _values(solver: bitwuzla.Bitwuzla, encoder: Encoder, variables: Iterable[Term]) -> dict[str, int]:
    return {
        str(term.params[0]): int(solver.get_value(encoder.encode(term)).value(2), 2) for term in variables
    }

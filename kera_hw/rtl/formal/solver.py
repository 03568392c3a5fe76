"""Terms given to Bitwuzla: whether a claim holds for all values of the variables, within a time limit."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import bitwuzla
from bitwuzla import Kind, Option, Result, RoundingMode

from kera_hw.rtl.formal.terms import FloatSort, Sort, Term, Terms, in_order

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
            for item in in_order([term]):
                if item not in self._done:
                    self._done[item] = self._node(item)
        return self._done[term]

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


def prove(
    terms: Terms,
    claim: Term,
    limit_s: float,
    assumptions: Sequence[Term] = (),
    tuning: Tuning = PLAIN,
    stopped: Callable[[], bool] = lambda: False,
) -> Answer:
    """Whether the one-bit claim is 1 wherever the assumptions are.

    Ends as unfinished after ``limit_s`` seconds, or soon after ``stopped`` answers True.
    """
    start = time.monotonic()
    if claim.value == 1:
        return Answer("proved", 0.0)
    encoder = Encoder()
    options = bitwuzla.Options()
    options.set(Option.PRODUCE_MODELS, True)
    options.set(Option.SEED, tuning.seed)
    for name, value in tuning.options:
        options.set(name, value)
    solver = bitwuzla.Bitwuzla(encoder.manager, options)
    roots = [claim, *assumptions]
    facts = [*assumptions, *terms.facts_below(roots)]
    for fact in facts:
        solver.assert_formula(encoder.truth(fact))
    solver.assert_formula(encoder.manager.mk_term(Kind.NOT, [encoder.truth(claim)]))
    end = start + limit_s
    solver.configure_terminator(lambda: time.monotonic() > end or stopped())
    result = solver.check_sat()
    seconds = time.monotonic() - start
    if result == Result.UNSAT:
        return Answer("proved", seconds)
    if result == Result.UNKNOWN:
        return Answer("unfinished", seconds)
    return Answer("refuted", seconds, _model(solver, encoder, [*roots, *facts]))


def _model(solver: bitwuzla.Bitwuzla, encoder: Encoder, roots: Iterable[Term]) -> dict[str, int]:
    variables = [term for term in in_order(roots) if term.op == "var"]
    return {
        str(term.params[0]): int(solver.get_value(encoder.encode(term)).value(2), 2) for term in variables
    }

"""How the solver is asked: the whole claim first, then case by case, harder cases split further."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from kera_hw.rtl.formal.cases import Case, class_count, classes, exponents, leading_ones
from kera_hw.rtl.formal.solver import PLAIN, Answer, Status, Tuning
from kera_hw.types import Type

MOST_CLASSES = 1000
"""Cases that splitting by classes alone may make, unless a strategy says how many inputs it is for."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """``whole_share`` of the time limit goes to the claim as it is.

    A case with subnormal numbers gets ``class_s`` seconds before it is split by their leading ones, one
    without ``case_s`` before it is split by exponents.
    Only the first ``inputs`` inputs are split into classes; None: as many as make at most MOST_CLASSES.
    """

    whole_share: float = 0.5
    class_s: float = 2.0
    case_s: float = 10.0
    inputs: int | None = None
    tuning: Tuning = PLAIN


DEFAULT = Strategy()


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome over all cases, how many there were, and the case and model of a counterexample."""

    status: Status
    seconds: float
    cases: int
    case: Case = ()
    model: Mapping[str, int] = field(default_factory=dict[str, int])


Decide = Callable[[Case, float], Answer]  # one case, within so many seconds


def decide(
    ask: Decide,
    kinds: Sequence[Type],
    start: Case,
    limit_s: float,
    strategy: Strategy = DEFAULT,
    progress: Callable[[str], None] = lambda _: None,
) -> Found:
    """Whether what ``ask`` decides holds in every case of ``start``, within ``limit_s`` seconds in all."""
    search = _Search(ask, kinds, limit_s, strategy)
    found = search.whole(start)
    return found if found is not None else search.cases(start, progress)


class _Search:
    def __init__(self, ask: Decide, kinds: Sequence[Type], limit_s: float, strategy: Strategy) -> None:
        self.ask, self.kinds, self.strategy = ask, kinds, strategy
        self.classed = kinds[: _classed(kinds) if strategy.inputs is None else strategy.inputs]
        self.begin, self.limit_s, self.solved = monotonic(), limit_s, 0

    def _passed(self) -> float:
        return monotonic() - self.begin

    def _try(self, case: Case, seconds: float) -> Found | None:
        """The outcome of one case: proved, refuted, or None where time was too short."""
        answer = self.ask(case, seconds)
        if answer.status == "unfinished":
            return None
        self.solved += 1
        return Found(answer.status, self._passed(), self.solved, case, answer.model)

    def whole(self, start: Case) -> Found | None:
        """The claim as it is; all of the time goes to it where nothing can be split."""
        share = self.strategy.whole_share if classes(self.classed, start) else 1.0
        return self._try(start, share * self.limit_s) if share else None

    def _further(self, case: Case) -> tuple[tuple[Case, Case] | None, float]:
        """How a case would be split, and how long it is tried before."""
        halves = leading_ones(self.classed, case)
        if halves is not None:
            return halves, self.strategy.class_s
        halves = exponents(self.kinds, case)
        return halves, self.strategy.case_s if halves is not None else self.limit_s

    def cases(self, start: Case, progress: Callable[[str], None]) -> Found:
        """Depth first: a case is of one class before it is tried, and split further where it proves hard."""
        pending = [start] if classes(self.classed, start) else []
        if not pending:
            return Found("unfinished", self._passed(), self.solved)
        while pending:
            case = pending.pop()
            halves = classes(self.classed, case)
            if halves is None:
                left = self.limit_s - self._passed()
                if left <= 0:
                    return Found("unfinished", self._passed(), self.solved)
                further, allowed = self._further(case)
                found = self._try(case, min(left, allowed)) if allowed else None
                if found is not None and found.status == "refuted":
                    return found
                if found is None and further is None:
                    return Found("unfinished", self._passed(), self.solved)
                halves = further if found is None else None
                if self.solved % 50 == 1:
                    progress(f"case {self.solved}")
            pending += reversed(halves or ())
        return Found("proved", self._passed(), self.solved)


def _classed(kinds: Sequence[Type]) -> int:
    """How many of the first inputs can be split into classes, but one at least."""
    count = 1
    for place, kind in enumerate(kinds):
        count *= class_count(kind)
        if count > MOST_CLASSES:
            return max(1, place)
    return len(kinds)

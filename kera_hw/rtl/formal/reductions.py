"""What the solver's theories say of reductions: all orders of steps, none of the exact ones."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from kera_hw.support import Diagnostic
from kera_hw.target import Instance, Refusal
from kera_hw.types import FloatType


class NoMeaning(Exception):
    """An operation that the solver's theories cannot say; carries what the table says of it."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def _on_floats(name: str, value: str) -> Callable[[Instance], bool]:
    """Whether an attribute of an operation on floats has this value."""
    return lambda instance: isinstance(instance.kind, FloatType) and instance.attrs.get(name) == value


_EXACT = Refusal(
    "exact sums and products are wider than the solver's numbers",
    "Compare on many items instead, without --formal.", _on_floats("order", "exact"),
)

REFUSED: Mapping[str, tuple[Refusal, ...]] = dict.fromkeys(
    ("reduce.sum", "reduce.prod", "reduce.dot"), (_EXACT,)
)

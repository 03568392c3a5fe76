"""How large a flat design may become: what is made is counted while it is made."""
from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from kera_hw.graph.node import Export, Node
from kera_hw.rtl.lower.design import LoweringError
from kera_hw.support import Diagnostic
from kera_hw.types import TensorType, Type, bit_width, element_type

NODE_BUDGET = 50_000
"""Scalar operations a flat design may hold; a division counts as its rows."""

STEP_BUDGET = 1_000_000
"""Operations of the program that unrolling may look at, also where they come to nothing: bounds its time."""

PORT_BUDGET = 65_536
"""Scalars that the parameters and the state, or the results and the state, may hold in all."""

WIRES_A_STEP = 64
"""Elements that are merely wired for each further step."""

DYNAMIC_STATE_BITS = 4096
"""State of a tensor indexed dynamically that may still be registers; beyond it belongs in RAM."""

_SMALLER = "Export a smaller piece, such as the loop's body or one window, and stream over it."

DIVISIONS = frozenset({"integer.div", "integer.rem"})
"""What takes a row for each digit."""


def weight(node: Node) -> int:
    """The scalar operations that a node of a flat region counts for."""
    if node.opcode in ("core.param", "core.constant"):
        return 0
    by_constant = len(node.inputs) > 1 and node.inputs[1].node.opcode == "core.constant"
    return weight_of(node.opcode, element_type(node.types[0]), by_constant)


def weight_of(opcode: str, kind: Type, by_constant: bool) -> int:
    """The same of an operation on scalars whose first result is a ``kind``: a division has a row a digit."""
    return bit_width(kind) if opcode in DIVISIONS and not by_constant else 1


class Meter:
    """Counts the operations made for one design, and the steps taken to make them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.operations = 0
        self.steps = 0
        self.general: dict[str, int] = {}
        """Operations that went into general circuits, by what those compute."""

    def made(self, node: Node) -> None:
        """A new node of the flat region. Raises LoweringError (K0610) for one too many."""
        self.operations += weight(node)
        self.will_make(0)

    def will_make(self, more: int) -> None:
        """So many nodes beside those made. Raises LoweringError (K0610) where that is too many."""
        if self.operations + more > NODE_BUDGET:
            self._refuse(f"operations than the {NODE_BUDGET:,} that fit one pipeline")

    def visited(self, steps: int) -> None:
        """A node of the program, each time a loop's round comes to it. Raises LoweringError (K0610)."""
        self.steps += steps
        if self.steps > STEP_BUDGET:
            self._refuse(f"steps than the {STEP_BUDGET:,} that are followed")

    def too_long(self) -> NoReturn:
        """Raises LoweringError (K0610): what would be followed cannot even be written down."""
        self._refuse(f"steps than the {STEP_BUDGET:,} that are followed")

    @contextmanager
    def writing(self, what: str) -> Generator[None]:
        """Credits what is made meanwhile to the general circuit of ``what``."""
        before = self.operations
        self.general.setdefault(what, 0)
        try:
            yield
        finally:
            self.general[what] += self.operations - before

    def shares(self) -> dict[str, float]:
        """The share of the operations that each general circuit has."""
        return {name: count / self.operations for name, count in self.general.items() if count}

    def _refuse(self, what: str) -> NoReturn:
        raise LoweringError(Diagnostic(
            "K0610",
            f"`{self.name}` unrolls to more {what}.",
            notes=(
                *(f"Of these, {count:,} are for {name}, which is computed by arithmetic of f64."
                  for name, count in self.general.items()),
                _SMALLER,
            ),
        ))


def _elements(kind: Type) -> int:
    return kind.size if isinstance(kind, TensorType) else 1


def check_ports(export: Export, kept: Collection[str] = ()) -> None:
    """Raise LoweringError (K0610) for more scalars than a pipeline is given, before any of them is made.

    ``kept``: state in memories, which is not given as scalars.
    """
    stored = sum(_elements(var.initial.type) for var in export.state if var.name in kept)
    takes = sum(map(_elements, export.region.params)) - stored
    gives = sum(map(_elements, export.region.result_types)) - stored
    for verb, count in (("takes", takes), ("gives", gives)):
        if count > PORT_BUDGET:
            raise LoweringError(Diagnostic(
                "K0610",
                f"`{export.name}` {verb} {count:,} values at once, more than the {PORT_BUDGET:,} that one "
                "pipeline can have.",
                notes=(_SMALLER,),
            ))


def registers_suffice(export: Export) -> frozenset[str]:
    """State that may be registers."""
    return frozenset(
        var.name for var in export.state
        if not isinstance(var.initial.type, TensorType) or bit_width(var.initial.type) <= DYNAMIC_STATE_BITS
    )


def check_state(export: Export, kept: Collection[str], reasons: Mapping[str, str]) -> None:
    """Raise LoweringError (K0611) for a state that would take too many registers.

    ``kept``: state in memories; ``reasons``, why other state can't be.
    """
    suffices = registers_suffice(export)
    for var in export.state:
        if var.name in suffices or var.name in kept:
            continue
        why = f" It can't be a memory: {reasons[var.name]}." if var.name in reasons else ""
        raise LoweringError(Diagnostic(
            "K0611",
            f"The state `{var.name}` of `{export.name}` holds {bit_width(var.initial.type):,} bits, more "
            f"than the {DYNAMIC_STATE_BITS:,} that are kept in registers.{why}",
            notes=("Read and write single elements of it, or make it smaller.",),
        ))

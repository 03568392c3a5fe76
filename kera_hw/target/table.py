"""The table of a target: how each operation is lowered, or why it is refused and what to do instead.

Every back end states one and works by it, so that nothing is said about a target which it does not do. An
operation without a lowering of its own is lowered by its row's expansion, where it has one, and refused where
a step of that is. ``kera_hw.target.coverage`` holds a table against the registry.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Node, Region, regions_in_order
from kera_hw.ops.spec import Attrs
from kera_hw.support import Diagnostic
from kera_hw.types import FloatType, Type, element_type

Lowering = TypeVar("Lowering")


class Instance(NamedTuple):
    """An operation on certain types with certain attributes: what predicates are asked about."""

    opcode: str
    operands: tuple[Type, ...]
    results: tuple[Type, ...]
    attrs: Attrs

    @property
    def kind(self) -> Type:
        """The element type that tells one lowering from another: a float if there is one, else the first."""
        elements = [element_type(kind) for kind in (*self.operands, *self.results)]
        return next((kind for kind in elements if isinstance(kind, FloatType)), elements[0])


def instance_of(node: Node) -> Instance:
    return Instance(node.opcode, tuple(ref.type for ref in node.inputs), node.types, dict(node.attrs))


def _always(_: Instance) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a target does not compute an operation ``when`` the types or attributes are such.

    ``reason`` is a clause that ends a sentence, ``remedy`` a sentence of its own. ``code`` is that of the
    target's refusals, unless it is given.
    """

    reason: str
    remedy: str
    when: Callable[[Instance], bool] = _always
    code: str | None = None
    of_step: bool = False
    """Whether the reason names an operation that the refused one is made of."""

    def diagnostic(self, code: str, noun: str, opcode: str, kind: Type) -> Diagnostic:
        """The refusal as it is shown."""
        message = f"`{opcode}` on {kind} has no {noun}: {self.reason}."
        return Diagnostic(self.code or code, message, notes=(self.remedy,))


GAP = Refusal(
    "the target was not told about it",
    "This is a gap in kera, not in your program; run the function on another target.", code="K0704",
)
"""Against an operation that was added to the registry while this target was forgotten."""


@dataclass(frozen=True)
class TargetTable(Generic[Lowering]):
    """One target. ``noun``: what it makes of an operation, as in "has no hardware"."""

    name: str
    noun: str
    lowerings: Mapping[str, Lowering]
    refused: Mapping[str, tuple[Refusal, ...]] = field(default_factory=dict[str, tuple[Refusal, ...]])
    code: str = "K0701"

    def refusal(self, node: Node, expander: Expander) -> Refusal | None:
        """The first reason against a node; None where it is lowered."""
        if node.opcode == "core.param" or (node.opcode in self.lowerings and node.opcode not in self.refused):
            return None
        instance = instance_of(node)
        for row in self.refused.get(node.opcode, ()):
            if row.when(instance):
                return row
        if node.opcode in self.lowerings:
            return None
        region = expander.region_of(node)
        return GAP if region is None else self._step_refused(region, expander)

    def _step_refused(self, region: Region, expander: Expander) -> Refusal | None:
        for inner in regions_in_order([region]):
            for step in inner.nodes():
                found = self.refusal(step, expander)
                if found is not None:
                    if found.of_step:
                        return found
                    reason = f"its step `{step.opcode}` has none: {found.reason}"
                    return Refusal(reason, found.remedy, code=found.code, of_step=True)
        return None

    def fault(self, node: Node, expander: Expander) -> Diagnostic | None:
        """What is to be said of a node that has no lowering; None for all others."""
        row = self.refusal(node, expander)
        return None if row is None else self.diagnostic(row, node)

    def diagnostic(self, row: Refusal, node: Node) -> Diagnostic:
        """A reason against a node as it is shown."""
        return row.diagnostic(self.code, self.noun, node.opcode, instance_of(node).kind)

    def faults(self, region: Region) -> list[Diagnostic]:
        """All that is to be said of a region and the regions inside it, each once."""
        expander = Expander()
        nodes = (node for inner in regions_in_order([region]) for node in inner.nodes())
        found = [fault for node in nodes if (fault := self.fault(node, expander)) is not None]
        return list(dict.fromkeys(found))

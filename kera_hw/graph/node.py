"""Nodes, references to their outputs, regions, and the graph of exports.

Nodes live in a hash-consed ``Store``: within one store two equal nodes are the same object, so identity
comparison is equality and common subexpressions cannot exist. Content hashes are computed on demand.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kera_hw.ops.spec import AttrValue, encode_attr
from kera_hw.support import Encoder, Span, content_hash, toposort
from kera_hw.types import Type

SCHEMA_VERSION = 1


class Node:
    """One operation: opcode, output types, input references, attributes in canonical key order."""

    __slots__ = ("_digest", "attrs", "inputs", "opcode", "types")

    def __init__(
        self,
        opcode: str,
        types: tuple[Type, ...],
        inputs: tuple[Ref, ...],
        attrs: tuple[tuple[str, AttrValue], ...],
    ) -> None:
        self.opcode = opcode
        self.types = types
        self.inputs = inputs
        self.attrs = attrs
        self._digest: bytes | None = None

    @property
    def hash(self) -> bytes:
        """32-byte content hash over schema version, opcode, types, input hashes and attributes."""
        if self._digest is None:
            def unhashed(node: Node) -> list[Node]:
                return [] if node._digest else [ref.node for ref in node.inputs]

            roots: list[Node] = [self]
            for node in toposort(roots, unhashed):
                if node._digest is None:
                    node._digest = node._compute_hash()
        assert self._digest is not None
        return self._digest

    def _compute_hash(self) -> bytes:
        out = Encoder().uint(SCHEMA_VERSION).text(self.opcode).uint(len(self.types))
        for kind in self.types:
            out.raw(kind.hash)
        out.uint(len(self.inputs))
        for ref in self.inputs:
            assert ref.node._digest is not None
            out.raw(ref.node._digest).uint(ref.index)
        out.uint(len(self.attrs))
        for key, value in self.attrs:
            out.text(key)
            encode_attr(out, value)
        return content_hash("node", out.finish())

    def attr(self, name: str) -> AttrValue:
        """The value of an attribute the operation is known to have; KeyError otherwise."""
        for key, value in self.attrs:
            if key == name:
                return value
        raise KeyError(name)

    def out(self, index: int = 0) -> Ref:
        return Ref(self, index)

    def __repr__(self) -> str:
        return f"<{self.opcode} {', '.join(map(str, self.types))}>"


class Ref(NamedTuple):
    """One output of one node."""

    node: Node
    index: int  # pyright: ignore[reportIncompatibleMethodOverride] - hides tuple.index, which nobody needs

    @property
    def type(self) -> Type:
        return self.node.types[self.index]


class Region:
    """A closed body: parameter types and result references. All it uses comes through ``core.param``.

    Its nodes are those reachable from the results; an unreachable node is no part of it.
    """

    __slots__ = ("_digest", "params", "results")

    def __init__(self, params: tuple[Type, ...], results: tuple[Ref, ...]) -> None:
        self.params = params
        self.results = results
        self._digest: bytes | None = None

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(ref.type for ref in self.results)

    @property
    def hash(self) -> bytes:
        if self._digest is None:
            # Held regions first: calls nest as deep as the program likes, and the stack does not.
            for region in regions_in_order([self], lambda region: region._digest is None):
                region._digest = region._compute_hash()
        assert self._digest is not None
        return self._digest

    def _compute_hash(self) -> bytes:
        out = Encoder().uint(SCHEMA_VERSION).uint(len(self.params))
        for kind in self.params:
            out.raw(kind.hash)
        out.uint(len(self.results))
        for ref in self.results:
            out.raw(ref.node.hash).uint(ref.index)
        return content_hash("region", out.finish())

    def nodes(self) -> list[Node]:
        """The region's nodes in topological order (inputs first), deterministic."""
        return toposort([ref.node for ref in self.results], lambda n: (ref.node for ref in n.inputs))

    def __repr__(self) -> str:
        return f"<region {len(self.params)} -> {len(self.results)}>"


def regions_of(node: Node) -> list[Region]:
    """Regions a node holds in its attributes, in attribute order."""
    found: list[Region] = []

    def visit(value: object) -> None:
        if isinstance(value, Region):
            found.append(value)
        elif isinstance(value, tuple):
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                visit(item)  # pyright: ignore[reportUnknownArgumentType]

    for _, value in node.attrs:
        visit(value)
    return found


def regions_in_order(
    roots: Iterable[Region], wanted: Callable[[Region], bool] = lambda _: True
) -> list[Region]:
    """The roots and all regions they hold, each once and after those it holds; without recursion.

    Regions that are not wanted are left out, with whatever only they hold.
    """

    def held(region: Region) -> list[Region]:
        return [inner for node in region.nodes() for inner in regions_of(node) if wanted(inner)]

    return toposort([region for region in roots if wanted(region)], held)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node came from in source: for names, `src` attributes and reports. Not part of identity.

    What is made for several places is made for the first of them and ``others``, each on a line of its own.
    """

    path: str
    span: Span
    line: int
    name: str | None = None
    others: tuple[Origin, ...] = ()

    def __str__(self) -> str:
        """``a.kera:3,4``, and each further file after a blank."""
        lines: dict[str, set[int]] = {}
        for place in self.places:
            lines.setdefault(place.path, set()).add(place.line)
        return " ".join(f"{path}:{','.join(map(str, sorted(of)))}" for path, of in lines.items())

    @property
    def lines(self) -> str:
        """``line 3`` or ``lines 3,4``, of the first place's file."""
        found = sorted({place.line for place in self.places if place.path == self.path})
        return f"line{'s' if len(found) > 1 else ''} {','.join(map(str, found))}"

    @property
    def places(self) -> tuple[Origin, ...]:
        return (self, *self.others)

    def joined(self, other: Origin | None) -> Origin:
        """With the other's places beside its own. The name stays, if there is one."""
        if other is None or other is self:
            return self
        seen = {(place.path, place.line) for place in self.places}
        more: list[Origin] = []
        for place in other.places:
            if (place.path, place.line) not in seen:
                seen.add((place.path, place.line))
                more.append(replace(place, others=()) if place.others else place)
        return replace(self, others=(*self.others, *more)) if more else self


def join_origins(origins: Iterable[Origin | None]) -> Origin | None:
    """The places of all of them."""
    found: Origin | None = None
    for origin in origins:
        found = origin if found is None else found.joined(origin)
    return found


Scopes = tuple[Origin, ...]
"""The text that a region's nodes come from: whole functions. A region within another has that one's too."""


def within(origin: Origin | None, scopes: Scopes) -> Origin | None:
    """The places that lie in a region's text: an equal node of another function is the same node, and has its
    places too. All of them where none does."""
    if origin is None or not origin.others or not scopes:
        return origin
    return join_origins(
        replace(place, others=()) for place in origin.places
        if any(s.path == place.path and s.span.start <= place.span.start <= s.span.end for s in scopes)
    ) or origin


@dataclass(frozen=True, slots=True)
class StateVar:
    """One leaf of a stream's state: its initial value is a ``core.constant`` node."""

    name: str
    initial: Ref
    origin: Origin | None = field(default=None, compare=False)  # where it is declared


@dataclass(frozen=True, slots=True)
class Export:
    """A ``pub`` item.

    ``region`` takes the leaves of the parameters in order, then (for a stream) the state leaves; it gives
    the leaves of the result, then the next state leaves.
    """

    name: str
    kind: str  # "fn" or "stream"
    params: tuple[tuple[str, Type], ...]
    result: Type
    region: Region
    state: tuple[StateVar, ...] = ()
    effects: tuple[str, ...] = ()
    places: tuple[Origin, ...] = field(default=(), compare=False)  # where the parameters are declared

    def __repr__(self) -> str:
        return f"<{signature(self)}>"

    def encode(self, out: Encoder) -> None:
        """Identity: kind, names of parameters and fields (through types), region, initial state."""
        out.text(self.name).text(self.kind).uint(len(self.params))
        for name, kind in self.params:
            out.text(name).raw(kind.hash)
        out.raw(self.result.hash).raw(self.region.hash).uint(len(self.state))
        for var in self.state:
            out.raw(var.initial.node.hash).uint(var.initial.index)
        out.uint(len(self.effects))
        for effect in self.effects:
            out.text(effect)


def signature(export: Export) -> str:
    """An export as its source declares it: kind, name, parameters and result."""
    params = ", ".join(f"{name}: {kind}" for name, kind in export.params)
    return f"{export.kind} {export.name}({params}) -> {export.result}"


class Graph:
    """The exports of a program, sorted bytewise by name, with debug origins beside them: of nodes, and the
    scopes of regions."""

    __slots__ = ("_digest", "exports", "origins", "scopes")

    def __init__(
        self, exports: Iterable[Export], origins: dict[Node, Origin] | None = None,
        scopes: dict[Region, Scopes] | None = None,
    ) -> None:
        self.exports = tuple(sorted(exports, key=lambda e: e.name.encode()))
        self.origins: dict[Node, Origin] = origins if origins is not None else {}
        self.scopes: dict[Region, Scopes] = scopes if scopes is not None else {}
        self._digest: bytes | None = None

    def __repr__(self) -> str:
        return f"<Graph {self.fingerprint}: {'; '.join(map(signature, self.exports)) or 'no exports'}>"

    @property
    def hash(self) -> bytes:
        if self._digest is None:
            out = Encoder().uint(SCHEMA_VERSION).uint(len(self.exports))
            for export in self.exports:
                export.encode(out)
            self._digest = content_hash("graph", out.finish())
        return self._digest

    @property
    def fingerprint(self) -> str:
        """``keg:sha3-256:<64 hex digits>``."""
        return "keg:sha3-256:" + self.hash.hex()

    def export(self, name: str) -> Export | None:
        return next((item for item in self.exports if item.name == name), None)

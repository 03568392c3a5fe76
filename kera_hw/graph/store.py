"""The hash-consed node store: inserting an existing node returns it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kera_hw.graph.node import Node, Origin, Ref, Region, Scopes
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, AttrValue
from kera_hw.types import IntType, TensorType, Type, is_wide, item_bytes, numpy_dtype, shape_of

_VALUES = frozenset(("core.constant", "core.param"))


class Store:
    """Creates nodes and regions; types come from the registry's typing rules, never from the caller.

    ``origin`` is recorded for nodes made while it is set. A node that is made again elsewhere has both
    places; but for constants and parameters, which are no operations.
    """

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Node] = {}
        self._inferred: dict[tuple[object, ...], tuple[Type, ...]] = {}
        self._regions: dict[tuple[object, ...], Region] = {}
        self.origins: dict[Node, Origin] = {}
        self._credited: dict[Node, tuple[Origin | None, set[tuple[str, int]]]] = {}
        self.origin: Origin | None = None
        self.scopes: dict[Region, Scopes] = {}
        self.spliced: Scopes = ()  # scopes of what was copied into the region that is being made

    def node(
        self, opcode: str, inputs: Sequence[Ref] = (), attrs: Mapping[str, AttrValue] | None = None
    ) -> Node:
        """The node of this operation; raises TypeRuleError when the operands do not fit."""
        spec = OPS[opcode]
        given = attrs or {}
        assert len(given) == len(spec.attrs) and all(key in given for key in spec.attrs), (
            f"{opcode} takes {spec.attrs}, got {sorted(given)}"
        )
        canonical = tuple((key, given[key]) for key in spec.attrs)
        operands = tuple(inputs)
        key = (opcode, operands, _attr_key(canonical) if canonical else ())
        found = self._nodes.get(key)
        if found is None:
            kinds = tuple([ref.node.types[ref.index] for ref in operands])
            types = self._inferred.get((opcode, kinds, key[2]))
            if types is None:
                types = self._inferred[opcode, kinds, key[2]] = spec.infer(kinds, given)
            found = Node(opcode, types, operands, canonical)
            self._nodes[key] = found
            if self.origin is not None:
                self.origins[found] = self.origin
        elif self.origin is not None and opcode not in _VALUES:
            self.credit(found, self.origin)
        return found

    def credit(self, node: Node, origin: Origin) -> None:
        """Record a further place of a node."""
        known = self.origins.get(node)
        if known is origin:
            return
        if known is None or origin.others:
            self.origins[node] = origin if known is None else known.joined(origin)
            return
        # One more of perhaps thousands: the lines so far are looked up, not gone through.
        last, lines = self._credited.get(node, (None, set[tuple[str, int]]()))
        if last is not known:
            lines = {(place.path, place.line) for place in known.places}
        if (origin.path, origin.line) not in lines:
            lines.add((origin.path, origin.line))
            others = (*known.others, origin)
            known = self.origins[node] = Origin(known.path, known.span, known.line, known.name, others)
        self._credited[node] = known, lines

    def op(self, opcode: str, *inputs: Ref, **attrs: AttrValue) -> Ref:
        """The first output of ``node``: what single-result operations want."""
        return Ref(self.node(opcode, inputs, attrs), 0)

    def param(self, index: int, kind: Type) -> Ref:
        return self.op("core.param", index=index, type=kind)

    def constant(self, kind: Type, value: int | float | bool | Array) -> Ref:
        """A scalar or tensor constant; ``value`` is in the type's array form (raw integer for fix)."""
        if is_wide(kind):
            assert isinstance(kind, IntType) and isinstance(value, int)
            data = value.to_bytes(item_bytes(kind), "little", signed=kind.signed)
            return self.op("core.constant", type=kind, value=data)
        dtype = numpy_dtype(kind)
        if isinstance(value, np.generic) and value.dtype == dtype and not isinstance(kind, TensorType):
            return self.op("core.constant", type=kind, value=value.astype(dtype.newbyteorder("<")).tobytes())
        array = np.asarray(value).astype(dtype, copy=False)
        array = np.broadcast_to(array, shape_of(kind))
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        return self.op("core.constant", type=kind, value=data)

    def region(self, params: Sequence[Type], results: Sequence[Ref]) -> Region:
        key = (tuple(params), tuple(results))
        return self._regions.setdefault(key, Region(tuple(params), tuple(results)))

    def add_scopes(self, region: Region, scopes: Scopes) -> None:
        """Record the text that a region's nodes come from."""
        known = self.scopes.get(region, ())
        more = tuple(scope for scope in scopes if scope not in known)
        if more:
            self.scopes[region] = known + tuple(dict.fromkeys(more))

    def __len__(self) -> int:
        return len(self._nodes)


def _attr_key(value: object) -> object:
    """Hash-consing key: Python's True == 1 must not merge a bool attribute with an integer one."""
    if isinstance(value, tuple):
        return tuple(_attr_key(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return (value.__class__, value)

"""Random graphs that reach every operation: for differential tests of passes, targets and file formats.

Randomness comes from the caller: a function that gives an integer below its argument, so that a
property-testing library may shrink what it finds.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kera_hw.graph.node import Export, Graph, Ref, Region, StateVar
from kera_hw.graph.store import Store
from kera_hw.ops.choosing import MAX_EXTENT, Chooser, RegionWanted
from kera_hw.ops.registry import OPS
from kera_hw.ops.sampling import random_constant, sample
from kera_hw.ops.spec import Trait
from kera_hw.types import FixType, FloatType, IntType, TupleType, Type, is_scalar

_MAX_NESTING = 2
_MAX_PARAMS = 5


def generatable_ops() -> list[str]:
    """Operations a random graph may hold: all but parameters and constants (made as needed) and effects."""
    return [name for name, spec in OPS.items() if not spec.traits & {Trait.SOURCE, Trait.OBSERVES}]


class GraphGenerator:
    """Grows regions node by node in one store.

    ``ops`` limits what is drawn from; ``floats`` admits float types; ``longest`` is the largest extent of a
    tensor with one axis.
    """

    def __init__(
        self, below: Callable[[int], int], ops: Sequence[str] | None = None, floats: bool = False,
        store: Store | None = None, longest: int = MAX_EXTENT,
    ) -> None:
        self.below = below
        self.ops = list(ops) if ops is not None else generatable_ops()
        self.leaf_ops = [name for name in self.ops if Trait.CONTROL not in OPS[name].traits]
        self.floats = floats
        self.longest = longest
        self.store = store or Store()

    def graph(self, size: int, must: str | None = None) -> Graph:
        """One exported function or stream of about ``size`` nodes, holding a node of ``must`` if given."""
        grower = _Grower(self, [], 0, open_params=True)
        grower.grow(size, must)
        results = grower.results(1 + self.below(3))
        if grower.forced is not None and grower.forced not in results:
            results.append(grower.forced)
        state: list[StateVar] = []
        names = [f"p{i}" for i in range(len(grower.params))]
        if self.below(3) == 0 and grower.params:
            # The last parameter becomes state: its next value is any value of its type.
            kind, grower.open_params = grower.params[-1], False
            state = [StateVar("s", self._constant(kind))]
            results.append(grower.value_of(kind))
            names.pop()
        region = self.store.region(grower.params, results)
        kinds = [ref.type for ref in results[: len(results) - len(state)]]
        result = kinds[0] if len(kinds) == 1 else TupleType(tuple(kinds))
        params = tuple(zip(names, grower.params, strict=False))
        flavour = "stream" if state else "fn"
        return Graph([Export("f", flavour, params, result, region, tuple(state))])

    def region(self, params: Sequence[Type], result_types: Sequence[Type], nesting: int) -> Region:
        """A closed region of the given types."""
        grower = _Grower(self, list(params), nesting, open_params=False)
        grower.grow(self.below(5))
        return self.store.region(params, [grower.value_of(kind) for kind in result_types])

    def _constant(self, kind: Type) -> Ref:
        chooser = Chooser(self.below, (), self.floats)
        return self.store.op("core.constant", type=kind, value=random_constant(kind, chooser))

    def constant(self, kind: Type) -> Ref:
        """A random constant of the type."""
        return self._constant(kind)


class _Grower:
    """The values of one region while it grows."""

    def __init__(self, home: GraphGenerator, params: list[Type], nesting: int, open_params: bool) -> None:
        self.home = home
        self.params = params
        self.nesting = nesting
        self.open_params = open_params
        self.values: list[Ref] = [home.store.param(i, kind) for i, kind in enumerate(params)]
        self.unused: dict[Ref, None] = {}
        self.forced: Ref | None = None  # an output of the operation that the graph must hold

    def grow(self, size: int, must: str | None = None) -> None:
        for number in range(size):
            forced = must is not None and number == size // 2
            op = must if forced else self._pick()
            if op is not None:
                made = self._add(op)
                self.forced = made if forced else self.forced

    def _pick(self) -> str | None:
        """Any operation; deep inside only those without regions, if there are any."""
        ops = self.home.ops if self.nesting < _MAX_NESTING else self.home.leaf_ops
        return ops[self.home.below(len(ops))] if ops else None

    def _add(self, op: str) -> Ref:
        pool = [ref.type for ref in self.values]
        drawn = sample(op, Chooser(self.home.below, pool, self.home.floats, self.home.longest))
        attrs = {key: self._fill(value) for key, value in drawn.attrs.items()}
        node = self.home.store.node(op, [self.value_of(kind) for kind in drawn.types], attrs)
        for ref in node.inputs:
            self.unused.pop(ref, None)
        for i in range(len(node.types)):
            self.values.append(node.out(i))
            self.unused[node.out(i)] = None
        return node.out()

    def _fill(self, value: Any) -> Any:
        """Regions where the sample asked for them."""
        if isinstance(value, RegionWanted):
            return self.home.region(value.params, value.result_types, self.nesting + 1)
        if isinstance(value, tuple):
            return tuple(self._fill(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
        return value

    def value_of(self, kind: Type) -> Ref:
        """A value of exactly this type: one that exists, a converted one, a new parameter or a constant."""
        below = self.home.below
        fitting = [ref for ref in self.values if ref.type == kind]
        if fitting and below(8):
            return fitting[below(len(fitting))]
        if self.open_params and len(self.params) < _MAX_PARAMS and below(3):
            self.params.append(kind)
            self.values.append(self.home.store.param(len(self.params) - 1, kind))
            return self.values[-1]
        if isinstance(kind, IntType) and below(4):
            sources = [ref for ref in self.values if is_scalar(ref.type) and isinstance(ref.type, IntType)]
            if sources:
                return self.home.store.op("convert.cast", sources[below(len(sources))], type=kind)
        if isinstance(kind, FloatType) and below(4):
            numbers = [ref for ref in self.values if isinstance(ref.type, (IntType, FixType, FloatType))]
            if numbers:
                return self.home.store.op("convert.cast", numbers[below(len(numbers))], type=kind)
        return self.home.constant(kind)

    def results(self, count: int) -> list[Ref]:
        """Values nobody uses yet first, so that little of the graph is dead."""
        wanted = list(self.unused)[-count:] or self.values[-count:]
        return wanted or [self.home.constant(IntType(8, False))]

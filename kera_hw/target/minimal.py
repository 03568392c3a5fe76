"""The least program of every operation on a type: what tables are asked about, and what proves them.

The samplers of ``ops.sampling`` know what an operation takes. Here a chooser answers them not at random: the
type in question where it is first asked for one, the least of everything else, and of choices between words,
such as orders and rounding modes, each in turn.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from kera_hw.graph.generate import GraphGenerator
from kera_hw.graph.node import Export, Graph, Node, Ref
from kera_hw.graph.store import Store
from kera_hw.ops.choosing import Chooser, RegionWanted, Sample
from kera_hw.ops.registry import OPS
from kera_hw.ops.sampling import sample
from kera_hw.ops.spec import Trait, TypeRuleError
from kera_hw.target.table import instance_of
from kera_hw.types import BOOL, F32, FORMATS, BoolType, FixType, FloatType, IntType, TensorType, Type

T = TypeVar("T")

WIDTHS = (1, 8, 13, 31, 32, 33, 63, 64)
TYPES: tuple[Type, ...] = (
    BOOL,
    *(IntType(width, signed) for width in WIDTHS for signed in (False, True)),
    *(FixType(width, fraction, signed) for width, fraction in ((1, 1), (8, 4), (33, 20), (64, 0))
      for signed in (False, True)),
    *FORMATS,
)
"""Element types that stand for all: the least and the greatest, whole words and their neighbours."""

I8 = IntType(8, True)
_DEFAULTS: dict[type[Type], Type] = {
    BoolType: BOOL, IntType: I8, FixType: FixType(8, 4, True), FloatType: F32,
}
_EXTENT = 3
"""Of a single axis: an exact sum over two elements is that of any other order."""


class _NotTaken(Exception):
    """The operation does not take the type."""


def _none(_: int) -> int:
    return 0


class _Directed(Chooser):
    """Chooses ``kind`` where a type is first asked for, and among words by ``path``, 0 beyond its end.

    ``counts`` records how many words there were each time.
    """

    def __init__(self, kind: Type, path: Sequence[int]) -> None:
        super().__init__(_none)
        self.kind, self.path = kind, path
        self.counts: list[int] = []
        self.taken = False

    def pick(self, items: Sequence[T]) -> T:
        if not self.taken and isinstance(items[0], Type):
            if self.kind not in items:
                raise _NotTaken
            self.taken = True
            return items[items.index(cast(T, self.kind))]
        if len(items) < 2 or not all(isinstance(item, str) for item in items):
            return items[0]
        place = len(self.counts)
        self.counts.append(len(items))
        return items[self.path[place] if place < len(self.path) else 0]

    def _take(self, fits: bool, default: Type) -> Type:
        if self.taken:
            return default
        if not fits:
            raise _NotTaken
        self.taken = True
        return self.kind

    def scalar(self, kinds: Sequence[type[Type]], low: int = 1) -> Type:
        narrow = isinstance(self.kind, IntType) and self.kind.width_bits < low
        return self._take(isinstance(self.kind, tuple(kinds)) and not narrow, _DEFAULTS[kinds[0]])

    def whole_bytes(self) -> IntType:
        found = self._take(isinstance(self.kind, IntType) and self.kind.width_bits % 8 == 0, I8)
        assert isinstance(found, IntType)
        return found

    def integer(self, low: int = 1, high: int = 64, signed: bool | None = None) -> IntType:
        own = self.kind
        fits = isinstance(own, IntType) and low <= own.width_bits <= high and signed in (None, own.signed)
        found = self._take(fits, IntType(max(low, min(high, 8)), bool(signed)))
        assert isinstance(found, IntType)
        return found

    def fixed(self, low: int = 1, high: int = 64) -> FixType:
        fits = isinstance(self.kind, FixType) and low <= self.kind.width_bits <= high
        found = self._take(fits, FixType(max(low, min(high, 8)), 0, True))
        assert isinstance(found, FixType)
        return found

    def shape(self, rank: int | None = None, least: int = 0) -> tuple[int, ...]:
        return (_EXTENT,) if rank is None or rank == 1 else (2,) * rank

    def tensor(self, kinds: Sequence[type[Type]], rank: int | None = None, least: int = 0) -> TensorType:
        return TensorType(self.scalar(kinds), self.shape(rank, least))

    def mixed(self, elements: Sequence[Type]) -> tuple[Type, ...]:
        return tuple(elements)


@dataclass(frozen=True, slots=True)
class Minimal:
    """A program that is one operation, on ``kind`` where it leaves the type open."""

    kind: Type
    node: Node
    export: Export


def minimal_programs(opcode: str, kind: Type, types: Sequence[Type] = TYPES) -> Iterator[Minimal]:
    """One program for each of the operation's variants on the type; none where it does not take it.

    Operations that give a type of the caller's choice are tried with each of ``types``.
    """
    for drawn, open_ in _samples(opcode, kind):
        named = "type" in OPS[opcode].attrs and drawn.types
        for other in types if named else (None,):
            attrs = drawn.attrs if other is None else {**drawn.attrs, "type": other}
            try:
                yield _program(opcode, kind if open_ else None, Sample(drawn.types, attrs))
            except TypeRuleError:
                assert other is not None, f"the sampler of {opcode} gives what its typing rule refuses"


def _samples(opcode: str, kind: Type) -> Iterator[tuple[Sample, bool]]:
    """A sample for each way through the choices between words, and whether it leaves the type open.

    Of an operation that does not, there are samples on the first type alone.
    """
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = waiting.pop(0)
        chooser = _Directed(kind, path)
        try:
            drawn = sample(opcode, chooser)
        except _NotTaken:
            return
        if not chooser.taken and kind != TYPES[0]:
            return
        for place in range(len(path), len(chooser.counts)):
            zeros = (0,) * (place - len(path))
            waiting += [(*path, *zeros, choice) for choice in range(1, chooser.counts[place])]
        yield drawn, chooser.taken


def _program(opcode: str, kind: Type | None, drawn: Sample) -> Minimal:
    store = Store()
    generator = GraphGenerator(_none, floats=True, store=store)

    def filled(value: Any) -> Any:
        if isinstance(value, RegionWanted):
            return generator.region(value.params, value.result_types, 0)
        if isinstance(value, tuple):
            return tuple(filled(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
        return value

    if opcode == "core.param":
        node = store.param(0, drawn.attrs["type"]).node
        operands = [node.out()]
    else:
        operands = [store.param(k, given) for k, given in enumerate(drawn.types)]
        node = store.node(opcode, operands, {name: filled(value) for name, value in drawn.attrs.items()})
    params = tuple((f"p{k}", ref.type) for k, ref in enumerate(operands))
    region = store.region([kind for _, kind in params], _results(node, operands))
    result = region.results[0].type
    export = Graph([Export("f", "fn", params, result, region)]).exports[0]
    return Minimal(kind or instance_of(node).kind, node, export)


def _results(node: Node, operands: Sequence[Ref]) -> list[Ref]:
    """One result, then the observations of an operation that observes."""
    if Trait.OBSERVES in OPS[node.opcode].traits:
        return [operands[0], *(node.out(k) for k in range(len(node.types)))]
    return [node.out()]

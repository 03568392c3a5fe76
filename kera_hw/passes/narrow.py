"""Range-based narrowing: what an interval decides is decided, and arithmetic is no wider than its values."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph import Graph, Ref, Region, Store
from kera_hw.graph.analysis import Interval, RegionRanges
from kera_hw.passes.constants import splat_value
from kera_hw.passes.rewrite import Candidate, Rewriter
from kera_hw.types import IntType, element_type

_NARROWABLE = ("integer.add", "integer.sub", "integer.mul")


def narrow(store: Store, graph: Graph) -> Graph:
    return _Narrower(store).graph(graph)


class _Narrower(Rewriter):
    """Carries the ranges of the original region whose nodes are being rebuilt."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, self._narrow)
        self._ranges = RegionRanges(Region((), ()))

    def rewrite(self, region: Region) -> Region:
        self._ranges = RegionRanges(region)
        return super().rewrite(region)

    def _narrow(self, node: Candidate) -> Sequence[Ref] | None:
        if len(node.original.types) != 1:
            return None
        ranges = [self._ranges.of(ref) for ref in node.original.inputs]
        known = [item for item in ranges if item is not None]
        if len(known) != len(ranges) or not known:
            return None
        decided = _decide(node, known)
        if decided is None and node.opcode in _NARROWABLE:
            decided = self._shrink(node, known)
        return [decided] if decided is not None and decided.type == node.original.types[0] else None

    def _shrink(self, node: Candidate, known: Sequence[Interval]) -> Ref | None:
        """The operation in the narrowest type that holds both operands and the result, then extended."""
        kind = element_type(node.original.types[0])
        result = self._ranges.of(node.original.out())
        if not isinstance(kind, IntType) or result is None:
            return None
        need = result
        for item in known:
            need = need.hull(item)
        small = _smallest_type(need)
        full = Interval(kind.min, kind.max)
        if small is None or small.width_bits >= kind.width_bits or result == full:
            return None
        operands = [_cast(node.store, ref, small) for ref in node.inputs]
        return _cast(node.store, node.store.op(node.opcode, *operands), kind)


def _cast(store: Store, ref: Ref, kind: IntType) -> Ref:
    return ref if element_type(ref.type) == kind else store.op("convert.cast", ref, type=kind)


def _smallest_type(need: Interval) -> IntType | None:
    signed = need.low < 0
    width = max(need.high.bit_length(), (-need.low - 1).bit_length() if signed else 0, 1) + signed
    return IntType(width, signed) if width <= 64 else None


def _decide(node: Candidate, known: Sequence[Interval]) -> Ref | None:
    """Comparisons, masks, remainders, minima and casts that the ranges settle."""
    if node.opcode.startswith("compare.") and len(known) == 2:
        verdict = _compare(node.opcode, known[0], known[1])
        return None if verdict is None else node.store.constant(node.original.types[0], verdict)
    if node.opcode in ("integer.min", "integer.max", "fixed.min", "fixed.max"):
        lower = 0 if known[0].high <= known[1].low else 1 if known[1].high <= known[0].low else None
        if lower is not None:
            return node.inputs[lower if node.opcode.endswith("min") else 1 - lower]
    if node.opcode in ("integer.abs", "fixed.abs") and known[0].low >= 0:
        return node.inputs[0]
    if node.opcode == "integer.rem" and known[0].low >= 0 and known[0].high < known[1].low:
        return node.inputs[0]
    if node.opcode == "bits.and" and known[0].low >= 0:
        mask = splat_value(node.inputs[1])
        if mask is not None and mask >= 0 and mask & (mask + 1) == 0 and known[0].high <= mask:
            return node.inputs[0]
    if node.opcode == "convert.cast":
        return _cast_chain(node, known[0])
    return None


def _cast_chain(node: Candidate, value: Interval) -> Ref | None:
    """cast(cast(x)) goes straight from x when the inner cast kept the value."""
    inner = node.inputs[0]
    if inner.node.opcode != "convert.cast":
        return None
    source, middle = element_type(inner.node.inputs[0].type), element_type(inner.type)
    target = element_type(node.original.types[0])
    if not all(isinstance(kind, IntType) for kind in (source, middle, target)):
        return None
    assert isinstance(source, IntType) and isinstance(middle, IntType)
    kept = Interval(source.min, source.max).within(Interval(middle.min, middle.max))
    return node.store.op("convert.cast", inner.node.inputs[0], type=target) if kept else None


def _compare(opcode: str, a: Interval, b: Interval) -> bool | None:
    if opcode in ("compare.gt", "compare.ge"):
        a, b, opcode = b, a, {"compare.gt": "compare.lt", "compare.ge": "compare.le"}[opcode]
    if opcode == "compare.lt":
        return True if a.high < b.low else False if a.low >= b.high else None
    if opcode == "compare.le":
        return True if a.high <= b.low else False if a.low > b.high else None
    if a.high < b.low or b.high < a.low:
        return opcode == "compare.ne"
    if a.low == a.high == b.low == b.high:
        return opcode == "compare.eq"
    return None

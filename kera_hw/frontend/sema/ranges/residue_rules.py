"""What each operation does to residues."""
from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from kera_hw.frontend.sema.ranges.residue import ANY, Residue, reduced
from kera_hw.frontend.sema.ranges.symbol import Known, Symbol
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import FixType, IntType, Type

_KEEP = frozenset((
    "tensor.index", "tensor.slice", "tensor.reshape", "tensor.permute", "tensor.broadcast", "tensor.reverse",
))


def residue_of(
    name: str, kind: Type, args: Sequence[Symbol], known: Sequence[Known], interval: Interval
) -> Residue:
    """Of an operation's result. Where it may wrap, only what holds modulo its type's 2^W is left."""
    if interval.low == interval.high:
        return (0, interval.low)
    found, exact = _exact(name, args, known)
    if found == ANY or not isinstance(kind, IntType):
        return ANY
    full = type_interval(kind)
    if full is None or (exact is not None and exact.within(full)):
        return found
    return reduced(gcd(found[0], 1 << kind.width_bits), found[1])


def _exact(name: str, args: Sequence[Symbol], known: Sequence[Known]) -> tuple[Residue, Interval | None]:
    """The residue of the result without wrapping, and the range of that result (None: unknown)."""
    if name in _KEEP:
        return known[0].residue, known[0].interval
    if name not in ("integer.add", "integer.sub", "integer.mul", "integer.neg", "bits.shl", "convert.cast"):
        return ANY, None
    a, one = known[0].residue, known[0].interval
    if one is None:
        return ANY, None
    if name == "convert.cast":
        whole = isinstance(args[0].kind, IntType) and not isinstance(args[0].kind, FixType)
        return (a, one) if whole else (ANY, None)
    if name == "integer.neg":
        return reduced(a[0], -a[1]), Interval(-one.high, -one.low)
    b, two = known[1].residue, known[1].interval
    if two is None:
        return ANY, None
    if name == "bits.shl":
        if two.low != two.high or not 0 <= two.low < 64:
            return ANY, None
        b, two = (0, 1 << two.low), Interval(1 << two.low, 1 << two.low)
    if name in ("integer.mul", "bits.shl"):
        corners = [x * y for x in one for y in two]
        modulus = gcd(a[0] * b[0], a[0] * b[1], a[1] * b[0])
        return reduced(modulus, a[1] * b[1]), Interval(min(corners), max(corners))
    if name == "integer.add":
        return reduced(gcd(a[0], b[0]), a[1] + b[1]), Interval(one.low + two.low, one.high + two.high)
    return reduced(gcd(a[0], b[0]), a[1] - b[1]), Interval(one.low - two.high, one.high - two.low)

"""The registry as a whole: well-formed rows, traits proved on small integers and float edges, type errors."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kera_hw.ops.document import reference_page
from kera_hw.ops.registry import FAMILIES, OPS
from kera_hw.ops.spec import Array, Trait, TypeRuleError
from kera_hw.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    U32,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    numpy_dtype,
)
from tests.conformance.vectors import bits_dtype, special_bits, values_of
from tests.unit.ops_oracle import run_op

I3, U3, X3 = IntType(3, True), IntType(3, False), FixType(3, 1, True)
WIDE_ENOUGH = {"bits.reverse_bytes": IntType(16, True)}  # operations that 3 bits do not fit
PROVED = (Trait.COMMUTATIVE, Trait.ASSOCIATIVE, Trait.IDEMPOTENT, Trait.INVOLUTION)
ELEMENTWISE = [op for op, spec in OPS.items() if Trait.ELEMENTWISE in spec.traits and not spec.attrs]


def _values(kind: Type) -> Array:
    if kind == BOOL:
        return np.array([False, True])
    if isinstance(kind, FloatType):
        return values_of(np.array(special_bits(kind), bits_dtype(kind)), kind)
    raw = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw, IntType)
    return np.arange(raw.min, raw.max + 1).astype(numpy_dtype(kind))


def _kinds(op: str, count: int) -> list[Type]:
    """The small types, and float formats, on which an operation of ``count`` equal operands is defined."""
    fitting: list[Type] = []
    for kind in (WIDE_ENOUGH.get(op, I3), U3, X3, FixType(3, 3, False), BOOL, F16, BF16, F32, F64):
        try:
            OPS[op].infer((kind,) * count, {})
            fitting.append(kind)
        except TypeRuleError:
            continue
    return fitting


def _grid(kind: Type, count: int) -> list[Array]:
    """Every combination of ``count`` values of a type, one array an operand."""
    values = _values(kind)
    return [axis.ravel() for axis in np.meshgrid(*[values] * count, indexing="ij")]


def _same(a: Array, b: Array) -> bool:
    """Equal bit for bit."""
    return a.dtype == b.dtype and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def _holds(op: str, trait: Trait, kind: Type) -> bool:
    """Whether the law holds for every combination of values."""

    def apply(*args: Array) -> Array:
        outs = run_op(op, args, (kind,) * len(args))
        return outs[0]

    if trait is Trait.COMMUTATIVE:
        a, b = _grid(kind, 2)
        return _same(apply(a, b), apply(b, a))
    if trait is Trait.ASSOCIATIVE:
        if OPS[op].infer((kind, kind), {}) != (kind,):
            return False
        a, b, c = _grid(kind, 3)
        return _same(apply(apply(a, b), c), apply(a, apply(b, c)))
    if trait is Trait.IDEMPOTENT:
        a = _values(kind)
        return _same(apply(a, a), a)
    a = _values(kind)
    return OPS[op].infer((kind,), {}) == (kind,) and _same(apply(apply(a)), a)


def _arity(trait: Trait) -> int:
    return 1 if trait is Trait.INVOLUTION else 2


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_claimed_traits_hold_for_every_small_value(op: str) -> None:
    for trait in PROVED:
        if trait in OPS[op].traits:
            kinds = _kinds(op, _arity(trait))
            assert kinds, f"{op} claims {trait} but no small type tries it"
            for kind in kinds:
                assert _holds(op, trait, kind), (op, trait, kind)


LOW_BITS = [op for op, spec in OPS.items() if Trait.LOW_BITS in spec.traits]


def _low_bits_hold(op: str) -> bool:
    """Whether operands that agree in their low n bits give results that do, on every small type."""
    count = 1 if _kinds(op, 1) else 2
    kinds = _kinds(op, count)
    assert kinds and not any(isinstance(kind, FloatType) for kind in kinds), op
    for kind in kinds:
        args = _grid(kind, count)
        result, = run_op(op, args, (kind,) * count)
        numbers = [part.astype(np.int64) for part in (*args, result)]
        for low in (1, 2, 3) if kind != BOOL else (1,):
            rows = list(zip(*(part & (1 << low) - 1 for part in numbers)))
            if len(set(rows)) != len({row[:-1] for row in rows}):
                return False
    return True


@pytest.mark.parametrize("op", LOW_BITS)
def test_low_bits_depend_on_low_bits(op: str) -> None:
    assert _low_bits_hold(op)


def test_a_wrong_claim_about_low_bits_is_seen() -> None:
    others = ("integer.abs", "integer.div", "integer.saturating_add", "bits.popcount")
    assert not any(map(_low_bits_hold, others))


def test_every_claim_is_tried() -> None:
    """A law claimed by an operation outside the loop above would be claimed unproved."""
    unproved = {op for op, spec in OPS.items() if spec.traits & set(PROVED)} - set(ELEMENTWISE)
    assert unproved == {"tensor.reverse"}  # proved below


def test_reverse_undoes_itself() -> None:
    kind = TensorType(U3, (2, 3, 4))
    value = np.arange(2 * 24).reshape(2, 2, 3, 4).astype(np.uint8) % 7
    for axis in range(3):
        once, = run_op("tensor.reverse", [value], (kind,), axis=axis)
        twice, = run_op("tensor.reverse", [once], (kind,), axis=axis)
        assert np.array_equal(twice, value) and not np.array_equal(once, value)


def test_unclaimed_laws_are_listed(record_property: Callable[[str, object], None]) -> None:
    """Information: laws that hold on 3 bits without being claimed. The list itself may not be wrong."""
    found: list[str] = []
    for op, trait in product(ELEMENTWISE, PROVED):
        if trait in OPS[op].traits:
            continue
        kinds = _kinds(op, _arity(trait))
        if kinds and all(_holds(op, trait, kind) for kind in kinds):
            found.append(f"{op}: {trait.value}")
    record_property("unclaimed", ", ".join(found))
    assert not any(entry.startswith(("integer.sub:", "integer.div:", "bits.shl:")) for entry in found)


def test_rows_are_well_formed() -> None:
    assert list(OPS) == sorted(OPS)
    for family, table in FAMILIES.items():
        for spec in table:
            assert spec.name.startswith(family + "."), spec.name
            assert spec.doc.endswith(".") and len(spec.doc) > 10, spec.name
            assert list(spec.attrs) == sorted(spec.attrs, key=str.encode), spec.name


def test_the_reference_page_is_fresh() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "ops.md"
    assert page.read_text("utf-8") == reference_page(), "run `python -m kera_hw.ops.document` again"


def _t(*shape: int, of: Type = U32, space: str = "host") -> TensorType:
    return TensorType(of, shape, space)


E4M3 = FloatType("e4m3", 4, 3)
REJECTED: list[tuple[str, tuple[Type, ...], dict[str, object], str]] = [
    ("integer.add", (U32,), {}, "`add` takes two operands, but got 1."),
    ("integer.add", (U32, I3), {}, "`add` takes operands of one type, but got u32 and i3."),
    ("integer.add", (F32, F32), {}, "`add` takes integer operands, but got f32."),
    ("integer.add", (_t(2), _t(3)), {}, "`add` takes tensors of one shape, but got [u32; 2] and [u32; 3]."),
    ("integer.add", (_t(2), _t(2, space="device")), {}, "`add` takes tensors in one memory space, but got"),
    ("integer.add_carry", (U32, U32, U32), {}, "`add_carry` takes a bool as its carry, but got u32."),
    ("fixed.mul", (X3, FixType(3, 1, False)), {}, "`mul` takes two signed or two unsigned formats"),
    ("fixed.mul", (FixType(40, 1, True),) * 2, {}, "needs 80 bits, but fixed point ends at 64."),
    ("fixed.add", (X3, FixType(3, 2, True)), {}, "`add` takes operands of one type"),
    ("bits.shl", (U32, I3), {}, "`shl` takes an unsigned amount, but got i3."),
    ("bits.not", (F32,), {}, "`not` takes integer or bool operands, but got f32."),
    ("bits.reverse_bytes", (U3,), {}, "`reverse_bytes` takes integers of whole bytes, but u3 has 3 bits."),
    ("bits.extract", (U32,), {"high": 32, "low": 0}, "takes bits 32 down to 0, but u32 has bits 31"),
    ("bits.test", (U32,), {"index": 32}, "`test` takes bit 32"),
    ("convert.bitcast", (U32,), {"type": I3}, "`bitcast` keeps the bits, but u32 has 32 and i3 has 3."),
    ("convert.round_to", (X3,), {"type": U3, "mode": "floor", "overflow": "wrap"}, "rounds to a fixed-point"),
    ("convert.round_to", (X3,), {"type": X3, "mode": "up", "overflow": "wrap"}, "knows the modes floor"),
    ("convert.cast", (U32,), {"type": _t(2)}, "converts to scalar types"),
    ("tensor.index", (_t(2, 3), U32), {}, "`index` takes 2 indices for [u32; 2, 3], but got 1."),
    ("tensor.index", (_t(2), BOOL), {}, "`index` takes integers as indices, but got bool."),
    ("tensor.slice", (_t(2), U32), {"sizes": (3,)}, "`slice` takes 3 elements of an axis of 2"),
    ("tensor.update", (_t(2), I3, U32), {}, "`update` takes a value of type u32 for [u32; 2], but got i3."),
    ("tensor.reshape", (_t(6),), {"shape": (4,)}, "keeps the number of elements, but [u32; 6] has 6, not 4."),
    ("tensor.reshape", (_t(0),), {"shape": ()}, "takes a shape of one or more extents"),
    ("tensor.permute", (_t(2, 3),), {"axes": (0, 0)}, "takes each axis of [u32; 2, 3] once"),
    ("tensor.broadcast", (_t(2),), {"shape": (3,)}, "cannot stretch [u32; 2] to the shape [3]."),
    ("tensor.concat", (_t(2, 3), _t(2, 4)), {"axis": 0}, "takes tensors that agree off axis 0"),
    ("tensor.concat", (_t(2),), {"axis": 1}, "got axis 1, but [u32; 2] has axes 0 to 0."),
    ("tensor.pad", (_t(2), U32), {"high": (-1,), "low": (0,)}, "takes 1 counts of at least 0"),
    ("tensor.gather", (_t(2), _t(2, of=F32)), {}, "`gather` takes integer operands"),
    ("tensor.stack", (U32, I3), {}, "`stack` takes operands of one type, but got u32 and i3."),
    ("tensor.shift_in", (_t(2), I3), {}, "appends a value of type u32 to [u32; 2], but got i3."),
    ("reduce.min", (_t(0),), {"axis": 0}, "`min` takes an axis that is not empty, but got [u32; 0]."),
    ("reduce.sum", (_t(2),), {"axis": 0, "order": "tree"}, "takes no `order`"),
    ("reduce.sum", (_t(2, of=F32),), {"axis": 0, "order": ""}, "knows the orders lanes, sequential"),
    ("reduce.mean", (_t(9, of=U3),), {"axis": 0, "order": ""}, "divides by 9, which u3 does not hold"),
    ("reduce.dot", (_t(2), _t(3)), {"mul": "", "order": ""}, "takes vectors of one length"),
    ("reduce.matmul", (_t(2, 3), _t(2, 3)), {"mul": ""}, "`matmul` takes [M, K] and [K, N]"),
    ("reduce.matmul", (_t(2, 3), _t(3, 2)), {"mul": "fused"}, "takes no `mul`"),
    ("reduce.conv2d", (_t(1, 2, 2), _t(1, 1, 3, 3)), {"mul": "", "pad": 0, "stride": 1}, "spans 3, but"),
    ("reduce.max_pool2d", (_t(1, 4, 4),), {"pad": 2, "size": 2, "stride": 1}, "larger than its padding"),
    ("control.select", (U32, U32, U32), {}, "`select` takes a bool as its condition, but got u32."),
    ("memory.transfer", (_t(2),), {"space": "moon"}, "knows the spaces device, host"),
    ("core.param", (), {"index": 0, "type": _t(2, of=E4M3)}, "knows the formats f16, bf16, f32, f64, and"),
    ("core.constant", (), {"type": E4M3, "value": b"\0"}, "knows the formats"),
    ("convert.cast", (F32,), {"type": E4M3}, "knows the formats"),
    ("convert.bitcast", (IntType(8, False),), {"type": E4M3}, "knows the formats"),
    ("tensor.iota", (), {"size": 2, "type": E4M3}, "knows the formats"),
    ("core.constant", (), {"type": U3, "value": b"\x08"}, "has bits beyond its type"),
    ("core.constant", (), {"type": BOOL, "value": b"\x02"}, "has bits beyond its type"),
    ("core.constant", (), {"type": U32, "value": b"\0"}, "does not have 1 bytes."),
    ("core.constant", (), {"type": F32, "value": b"\0\0\xc0\xff"}, "a NaN that is not the canonical one."),
]


@pytest.mark.parametrize(("op", "types", "attrs", "message"), REJECTED, ids=lambda item: str(item)[:40])
def test_misfits_are_told_in_a_sentence(
    op: str, types: tuple[Type, ...], attrs: dict[str, object], message: str
) -> None:
    with pytest.raises(TypeRuleError) as caught:
        OPS[op].infer(types, attrs)
    text = str(caught.value)
    assert message in text
    assert text.endswith(".") and text[0] in "`ATB"


def test_no_format_that_cannot_be_stored_gets_in() -> None:
    """Every float of a graph comes from a parameter, a constant, a conversion, or a count."""
    entries = {op for op, spec in OPS.items() if "type" in spec.attrs}
    assert entries == {row[0] for row in REJECTED if "knows the formats" in row[3]} | {"convert.round_to"}

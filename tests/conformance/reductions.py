"""Reductions, contractions and composites of the interpreter, one foreign scalar step after another.

The orders are written out here a second time, as plainly as the language states them; every step is
SoftFloat's (MPFR's on bf16), exact sums are Python's integers rounded by MPFR.
``python -m tests.conformance.reductions`` runs them at length.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import gmpy2
import numpy as np

from kera_hw.types import F32, F64, FloatType
from tests.conformance import oracle, report
from tests.conformance.arithmetic import FORMATS, run_float
from tests.conformance.report import Row
from tests.conformance.steps import (
    ORDERS,
    Counted,
    Products,
    Scalar,
    Scalars,
    exact_product,
    exact_total,
    fold,
    lanes,
    product_term,
    rows,
    run,
    term,
)
from tests.conformance.vectors import Bits, bits_dtype

# ---------------------------------------------------------------- checks


def _along(scalars: Scalars, op: str, order: str, bits: Bits) -> list[int]:
    """What sum, prod or mean gives on each row."""
    kind, unit = scalars.kind, scalars.unit
    step = unit.mul if op == "prod" else unit.add
    found: list[int] = []
    for line in bits:
        values = scalars.load(line)
        if not values:
            total = scalars.one if op == "prod" else scalars.zero
        elif order == "exact":
            total = scalars.load(np.array([_exact(kind, op, line)], bits_dtype(kind)))[0]
        else:
            pick = values.__getitem__
            total = fold(order, len(values), pick, lambda acc, i: step(acc, pick(i)), step)  # noqa: B023
        if op == "mean":
            total = unit.div(total, scalars.number(len(values)))
        found.append(int(scalars.store([total])[0]))
    return found


def _judge(scalars: Scalars, order: str) -> str:
    return "Python's integers and MPFR" if order == "exact" else scalars.unit.name


def _exact(kind: FloatType, op: str, line: Bits) -> int:
    terms = [term(value) for value in oracle.as_doubles(line, kind).tolist()]
    return exact_product(kind, terms) if op == "prod" else exact_total(kind, terms)


def _share(count: int, length: int) -> int:
    """Fewer rows of a length that shows how blocks combine."""
    return count if length < 1000 else max(count // 16, 1)


def folds(kind: FloatType, lengths: Sequence[int], count: int) -> Iterator[Row]:
    """sum, prod and mean in every order."""
    scalars, rng = Scalars(kind), np.random.default_rng(11)
    for op in ("sum", "prod", "mean"):
        for order in ORDERS:
            counted = Counted(f"reduce.{op}", kind, _judge(scalars, order))
            for length in lengths:
                bits = rows(kind, _share(count, length), length, rng)
                got = run(f"reduce.{op}", kind, [bits], axis=0, order=order)
                counted.compare(got, _along(scalars, op, order, bits))
            yield counted.row(f"order {order}")


def muls(kind: FloatType) -> tuple[str, ...]:
    return ("fused", "unfused", "wide") if kind == F32 else ("fused", "unfused")


def dots(kind: FloatType, lengths: Sequence[int], count: int) -> Iterator[Row]:
    scalars, rng = Scalars(kind), np.random.default_rng(12)
    for mul in muls(kind):
        by = Products(scalars, mul)
        for order in ORDERS:
            counted = Counted("reduce.dot", kind, _judge(scalars, order))
            for length in lengths:
                a, b = (rows(kind, _share(count, length), length, rng) for _ in range(2))
                got = run("reduce.dot", kind, [a, b], mul=mul, order=order)
                counted.compare(got, [_dot(by, order, x, y) for x, y in zip(a, b)])
            yield counted.row(f"mul {mul}, order {order}")


def _dot(by: Products, order: str, x: Bits, y: Bits) -> int:
    kind = by.scalars.kind
    if not len(x):
        return 0
    if order == "exact":
        doubles = zip(oracle.as_doubles(x, kind).tolist(), oracle.as_doubles(y, kind).tolist())
        return exact_total(kind, [product_term(a, b) for a, b in doubles])
    a, b = by.load(x), by.load(y)
    total = fold(
        order, len(a), lambda i: by.first(a[i], b[i]), lambda acc, i: by.step(acc, a[i], b[i]), by.combine
    )
    return int(by.store([total])[0])


def contractions(kind: FloatType, count: int) -> Iterator[Row]:
    """matmul and conv2d, strides and padding included."""
    scalars, rng = Scalars(kind), np.random.default_rng(13)
    for mul in muls(kind):
        by = Products(scalars, mul)
        product = Counted("reduce.matmul", kind, scalars.unit.name)
        convolution = Counted("reduce.conv2d", kind, scalars.unit.name)
        for _ in range(count):
            m, k, n = (int(v) for v in rng.integers(1, 6, 3))
            k = int(rng.integers(0, 9)) if k == 5 else k
            a, b = rows(kind, 4, m * k, rng).reshape(4, m, k), rows(kind, 4, k * n, rng).reshape(4, k, n)
            got = run("reduce.matmul", kind, [a, b], mul=mul)
            product.compare(got, [_matmul(by, x, y) for x, y in zip(a, b)])
            _convolve(by, kind, convolution, mul, rng)
        yield product.row(f"mul {mul}")
        yield convolution.row(f"mul {mul}")


def _matmul(by: Products, x: Bits, y: Bits) -> Bits:
    (m, k), n = x.shape, y.shape[1]
    a, b = by.load(x), by.load(y)
    return by.store([
        by.chain([(a[i * k + t], b[t * n + j]) for t in range(k)]) for i in range(m) for j in range(n)
    ])


def _convolve(by: Products, kind: FloatType, counted: Counted, mul: str, rng: np.random.Generator) -> None:
    channels, height, width, outs = (int(v) for v in rng.integers(1, 5, 4))
    pad, stride = int(rng.integers(0, 3)), int(rng.integers(1, 4))
    size = tuple(int(rng.integers(1, extent + 2 * pad + 1)) for extent in (height, width))
    x = rows(kind, 2, channels * height * width, rng).reshape(2, channels, height, width)
    w = rows(kind, 2, outs * channels * size[0] * size[1], rng).reshape(2, outs, channels, *size)
    got = run("reduce.conv2d", kind, [x, w], mul=mul, pad=pad, stride=stride)
    for item in range(2):
        a, b = np.array(by.load(x[item]), object).reshape(x.shape[1:]), by.load(w[item])
        kernel = np.array(b, object).reshape(w.shape[1:])
        wanted = [
            by.chain([
                (a[c, r, q], kernel[o, c, i, j]) for c in range(channels)
                for i, r in _taps(y, size[0], height, stride, pad)
                for j, q in _taps(z, size[1], width, stride, pad)
            ])
            for o in range(outs) for y in range(got.shape[2]) for z in range(got.shape[3])
        ]
        counted.compare(got[item], by.store(wanted))


def _taps(out: int, size: int, extent: int, stride: int, pad: int) -> list[tuple[int, int]]:
    """(place in the window, place in the input) of the positions that take part."""
    found = [(i, out * stride + i - pad) for i in range(size)]
    return [(i, place) for i, place in found if 0 <= place < extent]


def selections(kind: FloatType, count: int) -> Iterator[Row]:
    """min, max, argmin, argmax and both pools."""
    rng = np.random.default_rng(14)
    for op in ("min", "max", "argmin", "argmax"):
        counted = Counted(f"reduce.{op}", kind, "the definition on integers")
        for length in (1, 2, 3, 7, 33):
            bits = rows(kind, count, length, rng)
            got = run(f"reduce.{op}", kind, [bits], axis=0)
            counted.compare(got, [_select(op, kind, line.tolist()) for line in bits])
        yield counted.row()
    scalars = Scalars(kind)
    greatest = Counted("reduce.max_pool2d", kind, "the definition on integers")
    average = Counted("reduce.avg_pool2d", kind, scalars.unit.name)
    for _ in range(max(count // 8, 4)):
        height, width = (int(v) for v in rng.integers(1, 6, 2))
        size = int(rng.integers(1, min(height, width) + 1))
        pad, stride = int(rng.integers(0, size)), int(rng.integers(1, 4))
        x = rows(kind, 4, 2 * height * width, rng).reshape(4, 2, height, width)
        attrs = {"pad": pad, "size": size, "stride": stride}
        top, mean = (run(f"reduce.{op}", kind, [x], **attrs) for op in ("max_pool2d", "avg_pool2d"))
        for item, c, y, z in np.ndindex(*top.shape):
            rows_in, columns_in = _taps(y, size, height, stride, pad), _taps(z, size, width, stride, pad)
            part = [int(x[item, c, r, q]) for _, r in rows_in for _, q in columns_in]
            greatest.compare(top[item, c, y, z], _select("max", kind, part))
            wanted = _along(scalars, "mean", "sequential", np.array([part], x.dtype))
            average.compare(mean[item, c, y, z], wanted)
    yield greatest.row()
    yield average.row()


def _select(op: str, kind: FloatType, line: list[int]) -> int:
    """By sign and magnitude: NaN first of all; zeros differ for min and max and tie for argmin and argmax."""
    sign = 1 << (kind.width_bits - 1)
    infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
    nans = [i for i, bits in enumerate(line) if bits & ~sign > infinity]
    if nans:
        return nans[0] if op.startswith("arg") else kind.canonical_nan

    def key(bits: int) -> tuple[int, int]:
        magnitude = bits & ~sign
        return (-magnitude if bits & sign else magnitude), (0 if op.startswith("arg") else -int(bits >= sign))

    best = (min if op.endswith("min") else max)(key(bits) for bits in line)
    place = next(i for i, bits in enumerate(line) if key(bits) == best)
    return place if op.startswith("arg") else line[place]


def composites(kind: FloatType, count: int) -> Iterator[Row]:
    """The neural operations by their expansions; exp (below f64) and rsqrt are MPFR's."""
    scalars, rng = Scalars(kind), np.random.default_rng(15)
    eps = scalars.store([scalars.by_mpfr(lambda one: one / 100_000, scalars.one)])
    by = Products(scalars, "fused")
    table = {name: Counted(f"neural.{name}", kind, f"{scalars.unit.name} and MPFR") for name in _COMPOSITES}
    for _ in range(count):
        length = int(rng.integers(1, 80))
        x = rows(kind, 4, length, rng)
        want = [scalars.store(_softmax(scalars, line)) for line in x]
        table["softmax"].compare(run("neural.softmax", kind, [x], axis=0), want)
        for name in ("layer_norm", "rms_norm"):
            got = run(f"neural.{name}", kind, [x, np.repeat(eps, 4)], axis=0)
            table[name].compare(got, [_norm(scalars, name, line, eps) for line in x])
        t, s, d, e = (int(v) for v in rng.integers(1, 5, 4))
        q, k, v = (rows(kind, 4, m * n, rng).reshape(4, m, n) for m, n in ((t, d), (s, d), (s, e)))
        got = run("neural.attention", kind, [q, k, v])
        table["attention"].compare(got, [_attention(scalars, by, *item) for item in zip(q, k, v)])
    for counted in table.values():
        yield counted.row()


_COMPOSITES = ("softmax", "layer_norm", "rms_norm", "attention")


def _sum(scalars: Scalars, values: Sequence[Scalar]) -> Scalar:
    add = scalars.unit.add
    return lanes(len(values), values.__getitem__, lambda acc, i: add(acc, values[i]), add)


def _softmax(scalars: Scalars, line: Bits) -> list[Scalar]:
    peak = scalars.load(np.array([_select("max", scalars.kind, line.tolist())], line.dtype))[0]
    shifted = [scalars.unit.sub(value, peak) for value in scalars.load(line)]
    if scalars.kind == F64:  # whose exp is an algorithm: checked elsewhere, taken as it is
        powers = scalars.load(run_float("floating.exp", F64, scalars.store(shifted)))
    else:
        powers = [scalars.by_mpfr(gmpy2.exp, value) for value in shifted]
    total = _sum(scalars, powers)
    return [scalars.unit.div(power, total) for power in powers]


def _norm(scalars: Scalars, name: str, line: Bits, eps: Bits) -> Bits:
    unit, values, count = scalars.unit, scalars.load(line), scalars.number(len(line))
    if name == "layer_norm":
        mean = unit.div(_sum(scalars, values), count)
        values = [unit.sub(value, mean) for value in values]
    square = unit.div(_sum(scalars, [unit.mul(value, value) for value in values]), count)
    total = scalars.store([unit.add(square, scalars.load(eps)[0])])
    mpfr = scalars.mpfr
    scale = scalars.load(mpfr.bits_out([mpfr.rsqrt(mpfr.bits_in(total)[0])]))[0]
    return scalars.store([unit.mul(value, scale) for value in values])


def _attention(scalars: Scalars, by: Products, q: Bits, k: Bits, v: Bits) -> Bits:
    count = q.shape[1]
    mpfr = scalars.mpfr
    scale = scalars.load(mpfr.bits_out([mpfr.rsqrt(gmpy2.mpfr(count))]))[0]
    scores = scalars.load(_matmul(by, q, np.ascontiguousarray(k.T)))
    scaled = scalars.store([scalars.unit.mul(score, scale) for score in scores]).reshape(len(q), len(k))
    weights = np.stack([scalars.store(_softmax(scalars, line)) for line in scaled])
    return _matmul(by, weights, v)


def checks_of(kind: FloatType, lengths: Sequence[int], count: int) -> Iterator[Row]:
    """``count`` rows of each length, as many matrices, windows and composites."""
    yield from folds(kind, lengths, count)
    yield from dots(kind, lengths, count)
    yield from contractions(kind, count)
    yield from selections(kind, count)
    yield from composites(kind, count)


LENGTHS = (0, 1, 2, 3, 31, 33, 63, 64, 65, 96, 127, 129, 200, 640, 4095, 4097, 8300, 12289)


def checks() -> Iterator[Row]:
    for kind in FORMATS:
        yield from checks_of(kind, LENGTHS, 48)

if __name__ == "__main__":
    sys.exit(report.write("reductions", checks(), "python -m tests.conformance.reductions") != 0)

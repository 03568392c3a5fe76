"""What the programs beside this file compute, in plain Python on unbounded integers and SoftFloat.

``CASES`` lists (program, function, how to draw inputs, oracle). An oracle takes the items as arrays of
plain values, a stream's in order from reset, and returns the results in the shape the interface has.
Nothing here imports the compiler.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import softfloatpy

Inputs = dict[str, Any]
Oracle = Callable[[Inputs], Any]


@dataclass(frozen=True)
class Case:
    """One exported function and what it should compute."""

    program: str
    function: str
    draw: Callable[[np.random.Generator, int], Inputs]
    oracle: Oracle


def signed(value: int, width: int) -> int:
    """The low ``width`` bits as a two's complement number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def uniform(rng: np.random.Generator, low: int, high: int, shape: Any, dtype: str) -> np.ndarray:
    """Numbers in [low, high], a quarter of them at or next to the ends."""
    values = rng.integers(low, high, shape, dtype=np.int64 if high < 1 << 63 else np.uint64, endpoint=True)
    edges = np.array([low, low + 1, 0, 1, high - 1, high], values.dtype)
    return np.where(rng.random(shape) < 0.25, edges[rng.integers(0, 6, shape)], values).astype(dtype)


# ---------------------------------------------------------------- arithmetic.kera


def divide(x: Inputs) -> Any:
    quotients, remainders = [], []
    for a, b in zip(x["a"].tolist(), x["b"].tolist()):
        if b == 0:
            q, r = -1, a
        else:
            q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            r = a - q * b
        quotients.append(signed(q, 12))
        remainders.append(r)
    return np.array(quotients, np.int16), np.array(remainders, np.int16)


def alu(x: Inputs) -> Any:
    ys, flags = [], []
    for op, a, b in zip(x["op"].tolist(), x["a"].tolist(), x["b"].tolist()):
        n = b % 16
        y = (a + b, a - b, a & b, a | b, a ^ b, a << n, a >> n, a * b)[op] % 65536
        ys.append(y)
        flags.append((y == 0, y >= 32768, op == 0 and a + b > 65535))
    columns = [np.array(column, np.bool_) for column in zip(*flags)]
    return np.array(ys, np.uint16), dict(zip(("zero", "negative", "carry"), columns))


def count_bits(x: Inputs) -> Any:
    rows = []
    for v in x["x"].tolist():
        text = f"{v:024b}"
        leading = 24 if v == 0 else text.index("1")
        trailing = 24 if v == 0 else text[::-1].index("1")
        rows.append((leading, trailing, text.count("1"), v ^ (v // 2)))
    return tuple(np.array(column, np.uint32) for column in zip(*rows))


def saturating_mac(x: Inputs) -> Any:
    def clip(v: int) -> int:
        return max(-32768, min(32767, v))

    rows = zip(x["acc"].tolist(), x["a"].tolist(), x["b"].tolist())
    return np.array([clip(acc + clip(a * b // 256)) for acc, a, b in rows], np.int16)


# ---------------------------------------------------------------- sorting.kera


def sort8(x: Inputs) -> Any:
    return np.sort(x["values"], axis=1)


def median9(x: Inputs) -> Any:
    return np.array([sorted(row.reshape(-1).tolist())[4] for row in x["p"]], np.int8)


# ---------------------------------------------------------------- filters.kera


def resonator(x: Inputs) -> Any:
    y1 = y2 = 0
    out = []
    for v in x["x"].tolist():
        # Raw integers: products have 24 fraction bits, the input gets 12 more and is quartered.
        total = signed(signed(y1 * 6144 + y2 * -3072, 32) + ((v << 12) >> 2), 32)
        rounded = (total + (1 << 11)) >> 12
        y1, y2 = max(-32768, min(32767, rounded)), y1
        out.append(y1)
    return np.array(out, np.int16)


def window4(x: Inputs) -> Any:
    kept = [0, 0, 0, 0]
    sums, most = [], []
    for v in x["x"].tolist():
        kept = [*kept[1:], v]
        sums.append(signed(sum(kept), 12))
        most.append(max(kept))
    return np.array(sums, np.int16), np.array(most, np.int16)


def runs(x: Inputs) -> Any:
    last = count = 0
    rows = []
    for symbol in x["symbol"].tolist():
        same = symbol == last
        count = min(255, count + 1) if same else 1
        last = symbol
        rows.append((symbol, count, not same))
    symbols, counts, changed = zip(*rows)
    return np.array(symbols, np.uint8), np.array(counts, np.uint8), np.array(changed, np.bool_)


def xorshift(x: Inputs) -> Any:
    s, out = 2463534242, []
    for stir in x["stir"].tolist():
        s ^= stir
        s ^= (s << 13) & 0xFFFFFFFF
        s ^= s >> 17
        s ^= (s << 5) & 0xFFFFFFFF
        out.append(s)
    return np.array(out, np.uint32)


# ---------------------------------------------------------------- ciphers.kera

_BOX = "C56B90AD3EF84712"


def present3(x: Inputs) -> Any:
    out = []
    for s, key in zip(x["block"].tolist(), x["key"].tolist()):
        for turn in range(3):
            shift = 21 * turn % 64
            s ^= ((key << shift) | (key >> (64 - shift))) & (2**64 - 1)
            boxed = int("".join(_BOX[int(digit, 16)] for digit in f"{s:016x}"), 16)
            bits = f"{boxed:064b}"[::-1]
            moved = ["0"] * 64
            for i in range(63):
                moved[16 * i % 63] = bits[i]
            moved[63] = bits[63]
            s = int("".join(reversed(moved)), 2)
        out.append(s)
    return np.array(out, np.uint64)


def fletcher(x: Inputs) -> Any:
    out = []
    for row in x["data"].tolist():
        a = sum(row) % 255
        b = sum((len(row) - i) * v for i, v in enumerate(row)) % 255
        out.append(b * 256 + a)
    return np.array(out, np.uint16)


# ---------------------------------------------------------------- matrices.kera

_WEIGHTS = np.array(
    [[3, -7, 0, 12, 1, -1], [0, 5, 9, -4, 2, 2], [-128, 127, 1, 0, 0, 3], [8, 8, -8, 16, 32, 64]], np.int64
)


def classify(x: Inputs) -> Any:
    y = x["x"].astype(np.int64) @ _WEIGHTS.T
    hidden = np.maximum(y.astype(np.int16), 0)
    return hidden, hidden.argmax(axis=1).astype(np.uint32)


def rotate(x: Inputs) -> Any:
    p, q = x["p"], x["q"]
    pr, pi = (p[part].astype(np.int64) for part in ("re", "im"))
    qr, qi = (q[part].astype(np.int64)[:, None] for part in ("re", "im"))

    def low12(v: np.ndarray) -> np.ndarray:
        return (((v >> 10) + 2048) % 4096 - 2048).astype(np.int16)

    wide = np.vectorize(lambda v: signed(int(v), 24), otypes=[np.int64])
    return {"re": low12(wide(pr * qr - pi * qi)), "im": low12(wide(pr * qi + pi * qr))}


def totals(x: Inputs) -> Any:
    return np.cumsum(np.swapaxes(x["m"].astype(np.int64), 1, 2), axis=1).astype(np.uint16)


# ---------------------------------------------------------------- the list


def _plain(**ranges: tuple[int, int, tuple[int, ...], str]) -> Callable[[np.random.Generator, int], Inputs]:
    """Draws arrays: name = (low, high, item shape, dtype)."""

    def draw(rng: np.random.Generator, items: int) -> Inputs:
        return {
            name: uniform(rng, low, high, (items, *shape), dtype)
            for name, (low, high, shape, dtype) in ranges.items()
        }

    return draw


def _complexes(rng: np.random.Generator, items: int) -> Inputs:
    def part(*shape: int) -> np.ndarray:
        return uniform(rng, -2048, 2047, (items, *shape), "int16")

    return {"p": {"re": part(2), "im": part(2)}, "q": {"re": part(), "im": part()}}


# ---------------------------------------------------------------- floating.kera, by Berkeley SoftFloat


def _soft(kind: str) -> Any:
    return getattr(softfloatpy, f"Float{kind[1:]}")


def _call(verb: str, *words: int, kind: str = "f32") -> int:
    """One operation on bit patterns; every NaN is the canonical one."""
    size = int(kind[1:]) // 8
    softfloatpy.set_rounding_mode(softfloatpy.RoundingMode.NEAR_EVEN)
    args = [_soft(kind).from_bytes(word.to_bytes(size, "big")) for word in words]
    result = getattr(softfloatpy, f"{kind}_{verb}")(*args)
    bits = int.from_bytes(result.to_bytes(), "big")
    exponent = {"f16": 0x7C00, "f32": 0x7F80_0000}[kind]
    return exponent | exponent >> 1 & ~exponent if bits & ~(1 << 8 * size - 1) > exponent else bits


def _words(values: np.ndarray) -> Any:
    return values.view(f"u{values.dtype.itemsize}").tolist()


def _floats(words: Any, dtype: str) -> np.ndarray:
    array = np.array(words, f"u{np.dtype(dtype).itemsize}")
    return array.view(dtype)


def sum8(x: Inputs) -> Any:
    sums = []
    for row in _words(x["x"]):
        for half in (4, 2, 1):
            row = [_call("add", row[lane], row[lane + half]) for lane in range(half)]
        sums.append(row[0])
    return _floats(sums, "float32")


def saxpy_element(x: Inputs) -> Any:
    rows = zip(_words(x["a"]), _words(x["x"]), _words(x["y"]))
    return _floats([_call("mul_add", *row) for row in rows], "float32")


def layer(x: Inputs) -> Any:
    results = []
    for weights, biases, inputs in zip(_words(x["w"]), _words(x["b"]), _words(x["x"])):
        row = []
        for line, bias in zip(weights, biases):
            total = _call("mul", line[0], inputs[0])
            for weight, value in zip(line[1:], inputs[1:]):
                total = _call("mul_add", weight, value, total)
            total = _call("add", total, bias)
            row.append(0 if total >> 31 else total)  # the canonical NaN has no sign
        results.append(row)
    return _floats(results, "float32")


def half_gain(x: Inputs) -> Any:
    results = []
    quarter, two = 0x3400, 0x4000
    for value, gain in zip(_words(x["x"]), _words(x["gain"])):
        q = _call("div", _call("mul", value, quarter, kind="f16"), gain, kind="f16")
        if q != 0x7E00 and q & 0x7FFF > two:
            q = q & 0x8000 | two
        results.append(q)
    return _floats(results, "float16")


def envelope(x: Inputs) -> Any:
    results, level = [], 0
    for word in _words(x["x"]):
        rise = 0x7FC0_0000 if word & 0x7FFF_FFFF > 0x7F80_0000 else word & 0x7FFF_FFFF
        above = rise != 0x7FC0_0000 and level != 0x7FC0_0000 and rise > level  # both without sign
        level = rise if above else _call("mul", level, 0x3F60_0000)
        results.append(level)
    return _floats(results, "float32")


def _floating(**shapes: Any) -> Callable[[np.random.Generator, int], Inputs]:
    """Numbers around 1, an eighth of them edges of the format."""

    def draw(rng: np.random.Generator, items: int) -> Inputs:
        inputs: Inputs = {}
        for name, (shape, dtype) in shapes.items():
            kind = np.dtype(dtype)
            info, whole = np.finfo(kind), (items, *shape)
            least, large = info.smallest_subnormal, info.max
            edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, large, -large, info.tiny, least, 1.0], kind)
            values = (rng.standard_normal(whole) * 4.0 ** rng.integers(-4, 5, whole)).astype(kind)
            chosen = edges[rng.integers(0, len(edges), whole)]
            inputs[name] = np.where(rng.random(whole) < 0.125, chosen, values)
        return inputs

    return draw


_F32, _F16 = ((), "float32"), ((), "float16")
_I16, _U64 = (-(2**15), 2**15 - 1), (0, 2**64 - 1)
# ---------------------------------------------------------------- polynomials.kera


def gf256_mul(x: Inputs) -> Any:
    """Doubling and adding, a bit at a time."""
    results: list[int] = []
    for a, b in zip(x["a"].tolist(), x["b"].tolist()):
        total = 0
        while b:
            total ^= a if b % 2 else 0
            a = a * 2 ^ (0x11B if a >= 128 else 0)
            b //= 2
        results.append(total)
    return np.array(results, np.uint8)


def crc32(x: Inputs) -> Any:
    sums = [0]
    for word in x["word"].tolist():
        sums.append(zlib.crc32(word.to_bytes(4, "little"), sums[-1]))
    return np.array(sums[1:], np.uint32)


def clmul64(x: Inputs) -> Any:
    """The coefficients of the product, each a count of pairs modulo 2."""
    rows: list[tuple[int, int]] = []
    for a, b in zip(x["a"].tolist(), x["b"].tolist()):
        counts = np.convolve([a >> k & 1 for k in range(64)], [b >> k & 1 for k in range(64)])
        whole = sum(int(count % 2) << k for k, count in enumerate(counts))
        rows.append((whole >> 64, whole % 2**64))
    high, low = zip(*rows)
    return np.array(high, np.uint64), np.array(low, np.uint64)


CASES: Sequence[Case] = (
    Case("arithmetic", "divide", _plain(a=(-2048, 2047, (), "int16"), b=(-2048, 2047, (), "int16")), divide),
    Case(
        "arithmetic", "alu",
        _plain(op=(0, 7, (), "uint8"), a=(0, 65535, (), "uint16"), b=(0, 65535, (), "uint16")), alu,
    ),
    Case("arithmetic", "count_bits", _plain(x=(0, 2**24 - 1, (), "uint32")), count_bits),
    Case(
        "arithmetic", "saturating_mac",
        _plain(acc=(*_I16, (), "int16"), a=(*_I16, (), "int16"), b=(*_I16, (), "int16")), saturating_mac,
    ),
    Case("sorting", "sort8", _plain(values=(0, 255, (8,), "uint8")), sort8),
    Case("sorting", "median9", _plain(p=(-128, 127, (3, 3), "int8")), median9),
    Case("filters", "resonator", _plain(x=(*_I16, (), "int16")), resonator),
    Case("filters", "window4", _plain(x=(-512, 511, (), "int16")), window4),
    Case("filters", "runs", _plain(symbol=(0, 3, (), "uint8")), runs),
    Case("filters", "xorshift", _plain(stir=(0, 2**32 - 1, (), "uint32")), xorshift),
    Case("ciphers", "present3", _plain(block=(*_U64, (), "uint64"), key=(*_U64, (), "uint64")), present3),
    Case("ciphers", "fletcher", _plain(data=(0, 255, (16,), "uint8")), fletcher),
    Case("matrices", "classify", _plain(x=(-128, 127, (6,), "int8")), classify),
    Case("matrices", "rotate", _complexes, rotate),
    Case("floating", "sum8", _floating(x=((8,), "float32")), sum8),
    Case("floating", "saxpy_element", _floating(a=_F32, x=_F32, y=_F32), saxpy_element),
    Case(
        "floating", "layer",
        _floating(w=((3, 4), "float32"), b=((3,), "float32"), x=((4,), "float32")), layer,
    ),
    Case("floating", "half_gain", _floating(x=_F16, gain=_F16), half_gain),
    Case("floating", "envelope", _floating(x=_F32), envelope),
    Case("polynomials", "gf256_mul", _plain(a=(0, 255, (), "uint8"), b=(0, 255, (), "uint8")), gf256_mul),
    Case("polynomials", "crc32", _plain(word=(0, 2**32 - 1, (), "uint32")), crc32),
    Case("polynomials", "clmul64", _plain(a=(*_U64, (), "uint64"), b=(*_U64, (), "uint64")), clmul64),
    Case("matrices", "totals", _plain(m=(0, 511, (3, 4), "uint16")), totals),
)

"""The programs of ``bench/programs`` that stand beside cores written by hand, against independent oracles."""
from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.options import TargetOptions

BENCH = Path(__file__).resolve().parents[2] / "bench"
HOME = BENCH / "programs"
Array = np.ndarray[Any, np.dtype[Any]]


def _run(name: str, function: str | None = None, **items: Any) -> Any:
    """What a function of a program gives for a batch, a stream for a sequence."""
    program = kera_hw.load(HOME / f"{name}.kera")
    return program.function(function or name).batch(**{key: np.asarray(item) for key, item in items.items()})


def _draw(*shape: int, kind: Any) -> Array:
    info = np.iinfo(kind)
    return np.random.default_rng(info.bits).integers(info.min, info.max, shape, kind, endpoint=True)


def test_a_division_gives_quotient_and_remainder() -> None:
    most = 2**32 - 1
    a = np.append(_draw(50, kind=np.uint32), [0, most, most, 7, 9]).astype(np.uint32)
    b = np.append(_draw(53, kind=np.uint32)[3:], [1, 1, most, most, 3]).astype(np.uint32)
    quotients, remainders = _run("divide32", a=a, b=b)
    assert list(zip(quotients.tolist(), remainders.tolist())) == list(map(divmod, a.tolist(), b.tolist()))


def test_the_area_of_a_divider_is_foretold() -> None:
    """Its loop is a unit, whose LUTs are counted as they are written: half as many more were told of once."""
    graph = kera_hw.load(HOME / "divide32.kera").graph
    told = plan_hardware(graph, graph.exports[0], TargetOptions(interval=33)).estimate
    found = json.loads((BENCH / "results" / "route.json").read_text())["divide32:divide32,ii=33"]["routed"]
    assert abs(told.lut / found["lut"] - 1) < 0.1 and abs(told.ff / found["ff"] - 1) < 0.02


def test_a_root_leaves_what_its_square_lacks() -> None:
    x = np.append(_draw(50, kind=np.uint32), [0, 1, 3, 4, 65535**2 - 1, 65535**2, 2**32 - 1])
    roots, rests = _run("root32", x=x.astype(np.uint32))
    assert roots.tolist() == list(map(math.isqrt, x.tolist()))
    assert rests.tolist() == [n - math.isqrt(n) ** 2 for n in x.tolist()]


def test_coordinates_become_polar() -> None:
    x = np.append(_draw(60, kind=np.int16) >> 3, [2000, 0, -2000, -4096, 4095]).astype(np.int16)
    y = np.append(_draw(65, kind=np.int16)[5:] >> 3, [0, -2000, -1, -4096, 4095]).astype(np.int16)
    lengths, angles = _run("polar", x=x, y=y)
    gain = 0.25 * math.prod(math.sqrt(1 + 4.0**-k) for k in range(19))
    real = np.hypot(x.astype(float), y.astype(float))
    assert np.all(np.abs(lengths - gain * real) <= 1)
    off = angles / 2**21 * 2 * math.pi - np.arctan2(y.astype(float), x.astype(float))
    assert np.all(np.abs(np.angle(np.exp(1j * off))) <= 1e-4)


def test_a_sine_is_near_the_real_one() -> None:
    phases = np.append(np.arange(0, 1 << 18, 997), [(1 << 16) - 1, 1 << 16, (1 << 18) - 1]).astype(np.uint32)
    off = _run("sine", phase=phases) - 4095.875 * np.sin(2 * math.pi * phases / 2**18)
    assert np.all(np.abs(off) <= 1)


@pytest.mark.parametrize("name", ["parallel", "single"])
def test_filters_sum_what_their_taps_weigh(name: str) -> None:
    taps, items = _draw(16, kind=np.int16), _draw(60, kind=np.int16)[16:]
    found = _run(
        "fir16", name, x=np.append(np.zeros(16, np.int16), items),
        tap=np.append(taps, np.zeros(44, np.int16)), write=np.arange(60) < 16,
    )
    # The parallel one shifts both, so that its first element is the oldest of each.
    ordered = taps[::-1] if name == "parallel" else taps
    assert found[16:].tolist() == np.convolve(items.astype(np.int64), ordered)[:44].tolist()


@pytest.mark.parametrize("count", [8, 16])
def test_numbers_are_sorted(count: int) -> None:
    ends = (np.arange(0, 1 << count, 1 if count == 8 else 37)[:, None] >> np.arange(count)) & 1
    values = np.concatenate([_draw(20, count, kind=np.uint16), ends.astype(np.uint16)])
    assert _run("sort", f"sort{count}", values=values).tolist() == np.sort(values, axis=1).tolist()


def test_a_product_of_matrices() -> None:
    a, b = _draw(2, 3, 8, 8, kind=np.int8)
    assert _run("systolic8", a=a, b=b).tolist() == (a.astype(int) @ b.astype(int)).tolist()


def test_siphash_hashes_the_message_of_its_paper() -> None:
    message = bytes(range(15)) + bytes([15])  # the last byte counts the bytes before it
    found = _run(
        "siphash", command=np.array([1, 0, 0, 2, 3], np.uint8),
        word=np.array([0, *np.frombuffer(message, "<u8"), 0, 0], np.uint64),
        key=np.tile(np.frombuffer(bytes(range(16)), "<u8"), (5, 1)),
    )
    assert found[-1] == 0xA129CA6149BE45E5


def test_chacha_gives_the_block_of_its_standard() -> None:
    found = _run(
        "chacha", key=np.frombuffer(bytes(range(32)), "<u4")[None], counter=np.array([1], np.uint32),
        nonce=np.array([[0x09000000, 0x4A000000, 0]], np.uint32),
    )
    assert found.astype("<u4").tobytes().hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


@pytest.mark.parametrize("length", [0, 64, 200])
def test_blake2s_hashes_as_the_standard_library_does(length: int) -> None:
    data = bytes(k * 7 & 0xFF for k in range(length))
    padded = data.ljust(max(64, -(-length // 64) * 64), b"\0")
    hashed = np.array([[
        0x6A09E667 ^ 0x01010020, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
        0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
    ]], np.uint32)
    for at in range(0, len(padded), 64):
        last = at + 64 == len(padded)
        hashed = _run(
            "blake2s", hash=hashed, block=np.frombuffer(padded[at : at + 64], "<u4")[None],
            bytes=np.array([length if last else at + 64], np.uint64), last=np.array([last]),
        )
    assert hashed.astype("<u4").tobytes() == hashlib.blake2s(data).digest()

"""Real programs, built by hand, against the standard library; and the time they take."""
from __future__ import annotations

import hashlib
import zlib

import numpy as np

from kera_hw.interp import run_export, run_region
from tests.unit import interp_programs as programs


def _blocks(messages: np.ndarray) -> np.ndarray:
    """Messages of 55 bytes as one padded block each."""
    padded = np.zeros((len(messages), 64), np.uint8)
    padded[:, :55], padded[:, 55] = messages, 0x80
    padded[:, 56:] = np.frombuffer((55 * 8).to_bytes(8, "big"), np.uint8)
    return padded.view(">u4").astype(np.uint32)


def test_sha256_over_ten_thousand_blocks() -> None:
    messages = np.random.default_rng(0).integers(0, 256, (10_000, 55), dtype=np.uint8)
    start = np.broadcast_to(np.array(programs.INITIAL_HASH, np.uint32), (len(messages), 8))
    region, blocks = programs.sha256_compress(), _blocks(messages)
    got, = run_region(region, [start, blocks], len(messages))
    wanted = [hashlib.sha256(message.tobytes()).digest() for message in messages]
    assert got.astype(">u4").tobytes() == b"".join(wanted)


def test_crc32_of_words() -> None:
    rng = np.random.default_rng(1)
    words = np.frombuffer(rng.bytes(8 * 2000), "<u8").astype(np.uint64)
    got, = run_region(programs.crc32_word(), [words], len(words))
    assert got.tolist() == [zlib.crc32(int(word).to_bytes(8, "little")) for word in words]


def test_fir_stream_over_ten_thousand_items() -> None:
    samples = np.random.default_rng(2).integers(-(1 << 15), 1 << 15, 10_000).astype(np.int16)
    got = run_export(programs.fir_stream(), {"x": samples}, batch=True)
    wanted = np.convolve(samples.astype(np.int64), np.array(programs.TAPS[::-1]))[: len(samples)]
    assert got.dtype == np.int32 and np.array_equal(got, wanted)


def test_a_stream_starts_from_reset_each_time() -> None:
    fir = programs.fir_stream()
    impulse = run_export(fir, {"x": np.array([1] + [0] * 15, np.int16)}, batch=True)
    assert impulse.tolist() == list(programs.TAPS[::-1])
    assert run_export(fir, {"x": 2}) == -24
    assert run_export(fir, {"x": 2}) == -24

"""A simulation that lives on: items given one by one, each answered when the circuit has its result.

The program is that of ``bench``, in a process of its own that ends with the object, or with this process.
"""
from __future__ import annotations

import subprocess
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import numpy as np

from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim.bench import FAULTS, build_bench, result_words, rows_of, split_rows
from kera_hw.rtl.sim.words import Words
from kera_hw.rtl.toolchain.process import ToolFailed

_ANSWER_BYTES = 16
_PATIENCE_S = 5.0


class LiveSimulation:
    """A design in simulation, reset; one item at a time."""

    def __init__(self, emitted: Emitted, seed: int = 1) -> None:
        """Raises ToolMissing, ToolFailed or ToolTimeout where it cannot be built."""
        self._emitted = emitted
        home = TemporaryDirectory(prefix="kera-live-")
        program = build_bench(emitted, Path(home.name))
        self._process = subprocess.Popen(
            [str(program), "--serve", str(seed)], cwd=home.name,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._close = weakref.finalize(self, _end, self._process, home)

    def reset(self) -> None:
        """Pulls the reset; a design without one forgets by itself."""
        self._send(b"r")

    def step(
        self, item: Sequence[Words], latency: int | None = None
    ) -> tuple[tuple[Words, ...], int, str | None]:
        """The words of each output bus, the cycles from the first beat to the first of the result, and what
        went wrong, if it did.

        ``latency`` is that inside, where each item has its own. Raises ToolFailed where the simulation has
        ended.
        """
        own = b"" if not self._emitted.own_pace or latency is None else latency.to_bytes(8, "little")
        self._send(b"s" + rows_of(self._emitted, item, 1).tobytes() + own)
        size = 4 * result_words(self._emitted)
        fault, cycles = np.frombuffer(self._receive(_ANSWER_BYTES), "<u8").tolist()
        row = np.frombuffer(self._receive(size), "<u4").reshape(1, -1)
        outputs, wrong = split_rows(self._emitted, row)
        return outputs, cycles, FAULTS[fault] if fault else wrong

    def close(self) -> None:
        """Ends the process; the object is of no further use."""
        self._close()

    def _send(self, data: bytes) -> None:
        pipe = _pipe(self._process.stdin)
        try:
            pipe.write(data)
            pipe.flush()
        except (BrokenPipeError, ValueError):
            raise self._ended() from None

    def _receive(self, size: int) -> bytes:
        data = _pipe(self._process.stdout).read(size)
        if len(data) != size:
            raise self._ended()
        return data

    def _ended(self) -> ToolFailed:
        return ToolFailed("simulation", self._process.poll() or 0, "It ended while it was stepped.")


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _end(process: subprocess.Popen[bytes], home: TemporaryDirectory[str]) -> None:
    """The end of its input ends the program; what does not end is killed."""
    with suppress(BrokenPipeError):
        _pipe(process.stdin).close()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _pipe(process.stdout).close()
    home.cleanup()

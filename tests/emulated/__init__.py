"""Code for other processors, run in QEMU's user mode: one process that loads functions as it is asked.

Where a machine has no emulator or no compiler for the other processor, tests skip and say so.
"""
from __future__ import annotations

import atexit
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.engine import CpuFunction, Instance, compile_export, missing_features
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.x86_64.machine import SSE2
from kera_hw.graph import Export
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.layout import native_dtype

_SOURCE = Path(__file__).with_name("runner.c")


@dataclass(frozen=True, slots=True)
class Emulator:
    """``cpu``: which one QEMU is to be, as it says that."""

    name: str
    level: str
    compiler: str
    qemu: str
    cpu: str


EMULATORS = (
    Emulator("aarch64", "aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64-static", "cortex-a57"),
    *(
        Emulator(
            f"riscv64-vlen{bits}", "riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64-static",
            f"rv64,v=true,vlen={bits},vext_spec=v1.0",
        )
        for bits in (128, 512)
    ),
)


class Ended(Exception):
    """The code ended its process; ``status``: minus the number of a signal."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the code ended its process: {status}")
        self.status = status


class Runner:
    """A process that runs what it is sent. ``loaded``: the code that it holds."""

    def __init__(self, emulator: Emulator, program: Path) -> None:
        call = [emulator.qemu, "-cpu", emulator.cpu, str(program)]
        self._process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.loaded: object = None

    def ask(self, request: bytes, answer_bytes: int) -> bytes:
        """Raises Ended where the code ends the process."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None and back is not None
        try:
            to.write(request)
            to.flush()
            answer = back.read(answer_bytes)
        except BrokenPipeError:
            answer = b""
        if len(answer) != answer_bytes:
            self.close()
            raise Ended(self._process.returncode)
        return answer

    def close(self) -> None:
        """Ends the process."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None and back is not None
        back.close()
        with suppress(BrokenPipeError):
            to.close()
        self._process.wait(timeout=30)


_RUNNERS: dict[str, Runner] = {}


@cache
def _program(compiler: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kera-runner-"))
    made = folder / "runner"
    flags = ["-O1", "-fomit-frame-pointer", "-static", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, str(_SOURCE), "-o", str(made)], check=True, timeout=120)
    return made


def runner(emulator: Emulator) -> Runner:
    """The running process; skips where there can be none."""
    for tool in (emulator.qemu, emulator.compiler):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} to run code for {emulator.level} with")
    found = _RUNNERS.get(emulator.name)
    if found is None:
        found = _RUNNERS[emulator.name] = Runner(emulator, _program(emulator.compiler))
    return found


@atexit.register
def _end_runners() -> None:
    while _RUNNERS:
        _RUNNERS.popitem()[1].close()


class Emulated:
    """One function with memory of its own, as ``Instance`` is; ``at_end``: buffers end where a page does."""

    def __init__(self, function: CpuFunction, emulator: Emulator, at_end: bool = True) -> None:
        self._function = function
        self._emulator = emulator
        self._at_end = at_end
        self.reset()

    def reset(self) -> None:
        """The state as it was at first."""
        image = self._function.layout.image()
        layout = self._function.layout
        self._image = image.ljust(layout.end if layout.resets else len(image), b"\0")

    def run(self, params: Sequence[Array], items: int, claimed: int | None = None) -> list[Array]:
        """Result leaves from parameter leaves; ``claimed``: how many items the code is told there are."""
        function, process = self._function, runner(self._emulator)
        given = [np.ascontiguousarray(param) for param in params]
        shapes = [(items, *one.shape) for one in function.results]
        types = [native_dtype(one.element) for one in function.results]
        sizes = [int(np.prod(shape)) * kind.itemsize for shape, kind in zip(shapes, types)]
        request = bytearray()
        if process.loaded is not self._function:
            code = function.machine.code
            request += b"L" + struct.pack("<Q", len(code)) + code
            process.loaded = self._function
        memory_bytes = max(function.layout.end, len(self._image))
        numbers = (
            len(given), len(sizes), items if claimed is None else claimed, memory_bytes, len(self._image),
            self._at_end, *(one.nbytes for one in given), *sizes,
        )
        request += b"R" + struct.pack(f"<{len(numbers)}Q", *map(int, numbers)) + self._image
        request += b"".join(one.tobytes() for one in given)
        try:
            answer = process.ask(bytes(request), sum(sizes) + len(self._image))
        except Ended:
            _RUNNERS.pop(self._emulator.name, None)
            raise
        found: list[Array] = []
        place = 0
        for shape, kind, size in zip(shapes, types, sizes):
            found.append(np.frombuffer(answer, kind, size // kind.itemsize, place).reshape(shape))
            place += size
        self._image = answer[place:]
        return found


@dataclass(frozen=True, slots=True)
class Processor:
    """A level, and what its code runs in: this process where there is no emulator."""

    level: Level
    emulator: Emulator | None = None

    @property
    def name(self) -> str:
        return self.level.name if self.emulator is None else self.emulator.name

    @property
    def graphs(self) -> int:
        """Random ones an operation in the ordinary tests: fewer where other levels have the same rules."""
        return 1 if self.emulator is not None or self.level == SSE2 else 3

    def check(self) -> None:
        """Skips where its code can't run."""
        if self.emulator is not None:
            runner(self.emulator)
        elif missing_features(self.level):
            pytest.skip("the processor lacks what the code uses")

    def instance(self, function: CpuFunction) -> Instance | Emulated:
        return Instance(function) if self.emulator is None else Emulated(function, self.emulator)

    def compiled(self, export: Export, vectors: bool = True) -> CpuFunction:
        return compile_export(export, vectors, self.level)


def _processors() -> list[Processor]:
    """All levels; those of other machines in each of their emulators."""
    found: list[Processor] = []
    for level in LEVELS:
        emulators = [one for one in EMULATORS if one.level == level.name]
        foreign = any("under Linux" in name for name in missing_features(level))
        found += [Processor(level, one) for one in emulators] if foreign and emulators else [Processor(level)]
    return found


PROCESSORS = _processors()
BY_LEVEL = [tuple(one for one in PROCESSORS if one.level == level) for level in LEVELS]
"""The same with those together that run the same code."""

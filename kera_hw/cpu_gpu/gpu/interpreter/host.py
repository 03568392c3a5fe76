"""The host's side of an interpreted GPU: a module's variables, memory that is asked for, launches."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from kera_hw.cpu_gpu.gpu.interpreter.lockstep import Lockstep
from kera_hw.cpu_gpu.gpu.interpreter.memory import Space
from kera_hw.cpu_gpu.gpu.interpreter.stop import Stop
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.host import check_host, ieee
from kera_hw.support import Diagnostic, KeraError

GLOBAL_BASE = 1 << 20
MOST_REGISTER_BYTES = 1 << 27
MOST_LANES = 1 << 16


class Variable(NamedTuple):
    """Memory with a name; ``data`` is what it begins with, as far as that is given."""

    name: str
    space: str
    align: int
    size_bytes: int
    data: bytes = b""


class Host:
    """Memory that stays from launch to launch. ``symbols``: where a module's variables lie."""

    def __init__(self, variables: Iterable[Variable], most_steps: int) -> None:
        check_host()
        self._most_steps = most_steps
        self.memory = Space("global", base=GLOBAL_BASE)
        placed = list(variables)
        addresses = self.memory.place([(one.size_bytes, one.align) for one in placed])
        self.symbols = {one.name: address for one, address in zip(placed, addresses)}
        for one, address in zip(placed, addresses):
            data = np.frombuffer(one.data.ljust(one.size_bytes, b"\0"), np.uint8)
            self.memory.write(address, data)

    def allocate(self, size_bytes: int) -> int:
        """The address of so many bytes, which hold nothing yet."""
        return self.memory.place([(max(size_bytes, 1), 256)])[0]

    def free(self, address: int) -> None:
        self.memory.free(address)

    def upload(self, address: int, data: Array) -> None:
        self.memory.write(address, np.ascontiguousarray(data).reshape(-1).view(np.uint8))

    def download(self, address: int, size_bytes: int) -> Array:
        try:
            return self.memory.read(address, size_bytes)
        except Stop as stop:
            raise KeraError([Diagnostic("K0708", f"The kernels are at fault: {stop}.")]) from None

    def in_groups(self, blocks: int, group: int, begin: Callable[[range], Lockstep]) -> None:
        """Runs the blocks of a launch, ``group`` of them at once; all together take the steps of a launch."""
        steps = self._most_steps
        for first in range(0, blocks, group):
            steps = ieee(begin(range(first, min(first + group, blocks))).go)(steps)

    def watch(self, threads: int) -> None:
        """A launch of so many threads begins, which may race."""
        if threads > 1:
            self.memory.watched()
        else:
            self.memory.watch = None

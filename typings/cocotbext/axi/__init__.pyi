from collections.abc import Iterator
from enum import IntEnum
from logging import Logger
from typing import Any

class AxiResp(IntEnum):
    OKAY = 0
    SLVERR = 2

class _Pausing:
    log: Logger
    def set_pause_generator(self, generator: Iterator[bool]) -> None: ...

class AxiStreamBus:
    @classmethod
    def from_prefix(cls, entity: Any, prefix: str) -> AxiStreamBus: ...

class AxiStreamFrame:
    tdata: bytearray

class AxiStreamSource(_Pausing):
    def __init__(
        self, bus: AxiStreamBus, clock: Any, reset: Any = ..., reset_active_level: bool = ...,
    ) -> None: ...
    def send_nowait(self, frame: bytes) -> None: ...

class AxiStreamSink(_Pausing):
    def __init__(
        self, bus: AxiStreamBus, clock: Any, reset: Any = ..., reset_active_level: bool = ...,
    ) -> None: ...
    async def recv(self) -> AxiStreamFrame: ...

class AxiLiteBus:
    @classmethod
    def from_prefix(cls, entity: Any, prefix: str) -> AxiLiteBus: ...

class AxiLiteMasterWrite:
    log: Logger
    aw_channel: _Pausing
    w_channel: _Pausing
    b_channel: _Pausing

class AxiLiteMasterRead:
    log: Logger
    ar_channel: _Pausing
    r_channel: _Pausing

class AxiLiteResp:
    data: bytes
    resp: AxiResp

class AxiLiteMaster:
    write_if: AxiLiteMasterWrite
    read_if: AxiLiteMasterRead
    def __init__(
        self, bus: AxiLiteBus, clock: Any, reset: Any = ..., reset_active_level: bool = ...,
    ) -> None: ...
    async def read(self, address: int, length: int) -> AxiLiteResp: ...
    async def write(self, address: int, data: bytes) -> AxiLiteResp: ...
    async def read_dword(self, address: int) -> int: ...
    async def write_dword(self, address: int, data: int) -> None: ...

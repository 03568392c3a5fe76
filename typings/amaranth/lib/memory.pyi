from collections.abc import Mapping, Sequence

from amaranth.hdl import Elaboratable, Signal

class ReadPort:
    addr: Signal
    data: Signal
    en: Signal

class WritePort:
    addr: Signal
    data: Signal
    en: Signal

class Memory(Elaboratable):
    def __init__(
        self, *, shape: int, depth: int, init: Sequence[int], attrs: Mapping[str, str | int] | None = ...,
    ) -> None: ...
    def read_port(self, *, domain: str = ...) -> ReadPort: ...
    def write_port(self, *, domain: str = ..., granularity: int | None = ...) -> WritePort: ...

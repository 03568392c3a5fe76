from collections.abc import Sequence

from amaranth.hdl import Elaboratable, Signal

def convert(
    elaboratable: Elaboratable, name: str = ..., *, ports: Sequence[Signal] = ..., emit_src: bool = ...,
) -> str: ...

"""The part of amaranth.lib.wiring used here."""
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Elaboratable

class Member: ...

def In(description: object) -> Member: ...
def Out(description: object) -> Member: ...

class Component(Elaboratable):
    i: Any
    o: Any
    in_valid: Any
    out_valid: Any
    signature: Any
    def __init__(self, signature: Mapping[str, Member]) -> None: ...

"""The part of amaranth.lib.data used here."""
from collections.abc import Mapping

class Layout: ...

class StructLayout(Layout):
    def __init__(self, members: Mapping[str, int]) -> None: ...

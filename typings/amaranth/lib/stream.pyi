"""The part of amaranth.lib.stream used here."""
from amaranth.lib.data import Layout

class Signature:
    def __init__(self, payload_shape: Layout) -> None: ...

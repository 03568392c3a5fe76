"""SHA3-256 content hashes over domain-separated, length-prefixed encodings."""
from __future__ import annotations

import hashlib


def content_hash(domain: str, payload: bytes) -> bytes:
    """32-byte SHA3-256 of ``payload`` within ``domain`` (node, type, region, graph, section, ...)."""
    tag = domain.encode("ascii")
    return hashlib.sha3_256(b"kera/1/" + tag + b"\0" + payload).digest()


class Encoder:
    """Builds an unambiguous byte string: every variable-length part carries its length first.

    Integers are unsigned LEB128, so each value has exactly one encoding.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts = bytearray()

    def uint(self, value: int) -> Encoder:
        assert value >= 0
        while value >= 0x80:
            self._parts.append(value & 0x7F | 0x80)
            value >>= 7
        self._parts.append(value)
        return self

    def bytes(self, data: bytes) -> Encoder:
        self.uint(len(data))
        self._parts += data
        return self

    def text(self, text: str) -> Encoder:
        return self.bytes(text.encode("utf-8"))

    def raw(self, data: bytes) -> Encoder:
        """Append a fixed-size part (a digest, a tag byte) without a length."""
        self._parts += data
        return self

    def finish(self) -> bytes:
        return bytes(self._parts)

"""Source maps of modules: which bytes of the code are for which line of which file.

ECMA-426, version 3 of the format. A module is one line whose columns are its bytes. Code that is for several
places at once is shown at the first; code around everything is mapped to nothing. Names are of operations.
"""
from __future__ import annotations

import json

from kera_hw.wasm.program import WasmModule

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def source_map(module: WasmModule) -> bytes:
    """The map of a module as JSON."""
    sources: dict[str, int] = {}
    names: dict[str, int] = {}
    mappings: list[str] = []
    last = [0, 0, 0, 0, 0]  # byte, source, line and column from 0, name
    mapped = False
    for offset, mark in module.marks:
        if mark.place is None and not mapped:
            continue
        fields = [offset]
        if mark.place is not None:
            source = sources.setdefault(mark.place.path, len(sources))
            name = names.setdefault(mark.label, len(names))
            fields += [source, mark.place.line - 1, 0, name]
        mapped = mark.place is not None
        mappings.append("".join(_number(value - before) for value, before in zip(fields, last)))
        last[: len(fields)] = fields
    found = {
        "version": 3, "file": f"{module.name}.wasm", "sources": list(sources), "names": list(names),
        "mappings": ",".join(mappings),
    }  # fmt: skip
    return json.dumps(found).encode() + b"\n"


def _number(value: int) -> str:
    """Base64 VLQ: five bits a digit, the lowest first, the sign in the lowest of all."""
    rest = -value << 1 | 1 if value < 0 else value << 1
    out = ""
    while True:
        rest, low = rest >> 5, rest & 31
        out += _DIGITS[low | (32 if rest else 0)]
        if not rest:
            return out

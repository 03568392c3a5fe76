"""The binary format: a module of functions over one memory, sections in their order.

WebAssembly Core Specification 2.0, chapter 5.5.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby

from kera_hw.schedule.software.layout import Data
from kera_hw.wasm.instructions import encode, unsigned

PAGE_BYTES = 65_536
MOST_PAGES = 65_536
EMPTY = 0x40
"""The type of a block that takes and gives nothing."""


class ValueType(IntEnum):
    """By their codes."""

    I32 = 0x7F
    I64 = 0x7E
    F32 = 0x7D
    F64 = 0x7C
    V128 = 0x7B


@dataclass(frozen=True, slots=True)
class Function:
    """``locals`` come after the parameters; ``code`` is the body without its last ``end``."""

    name: str
    params: tuple[ValueType, ...]
    results: tuple[ValueType, ...]
    locals: tuple[ValueType, ...]
    code: bytes
    exported: bool = True


@dataclass(frozen=True, slots=True)
class Module:
    """A memory of ``pages`` at first, exported as ``memory``, may grow."""

    name: str
    functions: tuple[Function, ...]
    data: tuple[Data, ...]
    pages: int
    custom: tuple[tuple[str, bytes], ...] = ()


def _vector(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    raw = text.encode()
    return unsigned(len(raw)) + raw


def _section(number: int, content: bytes) -> bytes:
    return bytes([number]) + unsigned(len(content)) + content


def _code(function: Function) -> bytes:
    runs = [(kind, len(list(group))) for kind, group in groupby(function.locals)]
    body = _vector([unsigned(count) + bytes([kind]) for kind, count in runs]) + function.code + encode("end")
    return unsigned(len(body)) + body


def _names(module: Module) -> bytes:
    """The name section: what debuggers and profilers show."""
    functions = _vector([unsigned(k) + _name(one.name) for k, one in enumerate(module.functions)])
    return _name("name") + _section(0, _name(module.name)) + _section(1, functions)


def write_module(module: Module) -> bytes:
    """The module's bytes."""
    signatures = list(dict.fromkeys((one.params, one.results) for one in module.functions))
    types = [b"\x60" + _vector(_codes(params)) + _vector(_codes(results)) for params, results in signatures]
    exports = [_name("memory") + b"\x02\x00"] + [
        _name(one.name) + b"\x00" + unsigned(k) for k, one in enumerate(module.functions) if one.exported
    ]
    uses = [unsigned(signatures.index((one.params, one.results))) for one in module.functions]
    data = [_data(one) for one in module.data]
    parts = [
        _section(1, _vector(types)), _section(3, _vector(uses)),
        _section(5, _vector([b"\x00" + unsigned(module.pages)])),
        _section(7, _vector(exports)), _section(10, _vector([_code(one) for one in module.functions])),
        _section(11, _vector(data)), _section(0, _names(module)),
        *(_section(0, _name(name) + content) for name, content in module.custom),
    ]
    return b"\0asm\x01\0\0\0" + b"".join(parts)


def _codes(kinds: tuple[ValueType, ...]) -> list[bytes]:
    return [bytes([kind]) for kind in kinds]


def _data(data: Data) -> bytes:
    place = encode("i32.const", data.address) + encode("end")
    return b"\x00" + place + unsigned(len(data.contents)) + data.contents

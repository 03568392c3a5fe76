"""The binary format: a module of functions over one memory, sections in their order.

WebAssembly Core Specification 2.0, chapter 5.5.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    """``locals`` come after the parameters; ``code`` is the body without its last ``end``.

    For debuggers: names of locals by number, and of the blocks in the order in which they begin.
    """

    name: str
    params: tuple[ValueType, ...]
    results: tuple[ValueType, ...]
    locals: tuple[ValueType, ...]
    code: bytes
    exported: bool = True
    local_names: Mapping[int, str] = field(default_factory=dict[int, str])
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A memory of ``pages`` at first, exported as ``memory``, may grow. ``data_names``: one each."""

    name: str
    functions: tuple[Function, ...]
    data: tuple[Data, ...]
    pages: int
    custom: tuple[tuple[str, bytes], ...] = ()
    data_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A module's bytes, and at which of them each function's instructions begin."""

    binary: bytes
    starts: tuple[int, ...]


def _vector(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    raw = text.encode()
    return unsigned(len(raw)) + raw


def _section(number: int, content: bytes) -> bytes:
    return bytes([number]) + unsigned(len(content)) + content


def _code(function: Function) -> tuple[bytes, int]:
    """A function's body, and after how many bytes of it the instructions begin."""
    runs = [(kind, len(list(group))) for kind, group in groupby(function.locals)]
    head = _vector([unsigned(count) + bytes([kind]) for kind, count in runs])
    body = head + function.code + encode("end")
    size = unsigned(len(body))
    return size + body, len(size) + len(head)


def _name_map(names: Mapping[int, str]) -> bytes:
    return _vector([unsigned(k) + _name(name) for k, name in names.items() if name])


def _names(module: Module) -> bytes:
    """The name section: what debuggers and profilers show.

    Module, functions and locals are of the core specification; blocks and data of its extension by the
    proposal "Extended Name Section", which readers pass over that don't know it.
    """
    functions = module.functions
    locals_ = [unsigned(k) + _name_map(one.local_names) for k, one in enumerate(functions)]
    labels = [unsigned(k) + _name_map(dict(enumerate(one.labels))) for k, one in enumerate(functions)]
    parts = {
        0: _name(module.name), 1: _name_map({k: one.name for k, one in enumerate(functions)}),
        2: _vector(locals_), 3: _vector(labels), 9: _name_map(dict(enumerate(module.data_names))),
    }  # fmt: skip
    return _name("name") + b"".join(_section(number, content) for number, content in parts.items())


def append_section(binary: bytes, name: str, content: bytes) -> bytes:
    """A module with a further custom section, which moves nothing else."""
    return binary + _section(0, _name(name) + content)


def source_map_url(url: str) -> tuple[str, bytes]:
    """The section that says where the source map lies (ECMA-426, section 11.2)."""
    return "sourceMappingURL", _name(url)


def write_module(module: Module) -> Written:
    """The module's bytes."""
    signatures = list(dict.fromkeys((one.params, one.results) for one in module.functions))
    types = [b"\x60" + _vector(_codes(params)) + _vector(_codes(results)) for params, results in signatures]
    exports = [_name("memory") + b"\x02\x00"] + [
        _name(one.name) + b"\x00" + unsigned(k) for k, one in enumerate(module.functions) if one.exported
    ]
    uses = [unsigned(signatures.index((one.params, one.results))) for one in module.functions]
    data = [_data(one) for one in module.data]
    bodies = [_code(one) for one in module.functions]
    before = b"".join([
        b"\0asm\x01\0\0\0", _section(1, _vector(types)), _section(3, _vector(uses)),
        _section(5, _vector([b"\x00" + unsigned(module.pages)])), _section(7, _vector(exports)),
    ])  # fmt: skip
    codes = _section(10, _vector([body for body, _ in bodies]))
    after = [
        _section(11, _vector(data)), _section(0, _names(module)),
        *(_section(0, _name(name) + content) for name, content in module.custom),
    ]
    lengths = [len(body) for body, _ in bodies]
    first = len(before) + len(codes) - sum(lengths)
    starts = [first + sum(lengths[:k]) + head for k, (_, head) in enumerate(bodies)]
    return Written(before + codes + b"".join(after), tuple(starts))


def _codes(kinds: tuple[ValueType, ...]) -> list[bytes]:
    return [bytes([kind]) for kind in kinds]


def _data(data: Data) -> bytes:
    place = encode("i32.const", data.address) + encode("end")
    return b"\x00" + place + unsigned(len(data.contents)) + data.contents

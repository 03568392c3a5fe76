"""C++ from a lowered graph: a flat region of integer operations becomes one straight-line function.

For exhaustive runs only. A value is kept as an int64_t or uint64_t in its type's range, so every operation
reads as the registry defines it; anything the emitter does not know is an error.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.types import BoolType, IntType, TensorType, Type, numpy_dtype


def _signed(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.signed


def _width(kind: Type) -> int:
    if isinstance(kind, BoolType):
        return 1
    assert isinstance(kind, IntType), f"no C++ for values of type {kind}"
    return kind.width_bits


def _ctype(kind: Type) -> str:
    return "int64_t" if _signed(kind) else "uint64_t"


def _wrap(text: str, kind: Type) -> str:
    """``text`` (any 64-bit expression) reduced to the type's range."""
    width = _width(kind)
    if _signed(kind):
        return f"((int64_t)((uint64_t)({text}) << {64 - width}) >> {64 - width})"
    mask = (1 << width) - 1
    return f"((uint64_t)({text}) & {mask:#x}ull)"


def _literal(value: int, kind: Type) -> str:
    if _signed(kind):
        return f"(int64_t){value & (1 << 64) - 1:#x}ull"
    return f"{value:#x}ull"


def _infix(sign: str) -> Callable[[Node, list[str]], str]:
    return lambda node, x: _wrap(f"(uint64_t){x[0]} {sign} (uint64_t){x[1]}", node.types[0])


def _compare(sign: str) -> Callable[[Node, list[str]], str]:
    return lambda node, x: f"(uint64_t)({x[0]} {sign} {x[1]})"


def _shl(node: Node, x: list[str]) -> str:
    width = _width(node.types[0])
    return f"({x[1]} >= {width} ? 0 : {_wrap(f'(uint64_t){x[0]} << ({x[1]} & 63)', node.types[0])})"


def _shr(node: Node, x: list[str]) -> str:
    width = _width(node.types[0])
    if _signed(node.types[0]):
        return f"({x[0]} >> ({x[1]} >= {width} ? {width - 1} : {x[1]}))"
    return f"({x[1]} >= {width} ? 0 : {x[0]} >> ({x[1]} & 63))"


def _extract(node: Node, x: list[str]) -> str:
    return _wrap(f"{x[0]} >> {node.attr('low')}", node.types[0])


def _test(node: Node, x: list[str]) -> str:
    return f"((uint64_t){x[0]} >> {node.attr('index')} & 1)"


def _cat(node: Node, x: list[str]) -> str:
    text = "0ull"
    for ref, item in zip(node.inputs, x):
        width = _width(ref.type)
        text = f"({text} << {width} | ((uint64_t){item} & {(1 << width) - 1:#x}ull))"
    return text


def _not(node: Node, x: list[str]) -> str:
    return _wrap(f"~(uint64_t){x[0]}", node.types[0])


def _clz(node: Node, x: list[str]) -> str:
    width = _width(node.inputs[0].type)
    masked = f"((uint64_t){x[0]} & {(1 << width) - 1:#x}ull)"
    return f"({masked} ? (uint64_t)__builtin_clzll({masked}) - {64 - width} : {width}ull)"


def _neg(node: Node, x: list[str]) -> str:
    return _wrap(f"0 - (uint64_t){x[0]}", node.types[0])


def _index(node: Node, x: list[str]) -> str:
    last = node.inputs[0].type.shape[0] - 1  # type: ignore[union-attr]
    return f"{x[0]}[{x[1]} > {last} ? {last} : {x[1]}]"


_RULES: dict[str, Callable[[Node, list[str]], str]] = {
    "integer.add": _infix("+"),
    "integer.sub": _infix("-"),
    "integer.mul": _infix("*"),
    "integer.mul_wide": _infix("*"),
    "integer.neg": _neg,
    "bits.and": _infix("&"),
    "bits.or": _infix("|"),
    "bits.xor": _infix("^"),
    "bits.not": _not,
    "bits.shl": _shl,
    "bits.shr": _shr,
    "bits.extract": _extract,
    "bits.test": _test,
    "bits.cat": _cat,
    "bits.clz": _clz,
    "compare.eq": _compare("=="),
    "compare.ne": _compare("!="),
    "compare.lt": _compare("<"),
    "compare.le": _compare("<="),
    "compare.gt": _compare(">"),
    "compare.ge": _compare(">="),
    "control.select": lambda node, x: f"({x[0]} ? {x[1]} : {x[2]})",
    "convert.cast": lambda node, x: _wrap(x[0], node.types[0]),
    "tensor.index": _index,
}


def _table(name: str, node: Node) -> str:
    kind = node.types[0]
    assert isinstance(kind, TensorType)
    words: Any = np.frombuffer(node.attr("value"), numpy_dtype(kind.element).newbyteorder("<"))
    text = ", ".join(_literal(int(word), kind.element) for word in words)
    return f"static const {_ctype(kind.element)} {name}[{len(words)}] = {{{text}}};"


def emit_function(region: Region, name: str) -> str:
    """``static inline uint64_t name(uint64_t p0, ...)``: the region's one result on its parameters."""
    tables: list[str] = []
    lines: list[str] = []
    names: dict[Ref, str] = {}
    for number, node in enumerate(region.nodes()):
        ref, kind = Ref(node, 0), node.types[0]
        if node.opcode == "core.param":
            names[ref] = f"p{node.attr('index')}"
        elif node.opcode == "core.constant":
            if isinstance(kind, TensorType):
                names[ref] = f"{name}_t{number}"
                tables.append(_table(names[ref], node))
            else:
                data = node.attr("value")
                assert isinstance(data, bytes)
                names[ref] = _literal(int.from_bytes(data, "little", signed=_signed(kind)), kind)
        else:
            text = _RULES[node.opcode](node, [names[item] for item in node.inputs])
            names[ref] = f"v{number}"
            lines.append(f"  const {_ctype(kind)} v{number} = {text};")
    params = ", ".join(f"uint64_t p{i}" for i in range(len(region.params)))
    (result,) = region.results
    return "\n".join([
        *tables, f"static inline uint64_t {name}({params}) {{", *lines,
        f"  return (uint64_t){names[result]};", "}", "",
    ])

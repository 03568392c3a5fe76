"""C++ from a lowered graph: a flat region of integer operations becomes one straight-line function.

For exhaustive runs only. A value is kept in its type's range, in a C++ integer of 32 or 64 bits, so every
operation reads as the registry defines it, and compilers make vectors of many inputs; anything the emitter
does not know is an error.
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


def _unsigned(bits: int) -> str:
    return f"uint{bits}_t"


def _word_bits(kind: Type) -> int:
    """Bits of the C++ integer that keeps a value: short ones are twice as many in a vector register."""
    return 32 if _width(kind) <= 32 else 64


def _ctype(kind: Type) -> str:
    return f"{'' if _signed(kind) else 'u'}int{_word_bits(kind)}_t"


def _work(node: Node) -> int:
    """Bits of the C++ integers that an operation is done in: its operands' and its result's most."""
    return max(_word_bits(kind) for kind in (*(ref.type for ref in node.inputs), *node.types))


def _wrap(text: str, kind: Type, bits: int) -> str:
    """``text`` (an expression of ``bits`` bits) reduced to the type's range."""
    width, word = _width(kind), _unsigned(bits)
    if _signed(kind):
        return f"((int{bits}_t)(({word})({text}) << {bits - width}) >> {bits - width})"
    return f"(({word})({text}) & ({word}){(1 << width) - 1:#x}ull)" if width < bits else f"({word})({text})"


def _literal(value: int, kind: Type) -> str:
    return f"({_ctype(kind)}){value & (1 << 64) - 1:#x}ull"


def _infix(sign: str) -> Callable[[Node, list[str]], str]:
    def rule(node: Node, x: list[str]) -> str:
        bits = _work(node)
        word = _unsigned(bits)
        return _wrap(f"({word}){x[0]} {sign} ({word}){x[1]}", node.types[0], bits)

    return rule


def _compare(sign: str) -> Callable[[Node, list[str]], str]:
    return lambda node, x: f"(uint32_t)({x[0]} {sign} {x[1]})"


def _shl(node: Node, x: list[str]) -> str:
    width, bits = _width(node.types[0]), _work(node)
    moved = _wrap(f"({_unsigned(bits)}){x[0]} << ({x[1]} & {bits - 1})", node.types[0], bits)
    return f"({x[1]} >= {width} ? 0 : {moved})"


def _shr(node: Node, x: list[str]) -> str:
    width = _width(node.types[0])
    if _signed(node.types[0]):
        return f"({x[0]} >> ({x[1]} >= {width} ? {width - 1} : {x[1]}))"
    return f"({x[1]} >= {width} ? 0 : {x[0]} >> ({x[1]} & {_word_bits(node.types[0]) - 1}))"


def _extract(node: Node, x: list[str]) -> str:
    bits = _work(node)
    return _wrap(f"({_unsigned(bits)}){x[0]} >> {node.attr('low')}", node.types[0], bits)


def _test(node: Node, x: list[str]) -> str:
    return f"(uint32_t)({x[0]} >> {node.attr('index')} & 1)"


def _cat(node: Node, x: list[str]) -> str:
    bits = _work(node)
    word = _unsigned(bits)
    text = f"({word})0"
    for ref, item in zip(node.inputs, x):
        width = _width(ref.type)
        shifted = f"{text} << {width}" if width < bits else text
        text = f"({shifted} | (({word}){item} & ({word}){(1 << width) - 1:#x}ull))"
    return text


def _not(node: Node, x: list[str]) -> str:
    bits = _work(node)
    return _wrap(f"~({_unsigned(bits)}){x[0]}", node.types[0], bits)


def _clz(node: Node, x: list[str]) -> str:
    kind = node.inputs[0].type
    width, bits = _width(kind), _word_bits(kind)
    moved = f"({_unsigned(bits)}){x[0]} << {bits - width}"
    return f"leading_zeros({moved}, {width})"


def _neg(node: Node, x: list[str]) -> str:
    bits = _work(node)
    return _wrap(f"0 - ({_unsigned(bits)}){x[0]}", node.types[0], bits)


def _index(node: Node, x: list[str]) -> str:
    last = node.inputs[0].type.shape[0] - 1  # type: ignore[union-attr]
    return f"{x[0]}[{x[1]} > {last} ? {last} : {x[1]}]"


def _cast(node: Node, x: list[str]) -> str:
    bits = _work(node)
    return _wrap(f"({_unsigned(bits)}){x[0]}", node.types[0], bits)


_PRELUDE = """
// Of a value moved to its word's top: zeros above the highest set bit, at most ``most``. By halves: a vector
// of words has no instruction for it.
[[gnu::always_inline]] static inline uint32_t leading_zeros(uint32_t value, uint32_t most) {
#define HALVE(step) { \\
    const uint32_t clear = value >> (32 - step) ? 0 : step; \\
    zeros += clear; \\
    value <<= clear; \\
  }
  uint32_t zeros = 0;
  const uint32_t given = value;
  HALVE(16) HALVE(8) HALVE(4) HALVE(2) HALVE(1)
#undef HALVE
  return given ? zeros : most;
}
[[gnu::always_inline]] static inline uint32_t leading_zeros(uint64_t value, uint32_t most) {
  const uint32_t high = (uint32_t)(value >> 32), low = (uint32_t)value;
  return value ? (high ? leading_zeros(high, 32u) : 32 + leading_zeros(low, 32u)) : most;
}
"""

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
    "convert.cast": _cast,
    "tensor.index": _index,
}


def _table(name: str, node: Node) -> str:
    kind = node.types[0]
    assert isinstance(kind, TensorType)
    words: Any = np.frombuffer(node.attr("value"), numpy_dtype(kind.element).newbyteorder("<"))
    text = ", ".join(_literal(int(word), kind.element) for word in words)
    return f"static const {_ctype(kind.element)} {name}[{len(words)}] = {{{text}}};"


def emit_function(region: Region, name: str) -> str:
    """``static inline`` function of the region's parameters p0, p1, ...: its one result, without a sign."""
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
    words = [f"{_unsigned(_word_bits(kind))} p{i}" for i, kind in enumerate(region.params)]
    (result,) = region.results
    word = _unsigned(_word_bits(result.type))
    head = f"[[gnu::always_inline]] static inline {word} {name}({', '.join(words)}) {{"
    return "\n".join([
        _PRELUDE, *tables, head, *lines, f"  return ({word}){names[result]};", "}", "",
    ])

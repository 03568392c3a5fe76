"""Verilog text of constants, vectors and bitwise expressions, every operand exactly as wide as its place."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from kera_hw.graph.node import Origin
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width
from kera_hw.schedule.fpga.expressions import BitExpr

Reader = Callable[[Segment], list[str]]  # pieces of one segment, least significant first

_OPERATORS = {"and": " & ", "or": " | ", "xor": " ^ "}


def constant(value: int, width: int) -> str:
    """A sized literal; hexadecimal from five bits on, where the digits say more."""
    if value == 0:
        return f"{width}'h0" if width > 4 else f"{width}'d0"
    return f"{width}'h{value:x}" if width > 4 else f"{width}'d{value}"


def source_of(origin: Origin) -> str:
    """What a `src` attribute holds."""
    return str(origin).replace("\\", "/").replace('"', "'")


def declared_range(width: int) -> str:
    """The range of a declaration, with its blank; none for one bit."""
    return f"[{width - 1}:0] " if width > 1 else ""


def part(name: str, low: int, width: int, whole: int) -> str:
    """Bits ``low`` to ``low + width - 1`` of a signal ``whole`` bits wide."""
    if width == whole:
        return name
    if width == 1:
        return f"{name}[{low}]"
    return f"{name}[{low + width - 1}:{low}]"


def vector(bits: Bits, read: Reader) -> str:
    """The concatenation that ``bits`` describe; one signal or literal stands alone."""
    pieces: list[str] = []
    for segment in bits:
        if segment.cell is None:
            pieces.append(constant(segment.low, segment.width))
        else:
            pieces.extend(read(segment))
    return joined(pieces)


def joined(pieces: Sequence[str]) -> str:
    """Concatenate pieces given least significant first; a run of equal pieces becomes a replication."""
    runs: list[tuple[str, int]] = []
    for piece in reversed(pieces):
        if runs and runs[-1][0] == piece:
            runs[-1] = (piece, runs[-1][1] + 1)
        else:
            runs.append((piece, 1))
    parts = [piece if count == 1 else "{" + f"{count}{{{piece}}}" + "}" for piece, count in runs]
    if len(parts) == 1:
        return parts[0]
    return "{" + ", ".join(parts) + "}"


def widened(bits: Bits, width: int, read: Reader) -> str:
    """An operand of a bitwise expression: as wide as the result, or one bit repeated."""
    text = vector(bits, read)
    if bits_width(bits) == 1 and width > 1:
        return "{" + f"{width}{{{text}}}" + "}"
    return text


def expression(expr: BitExpr, operands: Sequence[Bits], width: int, read: Reader) -> str:
    """A bitwise expression over ``operands`` as Verilog, ``width`` bits wide."""
    kind = expr[0]
    if kind == "in":
        return widened(operands[cast(int, expr[1])], width, read)
    if kind == "const":
        return constant(((1 << width) - 1) if expr[1] else 0, width)
    if kind == "not":
        return "~" + _factor(cast(BitExpr, expr[1]), operands, width, read)
    if kind == "mux":
        return _multiplexer(expr, operands, width, read)
    parts = [_factor(cast(BitExpr, item), operands, width, read) for item in expr[1:]]
    return _OPERATORS[cast(str, kind)].join(parts)


def _factor(expr: BitExpr, operands: Sequence[Bits], width: int, read: Reader) -> str:
    text = expression(expr, operands, width, read)
    return text if expr[0] in ("in", "const", "not") else f"({text})"


def _multiplexer(expr: BitExpr, operands: Sequence[Bits], width: int, read: Reader) -> str:
    condition, then, otherwise = (cast(BitExpr, item) for item in expr[1:4])
    if condition[0] == "in" and bits_width(operands[cast(int, condition[1])]) == 1:
        select = vector(operands[cast(int, condition[1])], read)
        yes, no = (_factor(item, operands, width, read) for item in (then, otherwise))
        return f"{select} ? {yes} : {no}"
    chosen, yes, no = (_factor(item, operands, width, read) for item in (condition, then, otherwise))
    return f"({chosen} & {yes}) | (~{chosen} & {no})"

"""Machine code as text, each stretch under the lines of source that it is for."""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mem, Operand, RegClass
from kera_hw.cpu_gpu.machine.finish import Machine
from kera_hw.graph.node import Origin
from kera_hw.support import SourceFile

_X86 = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{k}" for k in range(8, 16)))
_LETTERS = {RegClass.GENERAL: "x", RegClass.VECTOR: "v", RegClass.MASK: "k", RegClass.PAIR: "p"}


def listing(machine: Machine, architecture: str, sources: Mapping[str, SourceFile]) -> str:
    """A line an instruction: where it begins, its row in the table of encodings, its operands."""
    lines: list[str] = []
    last: Origin | None = None
    for offset, inst in machine.instructions:
        if inst.place is not None and inst.place != last:
            last = inst.place
            lines += _heading(last, sources)
        lines.append(f"  {offset:5x}  {_instruction(inst, architecture)}")
    return "\n".join(lines) + "\n"


def _heading(place: Origin, sources: Mapping[str, SourceFile]) -> list[str]:
    found = sources.get(place.path)
    if found is None:
        return [f"; {place}"]
    return [f"; {place.path}:{place.line}: {found.line_text(place.line).strip()}"]


def _instruction(inst: Inst, architecture: str) -> str:
    operands = ", ".join(_operand(item, architecture) for item in inst.operands)
    return f"{inst.op:<16}{operands}".rstrip()


def _operand(item: Operand, architecture: str) -> str:
    match item:
        case Fixed(number=number, cls=cls):
            if architecture == "x86-64" and cls is RegClass.GENERAL:
                return _X86[number]
            return f"{_LETTERS[cls]}{number}"
        case Mem(label=label) if label is not None:
            return f"[constant {label}]"
        case Mem(base=base, index=index, scale=scale, offset=offset):
            parts = [_operand(base, architecture)] if base is not None else []
            if index is not None:
                parts.append(_operand(index, architecture) + (f"*{scale}" if scale > 1 else ""))
            sign = "-" if offset < 0 else "+"
            return f"[{' + '.join(parts)}{f' {sign} {abs(offset)}' if offset else ''}]"
        case Label(number=number):
            return f"L{number}"
        case _:
            return str(item)

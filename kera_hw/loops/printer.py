"""A loop program as text that ``parser`` reads back: one statement a line, blocks in braces."""
from __future__ import annotations

from collections.abc import Iterator

from kera_hw.graph.node import Origin
from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Schedule,
    Statement,
    Storage,
    Store,
    Var,
    While,
)
from kera_hw.ops.spec import AttrValue
from kera_hw.types import Type


def print_program(program: LoopProgram, places: bool = True) -> str:
    """The whole program; ``places`` adds source lines as comments."""
    lines = [f"loops {program.name}"]
    lines += [_buffer(buffer) for buffer in program.buffers]
    lines += ["{", *_block(program.body, 1, places), "}"]
    return "\n".join(lines) + "\n"


def _buffer(buffer: Buffer) -> str:
    shape = f"[{', '.join(map(str, buffer.shape))}]" if buffer.shape else ""
    data = f" = {_contents(buffer)}" if buffer.kind in ("const", "state") else ""
    return f"{buffer.name}: {buffer.kind} {buffer.element}{shape}{_storage(buffer.storage)}{data}"


def _contents(buffer: Buffer) -> str:
    """The bytes; of equal elements one and their number."""
    data, count = buffer.data, buffer.size
    element = data[: len(data) // count] if count else b""
    if count > 1 and data == element * count:
        return f"{element.hex()} times {count}"
    return data.hex() or "none"


def _storage(storage: Storage) -> str:
    where = f" in {storage.memory}" if storage.memory else ""
    window = f" window {storage.window}" if storage.window else ""
    banks = "".join(f" bank {bank.spread} {bank.count} on {bank.axis}" for bank in storage.banks)
    return f"{where}{window}{banks}{f' copies {storage.copies}' if storage.copies != 1 else ''}"


def _block(block: Block, depth: int, places: bool) -> Iterator[str]:
    indent = "  " * depth
    for statement in block.body:
        yield from _statement(statement, depth, places)
    if block.yields:
        yield f"{indent}yield {', '.join(map(operand, block.yields))}"


def _statement(statement: Statement, depth: int, places: bool) -> Iterator[str]:
    indent = "  " * depth
    match statement:
        case Op(results=results, opcode=opcode, operands=operands, attrs=attrs, place=place):
            extra = "".join(f" {key}={attribute(value)}" for key, value in attrs)
            inputs = "".join(f" {operand(item)}" for item in operands)
            yield f"{indent}{_vars(results)} = {opcode}{inputs}{extra}{_place(place, places)}"
        case Load(result=result, buffer=name, index=index, place=place):
            yield f"{indent}{_var(result)} = load {name}{_index(index)}{_place(place, places)}"
        case Store(buffer=name, index=index, value=value, place=place):
            yield f"{indent}store {name}{_index(index)} {operand(value)}{_place(place, places)}"
        case Alloc(buffer=buffer):
            yield indent + _buffer(buffer)
        case For(var=var, count=count, carried=carried, body=body, schedule=schedule, place=place):
            word = schedule.on or ("parallel" if statement.parallel else "for")
            head = f"{word} {var.name} < {count}{_carried(carried)}{_schedule(schedule)}"
            yield f"{indent}{head} {{{_place(place, places)}"
            yield from _block(body, depth + 1, places)
            yield indent + "}"
        case While(most=most, carried=carried, condition=condition, body=body, place=place):
            yield f"{indent}while max {most}{_carried(carried)} {{{_place(place, places)}"
            yield from _block(condition, depth + 1, places)
            yield indent + "} {"
            yield from _block(body, depth + 1, places)
            yield indent + "}"
        case If(condition=condition, then=then, otherwise=otherwise, results=results, place=place):
            head = f"{_vars(results)} = " if results else ""
            yield f"{indent}{head}if {operand(condition)} {{{_place(place, places)}"
            yield from _block(then, depth + 1, places)
            yield indent + "} else {"
            yield from _block(otherwise, depth + 1, places)
            yield indent + "}"


def _schedule(schedule: Schedule) -> str:
    def table(word: str, rows: tuple[tuple[str, int], ...]) -> str:
        return f" {word}({', '.join(f'{name}={count}' for name, count in rows)})" if rows else ""

    interval = f" ii {schedule.initiation_interval}" if schedule.initiation_interval else ""
    return f"{interval}{table('latency', schedule.latencies)}{table('units', schedule.units)}"


def _place(place: Origin | None, places: bool) -> str:
    return f"  // {place.path}:{place.line}" if places and place is not None else ""


def _var(var: Var) -> str:
    return f"{var.name}: {var.type}"


def _vars(variables: tuple[Var, ...]) -> str:
    return ", ".join(map(_var, variables))


def _carried(carried: tuple[Carried, ...]) -> str:
    parts = (f"{_var(item.inner)} = {operand(item.initial)} -> {item.outer.name}" for item in carried)
    return f" ({', '.join(parts)})" if carried else ""


def operand(item: Operand) -> str:
    """A variable by name; a literal as its bits and type."""
    return item.name if isinstance(item, Var) else _literal(item)


def _literal(item: Literal) -> str:
    return f"{item.bits:#x}:{item.type}"


def _index(index: tuple[Affine, ...]) -> str:
    return f"[{', '.join(map(affine_text, index))}]" if index else ""


def affine_text(expression: Affine) -> str:
    """``i1 + 4*i2 - 3``."""
    text = ""
    for var, coefficient in expression.terms:
        sign = "-" if coefficient < 0 else "+" if text else ""
        factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
        text += f" {sign} {factor}{var.name}" if text else f"{sign}{factor}{var.name}"
    if not text:
        return str(expression.constant)
    if expression.constant:
        text += f" {'-' if expression.constant < 0 else '+'} {abs(expression.constant)}"
    return text


def attribute(value: AttrValue) -> str:
    """Integers, words and types: what scalar operations have."""
    if isinstance(value, str):
        return f'"{value}"'
    assert isinstance(value, (bool, int, Type)), f"a scalar operation has no attribute {value!r}"
    return str(value)

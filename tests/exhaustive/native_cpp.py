"""A native program on scalars as C++: one statement an operation, for a machine with the native set."""
from __future__ import annotations

import struct

from kera_hw.loops.program import Block, Buffer, If, Literal, Load, LoopProgram, Op, Operand, Statement, Store
from kera_hw.types import BoolType, FloatType, IntType, Type

_INFIX = {
    "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%"}
_CALLS = {
    "abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "round": "nearbyint", "trunc": "trunc",
}


def ctype(kind: Type) -> str:
    """The C++ type of a native one."""
    if isinstance(kind, BoolType):
        return "bool"
    if isinstance(kind, FloatType):
        return "float" if kind.width_bits == 32 else "double"
    assert isinstance(kind, IntType)
    return f"{'' if kind.signed else 'u'}int{kind.width_bits}_t"


def function(program: LoopProgram, name: str) -> str:
    """C++ text of the program, from its parameters to its only result, all of them scalars."""
    (result,) = program.of_kind("result")
    params = program.of_kind("param")
    places = {buffer.name: f"p{k}" for k, buffer in enumerate(params)}
    given = ", ".join(f"{ctype(buffer.element)} {places[buffer.name]}" for buffer in params)
    lines = [_table(buffer, places.setdefault(buffer.name, f"{name}_{buffer.name}"))
             for buffer in program.of_kind("const")]
    lines += [f"static inline {ctype(result.element)} {name}({given}) {{", *_block(program.body, places), "}"]
    return "\n".join(lines) + "\n"


def _table(buffer: Buffer, name: str) -> str:
    """A constant of 64-bit elements."""
    words = ", ".join(f"{word:#x}ull" for (word,) in struct.iter_unpack("<Q", buffer.data))
    return f"static const uint64_t {name}[] = {{{words}}};"


def _block(block: Block, places: dict[str, str]) -> list[str]:
    return [f"    {line}" for statement in block.body for line in _statement(statement, places)]


def _statement(statement: Statement, places: dict[str, str]) -> list[str]:
    match statement:
        case Load(result=result, buffer=buffer, index=()):
            return [f"const {ctype(result.type)} {result.name} = {places[buffer]};"]
        case Load(result=result, buffer=buffer, index=(part,)):
            terms = [str(part.constant), *(f"{factor} * (int64_t){var.name}" for var, factor in part.terms)]
            word = f"{places[buffer]}[{' + '.join(terms)}]"
            kind = ctype(result.type)
            return [f"const {kind} {result.name} = __builtin_bit_cast({kind}, {word});"]
        case Store(value=value, index=()):
            return [f"return {_operand(value)};"]
        case Op(results=(result,)):
            return [f"const {ctype(result.type)} {result.name} = {_expression(statement, result.type)};"]
        case If(condition=condition, then=then, otherwise=otherwise, results=results):
            lines = [f"{ctype(result.type)} {result.name};" for result in results]
            for head, arm in ((f"if ({_operand(condition)}) {{", then), ("} else {", otherwise)):
                given = [f"    {r.name} = {_operand(y)};" for r, y in zip(results, arm.yields)]
                lines += [head, *_block(arm, places), *given]
            return [*lines, "}"]
        case _:
            raise AssertionError(f"{statement} is no statement on scalars")


def _operand(operand: Operand) -> str:
    if not isinstance(operand, Literal):
        return operand.name
    kind = operand.type
    if isinstance(kind, FloatType):
        suffix = "u" if kind.width_bits == 32 else "ull"
        return f"__builtin_bit_cast({ctype(kind)}, {operand.bits:#x}{suffix})"
    return f"({ctype(kind)}){operand.bits:#x}ull"


def _expression(op: Op, kind: Type) -> str:
    family, verb = op.opcode.split(".")
    args = [_operand(operand) for operand in op.operands]
    if op.opcode == "control.select":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if family == "convert":
        by_bits = f"__builtin_bit_cast({ctype(kind)}, {args[0]})"
        return by_bits if verb == "bitcast" else f"({ctype(kind)}){args[0]}"
    if verb in _INFIX:
        return f"({ctype(kind)})({args[0]} {_INFIX[verb]} {args[1]})"
    if family == "floating":
        if verb in _SIGNS:
            return f"{args[0]} {_SIGNS[verb]} {args[1]}"
        return f"-{args[0]}" if verb == "neg" else f"std::{_CALLS[verb]}({args[0]})"
    if verb == "not":
        return f"!{args[0]}" if isinstance(kind, BoolType) else f"({ctype(kind)})~{args[0]}"
    return f"({ctype(kind)})({_integers(verb, kind, args)})"


def _integers(verb: str, kind: Type, args: list[str]) -> str:
    """Wrapping arithmetic in unsigned words, where C++ defines it."""
    assert isinstance(kind, IntType)
    word = "uint64_t" if kind.width_bits == 64 else "uint32_t"
    match verb:
        case "min" | "max":
            return f"{args[0]} {'<' if verb == 'min' else '>'} {args[1]} ? {args[0]} : {args[1]}"
        case "neg":
            return f"({word})0 - ({word}){args[0]}"
        case "abs":
            return f"{args[0]} < 0 ? ({word})0 - ({word}){args[0]} : ({word}){args[0]}"
        case "div" | "rem" | "shr":
            return f"{args[0]} {_SIGNS.get(verb, '>>')} {args[1]}"
        case "shl":
            return f"({word}){args[0]} << {args[1]}"
        case _:
            return f"({word}){args[0]} {_SIGNS[verb]} ({word}){args[1]}"

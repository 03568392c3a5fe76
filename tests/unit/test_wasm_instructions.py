"""The instruction table against a foreign assembler, row by row; modules against a foreign engine."""
from __future__ import annotations

import pytest
import wasmtime

from kera_hw.schedule.software.layout import Data
from kera_hw.wasm.instructions import Instruction, encode, instructions, signed, unsigned
from kera_hw.wasm.module import Function, Module, ValueType, write_module

# Structure is written around other instructions, and tested with modules.
STRUCTURE = {"block", "loop", "if", "else", "end", "br", "br_if", "call", "return", "unreachable"}
_OFFSET, _LANE, _LOCAL = 300, 1, 3
_MINUS = -1234


def _immediates(row: Instruction) -> tuple[str, list[int]]:
    """As text for the assembler, and as values for ours."""
    text: list[str] = []
    values: list[int] = []
    for kind in row.immediates:
        match kind:
            case "memory":
                text.append(f"offset={_OFFSET}")
                values.append(_OFFSET)
            case "lane":
                text.append(str(_LANE))
                values.append(_LANE)
            case "local":
                text.append(str(_LOCAL))
                values.append(_LOCAL)
            case "i32" | "i64":
                text.append(str(_MINUS))
                values.append(_MINUS % (1 << int(kind[1:])))
            case "f32" | "f64":
                text.append("nan:0x12345")
                values.append({"f32": 0x7F812345, "f64": 0x7FF0000000012345}[kind])
            case "v128":
                text.append("i64x2 1 -2")
                values.append(1 | ((1 << 64) - 2) << 64)
            case _:
                assert kind == "zero"
    return " ".join(text), values


@pytest.mark.parametrize("name", sorted(set(instructions()) - STRUCTURE))
def test_an_instruction(name: str) -> None:
    text, values = _immediates(instructions()[name])
    # What comes before leaves the stack open to anything, so that every instruction is valid there.
    source = f"(module (memory 1) (func (local i32 i32 i32 i32) unreachable {name} {text} unreachable))"
    assert b"\x00" + encode(name, *values) + b"\x00\x0b" in bytes(wasmtime.wat2wasm(source))


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 300, (1 << 31) - 1, 1 << 31, (1 << 64) - 1])
def test_numbers(value: int) -> None:
    """LEB128 read back by its definition."""
    assert sum((byte & 0x7F) << 7 * k for k, byte in enumerate(unsigned(value))) == value
    for number in (value, -value):
        raw = signed(number)
        total = sum((byte & 0x7F) << 7 * k for k, byte in enumerate(raw))
        assert total - ((raw[-1] >> 6 & 1) << 7 * len(raw)) == number


def test_a_module() -> None:
    """Every section: types shared, a memory with data, names, and a function that an engine runs."""
    body = encode("local.get", 0) + encode("i32.load8_u", 16) + encode("local.get", 0) + encode("i32.add")
    first = Function("sum", (ValueType.I32,), (ValueType.I32,), (ValueType.I64, ValueType.I64), body)
    second = Function("same", (ValueType.I32,), (ValueType.I32,), (), encode("local.get", 0))
    module = Module("m", (first, second), (Data(16, b"\x05\x07"),), 2, (("note", b"abc"),))
    binary = write_module(module).binary
    engine = wasmtime.Engine()
    wasmtime.Module.validate(engine, binary)
    store = wasmtime.Store(engine)
    exports = wasmtime.Instance(store, wasmtime.Module(engine, binary), []).exports(store)
    total, same, memory = exports["sum"], exports["same"], exports["memory"]
    assert isinstance(total, wasmtime.Func) and isinstance(same, wasmtime.Func)
    assert isinstance(memory, wasmtime.Memory)
    assert (total(store, 0), total(store, 1), same(store, 9)) == (5, 8, 9)
    assert memory.size(store) == 2

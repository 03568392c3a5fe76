"""A small evaluator of cell netlists for tests: Python integers, no timing."""
from __future__ import annotations

from kera_hw.schedule.netlist import (
    Add,
    BitExpr,
    Bits,
    Cell,
    Input,
    Lut,
    Mul,
    Mux,
    Netlist,
    Rom,
    StateOut,
    bits_width,
)


def _read(values: list[int], bits: Bits) -> int:
    out = position = 0
    for s in bits:
        value = s.low if s.cell is None else values[s.cell] >> s.low
        out |= (value & ((1 << s.width) - 1)) << position
        position += s.width
    return out


def _logic(expr: BitExpr, operands: list[int], mask: int) -> int:
    name = expr[0]
    if name == "in":
        return operands[expr[1]]
    if name == "const":
        return mask if expr[1] else 0
    parts = [_logic(item, operands, mask) for item in expr[1:]]
    if name == "not":
        return mask ^ parts[0]
    if name == "mux":
        return parts[0] & parts[1] | (mask ^ parts[0]) & parts[2]
    out = parts[0]
    for part in parts[1:]:
        out = out & part if name == "and" else out | part if name == "or" else out ^ part
    return out


def _broadcast(values: list[int], bits: Bits, width: int) -> int:
    value = _read(values, bits)
    if bits_width(bits) == 1:
        return ((1 << width) - 1) * value
    assert bits_width(bits) == width, f"operand of {bits_width(bits)} bits in a cell of {width}"
    return value


def _signed(value: int, width: int, signed: bool) -> int:
    return value - (1 << width) if signed and value >> (width - 1) & 1 else value


def cell_value(cell: Cell, values: list[int], inputs: dict[str, int], states: list[int]) -> int:
    mask = (1 << cell.width) - 1
    match cell:
        case Input():
            return inputs[cell.bus] >> cell.low & mask
        case StateOut():
            return states[cell.state]
        case Lut():
            assert 1 <= len(cell.inputs) <= 4
            return _logic(cell.expr, [_broadcast(values, b, cell.width) for b in cell.inputs], mask)
        case Add():
            width = cell.width - cell.carry_out
            full = (1 << width) - 1
            assert bits_width(cell.a) == width
            f = _logic(cell.expr, [_broadcast(values, b, width) for b in cell.inputs], full)
            return (_read(values, cell.a) + f + (_read(values, cell.carry_in) if cell.carry_in else 0)) & mask
        case Mul():
            a = _signed(_read(values, cell.a), bits_width(cell.a), cell.a_signed)
            b = _signed(_read(values, cell.b), bits_width(cell.b), cell.b_signed)
            return a * b & mask
        case Mux():
            index = min(_read(values, cell.select), len(cell.choices) - 1)
            assert all(bits_width(c) == cell.width for c in cell.choices)
            return _read(values, cell.choices[index])
        case Rom():
            address = _read(values, cell.address)
            return cell.contents[address] if address < len(cell.contents) else 0
    raise AssertionError(cell)


def run_netlist(netlist: Netlist, items: list[dict[str, int]]) -> list[dict[str, int]]:
    """Outputs of a sequence of items, state carried along, each bus as one integer."""
    states = [state.initial for state in netlist.states]
    results: list[dict[str, int]] = []
    for inputs in items:
        values: list[int] = []
        for index, cell in enumerate(netlist.cells):
            for bits in cell.operands():
                assert all(s.cell is None or s.cell < index for s in bits), "cells are not in order"
            values.append(cell_value(cell, values, inputs, states))
        results.append({out.bus: _read(values, out.bits) for out in netlist.outputs})
        states = [_read(values, state.next) for state in netlist.states]
    return results

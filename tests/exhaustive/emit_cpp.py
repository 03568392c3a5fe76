"""An elementary function's program as C++: the same steps in the same order, one statement each.

Compiled with -ffp-contract=off on SSE2 or AVX2 every statement is the one IEEE 754 operation that NumPy does,
so the function has the same bits; a sample is compared all the same.
"""
from __future__ import annotations

from kera_hw.numerics.elementary.program import Sort, Trace, TraceStep

_TYPES = {Sort.REAL: "double", Sort.WORD: "uint64_t", Sort.FLAG: "bool"}
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "lt": "<", "le": "<=", "eq": "==", "ult": "<", "ieq": "==",
    "iadd": "+", "isub": "-", "imul": "*", "and": "&", "or": "|", "xor": "^",
    "shift_left": "<<", "shift_right": ">>", "both": "&", "either": "|",
}


def function(program: Trace, name: str) -> str:
    """C++ text of ``static inline double name(double)`` with its tables."""
    lines: list[str] = []
    for number, table in enumerate(program.tables):
        entries = ", ".join(f"{entry:#x}ull" for entry in table.entries)
        lines.append(f"static const uint64_t {name}_table{number}[{len(table.entries)}] = {{{entries}}};")
    lines.append(f"static inline double {name}(double argument) {{")
    for index, step in enumerate(program.steps):
        lines.append(f"    const {_TYPES[step.sort]} v{index} = {_expression(step, name)};")
    lines += [f"    return v{program.result};", "}"]
    return "\n".join(lines) + "\n"


def _expression(step: TraceStep, name: str) -> str:
    x = [f"v{a}" for a in step.arguments]
    match step.verb:
        case "argument":
            return "argument"
        case "real":
            return f"to_real({step.parameter:#x}ull)"
        case "word":
            return f"{step.parameter:#x}ull"
        case "select":
            return f"{x[0]} ? {x[1]} : {x[2]}"
        case "fma":
            return f"fma({x[0]}, {x[1]}, {x[2]})"
        case "shl":
            return f"{x[0]} << {step.parameter}"
        case "shr":
            return f"{x[0]} >> {step.parameter}"
        case "sar":
            return f"(uint64_t)((int64_t){x[0]} >> {step.parameter})"
        case "to_bits":
            return f"to_bits({x[0]})"
        case "from_bits":
            return f"to_real({x[0]})"
        case "lookup":
            entry = f"{name}_table{step.parameter}[{x[0]}]"
            return f"to_real({entry})" if step.sort is Sort.REAL else entry
        case verb:
            return f"{x[0]} {_INFIX[verb]} {x[1]}"

"""The interpreter of PTX on kernels that others wrote by hand: ``python -m tests.foreign_ptx FOLDER``.

The folder is `ptx/src/test/spirv_run` of ZLUDA (https://github.com/vosen/ZLUDA), whose tests give a kernel's
inputs and what NVIDIA's GPUs make of them. A kernel of ours reads a part of PTX; what else there is has to be
refused, by its line, and never run otherwise. Their texts stay where they are: only the outcome is ours.
"""
from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.numerics.arrays import Array
from kera_hw.support import KeraError

_CALL = re.compile(
    r"^test_ptx(?:_with_32)?!\(\s*(\w+)\s*,\s*(\[.*?\])\s*,\s*(\[.*?\])\s*,?\s*\);", re.DOTALL | re.MULTILINE
)
_NAMED = re.compile(r"(-?)(f32|f64|[ui]\d+)::(\w+?)(?:_value)?(?:\(\))?", re.IGNORECASE)
_WRITTEN = re.compile(
    r"(-?)(0x[0-9A-Fa-f_]+?|0b[01_]+?|[0-9][0-9_.]*?(?:e-?\d+)?)_?(f32|f64|[ui](?:8|16|32|64))?"
)


def values(text: str) -> Array:
    """A row of Rust's numbers, of the type that one of them names. Raises ValueError for any other."""
    kind, found = "", list[float | int]()
    for item in filter(None, map(str.strip, text.strip()[1:-1].split(","))):
        named, written = _NAMED.fullmatch(item), _WRITTEN.fullmatch(item)
        if named:
            sign, of, name = named.groups()
            value = _named(np.dtype(_DTYPES[of]), name.lower())
        elif written:
            sign, digits, of = written.groups()
            value = _number(digits.replace("_", ""), of or "")
        else:
            raise ValueError(f"{item} is no number that is known here")
        found.append(-value if sign else value)
        kind = kind or of or ""
    dtype = np.dtype(_DTYPES[kind or "i32"])
    if dtype.kind == "f":
        return np.array(found, dtype)
    whole = [int(value) & ((1 << 8 * dtype.itemsize) - 1) for value in found]
    return np.array(whole, f"u{dtype.itemsize}").view(dtype)


_DTYPES = {"f32": "f4", "f64": "f8"} | {
    f"{letter}{width}": f"{letter}{width // 8}" for letter in "ui" for width in (8, 16, 32, 64)
}


def _named(dtype: np.dtype[Any], name: str) -> float | int:
    if name in ("nan", "infinity", "neg_infinity"):
        return {"nan": np.nan, "infinity": np.inf, "neg_infinity": -np.inf}[name]
    if name not in ("min", "max"):
        raise ValueError(f"{name} is no number that is known here")
    bits = 8 * dtype.itemsize
    if dtype.kind == "f":
        greatest = float(np.finfo(np.float32 if bits == 32 else np.float64).max)
        return -greatest if name == "min" else greatest
    least = -(1 << (bits - 1)) if dtype.kind == "i" else 0
    return least if name == "min" else least + (1 << bits) - 1


def _number(digits: str, kind: str) -> float | int:
    if digits[:2] in ("0x", "0b"):
        return int(digits, 0)
    return float(digits) if kind.startswith("f") or not digits.isdigit() else int(digits)


def outcome(text: str, name: str, inputs: Array, wanted: Array) -> str:
    """"equal", "differs", or why it is refused."""
    try:
        machine = Machine(text)
        given = [machine.allocate(max(one.nbytes, 8)) for one in (inputs, wanted)]
        machine.upload(given[0], inputs)
        machine.upload(given[1], np.zeros_like(wanted))
        machine.launch(name, (1, 1), 1, given)
    except KeraError as refusal:
        first = refusal.diagnostics[0]
        return re.sub(r" line \d+", "", f"{first.code} {first.message}")
    found = machine.download(given[1], wanted.nbytes).view(wanted.dtype)
    same = np.array_equal(found, wanted, equal_nan=wanted.dtype.kind == "f")
    return "equal" if same else "differs"


def outcomes(folder: Path) -> Iterator[tuple[str, str]]:
    """By kernel; those whose values are of types that NumPy lacks are left out."""
    listed = re.sub(r"//[^\n]*", "", (folder / "mod.rs").read_text(encoding="utf-8"))
    for name, inputs, wanted in _CALL.findall(listed):
        try:
            row = values(inputs), values(wanted)
        except ValueError:
            continue
        text = (folder / f"{name}.ptx").read_text(encoding="utf-8")
        yield name, outcome(text, name, *row)


def main() -> int:
    found = dict(outcomes(Path(sys.argv[1])))
    for name, what in found.items():
        print(f"{name}: {what}")
    counts = Counter(what if what in ("equal", "differs") else what[:5] for what in found.values())
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    return int("differs" in counts)


if __name__ == "__main__":
    sys.exit(main())

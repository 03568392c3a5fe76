"""Reads AMDGCN text: kernels with their descriptors, variables, each instruction held against the table.

LLVM's assembler syntax ("User Guide for AMDGPU Backend"), and what the MI200 and MI300 ISA references say of
operands: pairs begin at even registers, an instruction takes one scalar register or literal, and registers
are within what the descriptor gives a wave. What is not among the emitted part is refused (K0707) with its
line, and nothing is skipped.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, NoReturn

from kera_hw.cpu_gpu.amdgcn.table import (
    GLOBAL_OFFSETS,
    INLINE_FLOATS,
    INLINE_INTEGERS,
    SHARED_OFFSETS,
    Row,
    instructions,
)
from kera_hw.cpu_gpu.gpu.interpreter.host import Variable
from kera_hw.support import Diagnostic, KeraError

PROCESSORS = ("gfx90a", "gfx942")
_SCALARS, _VECTORS = 102, 256


class Register(NamedTuple):
    """``file``: v, a or s; ``size`` of them from ``first`` on, as a float ``negative``."""

    file: str
    first: int
    size: int
    negative: bool = False


class Constant(NamedTuple):
    """``bits`` of a word, or of a pair if it is ``inline``, extended by its sign."""

    bits: int
    inline: bool


class Relative(NamedTuple):
    """A word of how far a symbol is from ``at``, the statement behind the one that says where the code is."""

    symbol: str
    at: int
    upper: bool


Operand = Register | Constant | Relative | str
"""The last: a float by its name, vcc, exec, off, or a label."""


class Statement(NamedTuple):
    """``counts``: for how many outstanding accesses to memory it does not wait, by counter."""

    row: Row
    operands: tuple[Operand, ...]
    offset: int
    counts: Mapping[str, int]
    line: int


@dataclass(slots=True)
class Entry:
    """A kernel. ``labels`` are numbers of statements; ``settings`` those of its descriptor."""

    name: str
    statements: list[Statement] = field(default_factory=list[Statement])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    settings: dict[str, int] = field(default_factory=dict[str, int])
    threads: int = 0


@dataclass(slots=True)
class Module:
    processor: str = ""
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])


_SET = {
    "user_sgpr_kernarg_segment_ptr": 1, "system_sgpr_workgroup_id_x": 1, "system_sgpr_workgroup_id_y": 1,
    "system_sgpr_workgroup_id_z": 0, "system_vgpr_workitem_id": 0, "private_segment_fixed_size": 0,
    "reserve_vcc": 1, "float_round_mode_32": 0, "float_round_mode_16_64": 0, "float_denorm_mode_32": 3,
    "float_denorm_mode_16_64": 3, "dx10_clamp": 1, "ieee_mode": 1, "tg_split": 0,
}
"""What arithmetic and the first registers depend on: round to nearest even, subnormal numbers kept."""
_COUNTED = (
    "group_segment_fixed_size", "kernarg_size", "next_free_vgpr", "next_free_sgpr", "accum_offset",
)


def read_module(text: str) -> Module:
    """The module. Raises KeraError (K0707)."""
    return _Reader(text).module


def refuse(line: int, message: str) -> NoReturn:
    raise KeraError([Diagnostic("K0707", f"AMDGCN, line {line}: {message}")])


class _Reader:
    def __init__(self, text: str) -> None:
        self.module = Module()
        self._entry: Entry | None = None
        self._functions: set[str] = set()
        self._rows = enumerate(text.splitlines(), 1)
        self._in_data = False
        self._align = 1
        self._data: tuple[str, bytearray, int] | None = None
        self._metadata: dict[str, dict[str, int]] = {}
        for number, row in self._rows:
            line = row.partition(";")[0].strip()
            if line:
                self._line(number, line)
        self._close()
        self._check()

    def _line(self, number: int, line: str) -> None:
        name, _, rest = line.partition(" ")
        directive = self._directives.get(name)
        if directive is not None:
            directive(self, number, rest.strip())
        elif re.fullmatch(r"[.\w$]+:", line):
            self._label(number, line[:-1])
        elif self._in_data or self._entry is None:
            refuse(number, f"`{line}` has no place here.")
        else:
            entry = self._entry
            entry.statements.append(read_statement(number, line, len(entry.statements), entry.statements))

    # Sections and variables

    def _target(self, number: int, rest: str) -> None:
        found = re.fullmatch(r'"amdgcn-amd-amdhsa--(\w+)"', rest)
        if found is None or found[1] not in PROCESSORS:
            refuse(number, f"{rest} is no target that is known.")
        self.module.processor = found[1]

    def _text(self, number: int, rest: str) -> None:
        self._close()

    def _start_data(self, number: int, rest: str) -> None:
        self._close()
        self._in_data = True

    def _rodata(self, number: int, rest: str) -> None:
        if rest != '.rodata,"a",@progbits':
            refuse(number, f"there is no section {rest} here.")
        self._close()

    def _close(self) -> None:
        """The end of what went before."""
        if self._data is not None:
            name, content, align = self._data
            self.module.variables[name] = Variable(name, "global", align, len(content), bytes(content))
        self._data, self._in_data, self._entry = None, False, None

    def _known(self, number: int, rest: str) -> None:
        """A name that others may see, or the type of one."""
        name, _, kind = rest.partition(",")
        if kind not in ("", "@function"):
            refuse(number, f"{rest} is no function.")
        self._functions.add(name)

    def _aligned(self, number: int, rest: str) -> None:
        self._align = 1 << self._number(number, rest, 12)

    def _number(self, number: int, text: str, most: int) -> int:
        if not re.fullmatch(r"\d+", text) or int(text) > most:
            refuse(number, f"{text!r} is no number up to {most}.")
        return int(text)

    def _label(self, number: int, name: str) -> None:
        if self._in_data:
            align = self._align
            self._close()
            self._in_data, self._data = True, (name, bytearray(), align)
            if name in self.module.variables:
                refuse(number, f"`{name}` is there already.")
        elif name.startswith("."):
            if self._entry is None or name in self._entry.labels:
                refuse(number, f"the label `{name}` can't be here.")
            self._entry.labels[name] = len(self._entry.statements)
        else:
            if name not in self._functions or name in self.module.entries or self._align < 256:
                refuse(number, f"`{name}` is no function that may begin here.")
            self._entry = self.module.entries[name] = Entry(name)

    def _bytes(self, number: int, rest: str) -> None:
        if self._data is None:
            refuse(number, "there is no variable here.")
        self._data[1].extend(self._number(number, one.strip(), 255) for one in rest.split(","))

    def _zeros(self, number: int, rest: str) -> None:
        if self._data is None:
            refuse(number, "there is no variable here.")
        self._data[1].extend(bytes(self._number(number, rest, 1 << 30)))

    # Descriptors

    def _descriptor(self, number: int, rest: str) -> None:
        name = rest
        entry = self.module.entries.get(name)
        if entry is None or entry.settings:
            refuse(number, f"`{name}` has no code, or a descriptor already.")
        for number, row in self._rows:
            key, _, value = row.strip().partition(" ")
            if key == ".end_amdhsa_kernel":
                break
            setting = key.removeprefix(".amdhsa_")
            wanted = _SET.get(setting)
            if (wanted is None and setting not in _COUNTED) or setting in entry.settings:
                refuse(number, f"`{key}` is no setting that is known.")
            entry.settings[setting] = self._number(number, value, 1 << 20)
            if wanted not in (None, entry.settings[setting]):
                refuse(number, f"`{key}` is {value}; what is known is {wanted}.")
        missing = {*_SET, *_COUNTED} - set(entry.settings)
        if missing:
            refuse(number, f"the descriptor of `{name}` does not say {', '.join(sorted(missing))}.")

    def _notes(self, number: int, rest: str) -> None:
        """What the loader reads: that of each kernel has to be what its descriptor says."""
        name = ""
        for _, row in self._rows:
            if row.strip() == ".end_amdgpu_metadata":
                return
            found = re.fullmatch(r"[ -]*\.(\w+): +([\w.]+)", row)
            if found is not None and found[1] == "name":
                name = found[2]
                self._metadata[name] = {}
            elif found is not None and found[2].isdigit():
                self._metadata.setdefault(name, {})[found[1]] = int(found[2])
        refuse(number, "the metadata has no end.")

    def _check(self) -> None:
        if not self.module.processor:
            refuse(1, "the text does not say `.amdgcn_target`.")
        if set(self._metadata) != set(self.module.entries):
            refuse(1, "the metadata is not about the kernels that there are.")
        for name, entry in self.module.entries.items():
            _check_entry(entry, self._metadata[name], self.module)

    _directives: ClassVar[Mapping[str, Any]] = {
        ".amdgcn_target": _target, ".text": _text, ".data": _start_data, ".section": _rodata,
        ".globl": _known, ".type": _known, ".p2align": _aligned, ".byte": _bytes, ".zero": _zeros,
        ".amdhsa_kernel": _descriptor, ".amdgpu_metadata": _notes,
    }


def _check_entry(entry: Entry, notes: Mapping[str, int], module: Module) -> None:
    """What has to hold of a kernel as a whole."""
    settings = entry.settings
    if not settings or not entry.statements or entry.statements[-1].row.name != "s_endpgm":
        refuse(1, f"`{entry.name}` has no descriptor, or does not end with `s_endpgm`.")
    said = {
        "kernarg_segment_size": settings["kernarg_size"], "private_segment_fixed_size": 0,
        "group_segment_fixed_size": settings["group_segment_fixed_size"], "wavefront_size": 64,
    }
    if any(notes.get(key) != value for key, value in said.items()):
        refuse(1, f"the metadata of `{entry.name}` is not what its descriptor says.")
    entry.threads = notes.get("max_flat_workgroup_size", 0)
    offset = settings["accum_offset"]
    if offset % 4 or not 4 <= offset <= _VECTORS:
        refuse(1, f"accumulation registers can't begin behind {offset} others.")
    limits = {
        "v": min(offset, settings["next_free_vgpr"]), "a": settings["next_free_vgpr"] - offset,
        "s": min(settings["next_free_sgpr"], _SCALARS),
    }
    for statement in entry.statements:
        for operand in statement.operands:
            if isinstance(operand, Register) and operand.first + operand.size > limits[operand.file]:
                refuse(statement.line, f"a wave has no {operand.file}{operand.first}.")
            if isinstance(operand, Relative) and operand.symbol not in module.variables:
                refuse(statement.line, f"there is no `{operand.symbol}`.")
            label = statement.row.kinds == ("label",)
            if label and operand not in entry.labels:
                refuse(statement.line, f"there is no label `{operand}`.")
    if module.processor == "gfx942":
        _check_spacing(entry)


def _check_spacing(entry: Entry) -> None:
    """MI300 ISA, chapter 4.5: two instructions between one that writes vcc and a vector one that reads it,
    one between a reciprocal and a vector one that reads that. Ways over branches have their own between."""
    since_vcc, since_rough, rough = 9, 9, None
    for statement in entry.statements:
        name, row = statement.row.name, statement.row
        reads = statement.operands[row.written :]
        if name.startswith("v_"):
            early = "vcc" in reads and since_vcc < 2
            if rough is not None and since_rough < 1:
                early |= any(isinstance(one, Register) and _overlap(one, rough) for one in reads)
            if early:
                refuse(statement.line, f"`{name}` reads what was written too few instructions ago.")
        step = 1 + statement.counts.get("idle", 0)
        since_vcc, since_rough = since_vcc + step, since_rough + step
        if name.startswith("v_") and "vcc" in statement.operands[: row.written]:
            since_vcc = 0
        if name in ("v_rcp_f64", "v_rsq_f64"):
            assert isinstance(statement.operands[0], Register)
            since_rough, rough = 0, statement.operands[0]


def _overlap(one: Register, other: Register) -> bool:
    return one.file == other.file and (
        one.first < other.first + other.size and other.first < one.first + one.size
    )


# Statements

_PATTERN = re.compile(r"(-?)([vas])(?:(\d+)|\[(\d+):(\d+)\])")
_FILES = {"v": "v", "v2": "v", "a": "a", "s": "s", "s2": "s", "m2": "s", "ssrc": "s", "ssrc2": "s"}
_SYMBOL = re.compile(r"(\w+)@rel32@(lo\+4|hi\+12)")


def read_statement(number: int, line: str, at: int, before: list[Statement]) -> Statement:
    """One instruction. Raises KeraError (K0707)."""
    name, _, rest = line.partition(" ")
    row = instructions().get(name)
    if row is None:
        refuse(number, f"`{name}` is no instruction that is known.")
    if name == "s_waitcnt":
        return Statement(row, (), 0, _counts(number, rest), number)
    if name == "s_nop":
        return Statement(row, (), 0, {"idle": _idle(number, rest)}, number)
    offset = 0
    with_offset = re.fullmatch(r"(.*) offset:(-?\d+)", rest)
    if with_offset is not None:
        rest, offset = with_offset[1], int(with_offset[2])
        most = GLOBAL_OFFSETS if name.startswith("global_") else SHARED_OFFSETS
        if not row.is_memory or offset not in most:
            refuse(number, f"`{name}` takes no offset of {offset}.")
    texts = [one.strip() for one in rest.split(",")] if rest.strip() else []
    if len(texts) != len(row.kinds):
        refuse(number, f"`{name}` takes {len(row.kinds)} operands.")
    operands = tuple(_operand(number, kind, text, at, before) for kind, text in zip(row.kinds, texts))
    _check_operands(number, row, operands)
    return Statement(row, operands, offset, {}, number)


def _counts(number: int, rest: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in rest.split():
        match = re.fullmatch(r"(vmcnt|lgkmcnt)\((\d+)\)", part)
        if match is None or match[1] in found or int(match[2]) > (63 if match[1] == "vmcnt" else 0):
            refuse(number, f"`{part}` is nothing to wait for here.")
        found[match[1]] = int(match[2])
    return found


def _idle(number: int, rest: str) -> int:
    if not re.fullmatch(r"[0-7]", rest.strip()):
        refuse(number, f"`{rest}` is no number up to 7.")
    return int(rest)


def _operand(number: int, kind: str, text: str, at: int, before: list[Statement]) -> Operand:
    if kind == text or kind == "label":
        return text
    match = _PATTERN.fullmatch(text)
    if match is not None:
        return _register(number, kind, text, match)
    if text in ("vcc", "exec") and kind in ("m2", "ssrc2"):
        return text
    if text in INLINE_FLOATS and kind in ("arg2", "neg2"):
        return text
    symbol = _SYMBOL.fullmatch(text)
    if symbol is not None and kind == "ssrc":
        upper = symbol[2].startswith("hi")
        here = at - (2 if upper else 1)
        if here < 0 or before[here].row.name != "s_getpc_b64":
            refuse(number, f"`{text}` is not behind `s_getpc_b64`.")
        return Relative(symbol[1], here + 1, upper)
    if re.fullmatch(r"-?\d+|0x[0-9a-f]+", text) and kind not in ("v", "v2", "a", "s", "s2", "m2", "vcc"):
        return _constant(number, kind, text)
    refuse(number, f"`{text}` can't be an operand of kind {kind}.")


def _register(number: int, kind: str, text: str, match: re.Match[str]) -> Register:
    first = int(match[3] or match[4])
    count = int(match[5]) - first + 1 if match[5] else 1
    file, negative = match[2], match[1] == "-"
    wanted = 2 if kind.endswith("2") else 1
    takes = _FILES.get(kind, "vs")
    even = count == 1 or first % 2 == 0
    if file not in takes or count != wanted or not even or (negative and kind != "neg2"):
        refuse(number, f"`{text}` can't be an operand of kind {kind}.")
    return Register(file, first, count, negative)


def _constant(number: int, kind: str, text: str) -> Constant:
    value = int(text, 0)
    inline = value in INLINE_INTEGERS
    literal = kind in ("any", "src", "ssrc", "ssrc2", "offset")
    if (not inline and not literal) or not -(1 << 31) <= value < 1 << 32:
        refuse(number, f"{text} can't be a constant of kind {kind}.")
    if kind == "offset" and not 0 <= value < 1 << 20:
        refuse(number, f"{text} is no offset.")
    return Constant(value, inline)


def _check_operands(number: int, row: Row, operands: tuple[Operand, ...]) -> None:
    """One scalar register or literal is all that a vector instruction takes."""
    if not row.name.startswith("v_"):
        return
    taken: set[Operand] = set()
    for one in operands[row.written :]:
        scalar = (isinstance(one, Register) and one.file == "s") or one == "vcc"
        if scalar or (isinstance(one, Constant) and not one.inline):
            taken.add(one)
    if len(taken) > 1:
        refuse(number, f"`{row.name}` takes one scalar register or literal.")

"""From code over virtual registers to lines of text: what nobody reads goes, registers, waits, branches.

What finds no vector register is kept in accumulation registers, of which CDNA has as many again, and what is
left then in the block's shared memory: threads have no other that is as near.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kera_hw.cpu_gpu.amdgcn.code import MOVE, MOVE_PAIR, MOVES, SKIP, Code
from kera_hw.cpu_gpu.amdgcn.table import INLINE_INTEGERS
from kera_hw.cpu_gpu.amdgcn.waits import Line, with_waits
from kera_hw.cpu_gpu.gpu.kernels import Kernel
from kera_hw.cpu_gpu.machine.allocate import RegisterFile, allocate
from kera_hw.cpu_gpu.machine.check import check_allocation
from kera_hw.cpu_gpu.machine.coalesce import coalesce
from kera_hw.cpu_gpu.machine.code import (
    Fixed,
    Inst,
    Label,
    Mark,
    Name,
    Operand,
    Part,
    RegClass,
    VReg,
)
from kera_hw.cpu_gpu.machine.rewrite import RewriteStep, rewritten, written_registers
from kera_hw.support import Diagnostic, KeraError

_WORDS, _PAIRS, _SCRATCH = 124, 66, 4
"""Vector registers by themselves, of which the first is the thread's number, and in pairs: 256 in all."""
MOST_ACCUMULATORS = 256
MOST_SHARED_BYTES = 1 << 16
_OWN_PLACE = 1
"""The vector register with where a thread's words lie in shared memory, where some do."""
_MOST_DISTANCE = (1 << 15) // 2
"""Instructions that a branch reaches over: 2^15 words, of which each has one or two."""
_JUMPS = {
    "s_branch": False, "s_cbranch_execz": True, "s_cbranch_vccz": True, "s_cbranch_scc0": True,
    "s_cbranch_scc1": True,
}


@dataclass(frozen=True, slots=True)
class Finished:
    """``lines`` of text; how many registers of each kind are used, how many values lie in none of
    the first, and how much memory of the block's some of these take."""

    lines: tuple[str, ...]
    instructions: int
    vectors: int
    accumulators: int
    spilled: int
    spilled_bytes: int


def finish(code: Code, kernel: Kernel, processor: str, shared_bytes: int) -> Finished:
    """Raises KeraError (K0705) for what the registers don't hold or branches don't reach over."""
    code.machine.items = _alive(code)
    coalesce(code.machine, MOVES)
    name = kernel.name
    files = _files(spilling=False)
    allocation = allocate(code.machine, files)
    if allocation.slots:
        files = _files(spilling=True)
        allocation = allocate(code.machine, files)
    accumulators = min(2 * allocation.slot_count, MOST_ACCUMULATORS)
    spilled_bytes = (2 * allocation.slot_count - accumulators) * 4 * kernel.threads
    if shared_bytes + spilled_bytes > MOST_SHARED_BYTES:
        words, most = 2 * allocation.slot_count, (MOST_SHARED_BYTES - shared_bytes) // (4 * kernel.threads)
        raise _too_large(name, words, "words beside those in vector registers", MOST_ACCUMULATORS + most)
    steps = list(rewritten(code.machine, allocation, files))
    fault = check_allocation(steps, allocation, _JUMPS)
    assert fault is None, f"the allocation is wrong: {fault}"
    used = written_registers(steps)
    words = max({one.number for one in used if one.cls is RegClass.VECTOR} | {_OWN_PLACE}) + 1
    first_pair = words + words % 2
    pairs = {one.number for one in used if one.cls is RegClass.PAIR}
    vectors = first_pair + 2 * (max(pairs) + 1) if pairs else words
    spilled = _Spilled(allocation.slots, shared_bytes, kernel.threads)
    printer = _Printer(name, spilled, first_pair)
    entry = _entry() if spilled_bytes else ()
    lines = list(with_waits([*entry, *printer.lines(steps)], processor))
    kept = _reaching(lines, name)
    text = tuple(row for line in kept for row in _text(line))
    count = sum(bool(line.name) for line in kept)
    return Finished(text, count, vectors, accumulators, len(allocation.slots), spilled_bytes)


def _too_large(name: str, count: int, what: str, most: int) -> KeraError:
    message = f"The kernel `{name}` has {count:,} {what}; {most:,} is the most."
    return KeraError([Diagnostic("K0705", message)])


def _files(spilling: bool) -> RegisterFile:
    """``spilling``: with registers set aside through which values in accumulation registers pass."""
    words, pairs = range(_OWN_PLACE + spilling, _WORDS), range(_PAIRS)
    some = _SCRATCH if spilling else 0
    return RegisterFile(
        free={
            RegClass.VECTOR: tuple(words)[: len(words) - some], RegClass.PAIR: tuple(pairs)[: _PAIRS - some],
        },
        scratch={
            RegClass.VECTOR: tuple(words)[len(words) - some :], RegClass.PAIR: tuple(pairs)[_PAIRS - some :],
        },
        moves=MOVES,
    )


def _alive(code: Code) -> list[Inst | Mark]:
    """Without what only computes what nobody reads. A pair whose words are written one by one goes whole."""
    reads: dict[VReg, int] = {}
    for item in code.machine.items:
        for register, amount in _reads(item):
            reads[register] = reads.get(register, 0) + amount
    kept: list[Inst | Mark] = []
    for item in reversed(code.machine.items):
        if isinstance(item, Inst) and item.op.startswith("v_") and _unread(item, reads):
            for register, amount in _reads(item):
                reads[register] -= amount
        else:
            kept.append(item)
    return kept[::-1]


def _reads(item: Inst | Mark) -> Iterator[tuple[VReg, int]]:
    for register, role in item.accesses if isinstance(item, Inst) else ():
        if isinstance(register, VReg) and role == "r":
            yield register, 1


def _unread(item: Inst, reads: Mapping[VReg, int]) -> bool:
    """Whether all that an instruction gives is in registers that nobody reads."""
    results = [operand for operand, role in zip(item.operands, item.roles) if role != "r"]
    registers = [register for register, role in item.accesses if role != "r"]
    only = len(registers) == len(results)  # else there is vcc among them
    return only and all(isinstance(one, VReg) and not reads.get(one) for one in registers)


@dataclass(frozen=True, slots=True)
class _Spilled:
    """Where values lie that are in no vector register: ``slots`` of two words, behind ``shared_bytes``."""

    slots: Mapping[VReg, int]
    shared_bytes: int
    threads: int

    def moved(self, value: VReg, word: int, register: str, fetch: bool) -> Line:
        """A word into a vector register, or out of it."""
        place = 2 * self.slots[value] + word
        if place < MOST_ACCUMULATORS:
            kept = f"a{place}"
            touched = frozenset({register, kept})
            if fetch:
                return Line("v_accvgpr_read_b32", (register, kept), touched, frozenset({register}))
            return Line("v_accvgpr_write_b32", (kept, register), touched, frozenset({kept}))
        own, behind = f"v{_OWN_PLACE}", self.shared_bytes + (place - MOST_ACCUMULATORS) * 4 * self.threads
        offset = (f"offset:{behind}",) if behind else ()
        touched = frozenset({register, own})
        if fetch:
            return Line("ds_read_b32", (register, own, *offset), touched, frozenset({register}))
        return Line("ds_write_b32", (own, register, *offset), touched)


def _entry() -> Iterator[Line]:
    """Where a thread's words lie, from its number."""
    own = f"v{_OWN_PLACE}"
    yield Line("v_and_b32", (own, "0x3ff", "v0"), frozenset({own, "v0"}), frozenset({own}))
    yield Line("v_lshlrev_b32", (own, "2", own), frozenset({own}), frozenset({own}))


class _Printer:
    """Instructions over the machine's registers as lines."""

    def __init__(self, name: str, spilled: _Spilled, first_pair: int) -> None:
        self._name, self._spilled, self._first_pair = name, spilled, first_pair

    def lines(self, steps: Sequence[RewriteStep]) -> Iterator[Line]:
        """Of a value in accumulation registers, the words that an instruction reads or writes are moved."""
        fetched: list[RewriteStep] = []
        last: Line | None = None
        for step in steps:
            if step.kind == "mark":
                assert isinstance(step.before, Mark)
                if step.before.kind == "label" and step.before.label is not None:
                    yield Line("", (self.label(step.before.label),))
            elif step.kind == "fetch":
                fetched.append(step)
            elif step.kind == "put":
                assert last is not None
                yield from self._moved(step, last.written)
            else:
                assert step.after is not None and isinstance(step.before, Inst)
                found = list(self._instruction(step.after, step.before.comment))
                for one in fetched:
                    yield from self._moved(one, self._read(step.after))
                fetched.clear()
                yield from found
                whole = frozenset(word for line in found for word in line.written)
                last = Line("", (), written=whole)

    def _read(self, inst: Inst) -> frozenset[str]:
        pairs = zip(inst.operands, inst.roles)
        return frozenset(word for operand, role in pairs if role == "r" for word in self._words(operand))

    def _moved(self, step: RewriteStep, wanted: frozenset[str]) -> Iterator[Line]:
        assert step.moved is not None and step.register is not None
        for k, own in enumerate(self._words(step.register)):
            if own in wanted:
                yield self._spilled.moved(step.moved, k, own, fetch=step.kind == "fetch")

    def _instruction(self, inst: Inst, comment: str) -> Iterator[Line]:
        if inst.op in MOVES and inst.operands[0] == inst.operands[1]:
            return
        if inst.op == MOVE_PAIR:
            for own, other in zip(*(self._words(one) for one in inst.operands)):
                yield Line(MOVE, (own, other), frozenset({own, other}), frozenset({own}), comment)
            return
        texts = tuple(self._text(operand) for operand in inst.operands)
        touched = {word for operand in inst.operands for word in self._words(operand)}
        written = {
            word for operand, role in zip(inst.operands, inst.roles) if role != "r"
            for word in self._words(operand)
        }
        yield Line(inst.op, texts, frozenset(touched), frozenset(written), comment)

    def _words(self, operand: Operand) -> list[str]:
        """The registers of an operand."""
        match operand:
            case Fixed(number=number, cls=RegClass.PAIR):
                first = self._first_pair + 2 * number
                return [f"v{first}", f"v{first + 1}"]
            case Fixed(number=number):
                return [f"v{number}"]
            case Part(reg=reg, word=word):
                words = self._words(reg)
                return words if word is None else [words[word]]
            case Name(text=text) if text.startswith("s["):
                first, last = text[2:-1].split(":")
                return [f"s{first}", f"s{last}"]
            case Name(text=text) if text in ("vcc", "exec") or (text[0] == "s" and text[1:].isdigit()):
                return [text]
            case _:
                return []

    def _text(self, operand: Operand) -> str:
        match operand:
            case int():
                inline = operand in INLINE_INTEGERS
                return str(operand) if inline else f"0x{operand & 0xFFFF_FFFF:x}"
            case Name(text=text):
                return text
            case Label():
                return self.label(operand)
            case _:
                words = self._words(operand)
                sign = "-" if isinstance(operand, Part) and operand.negative else ""
                both = words[0] if len(words) == 1 else f"v[{words[0][1:]}:{words[1][1:]}]"
                return sign + both

    def label(self, label: Label) -> str:
        return f".L{self._name}_{label.number}"


def _reaching(lines: Sequence[Line], name: str) -> list[Line]:
    """Without branches that are for speed alone and too short. Raises KeraError for others."""
    places = {line.operands[0]: k for k, line in enumerate(lines) if not line.name}
    kept: list[Line] = []
    for k, line in enumerate(lines):
        if line.name in _JUMPS or line.name == SKIP:
            (target,) = line.operands
            distance = abs(places[target] - k)
            if distance > _MOST_DISTANCE:
                if line.name != SKIP:
                    raise _too_large(name, distance, "instructions in a loop", _MOST_DISTANCE)
                continue
        kept.append(replace(line, name="s_cbranch_execz") if line.name == SKIP else line)
    return kept


def _text(line: Line) -> Iterator[str]:
    if line.comment:
        yield f"\t; {line.comment}"
    if not line.name:
        yield f"{line.operands[0]}:"
        return
    *operands, last = line.operands or ("",)
    if last.startswith("offset:"):
        yield f"\t{line.name} {', '.join(operands)} {last}"
    else:
        yield f"\t{line.name} {', '.join(line.operands)}".rstrip()

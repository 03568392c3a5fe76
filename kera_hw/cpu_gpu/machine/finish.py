"""From code over virtual registers to bytes: allocation, its check, the frame, labels and constants."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kera_hw.cpu_gpu.machine.allocate import RegisterFile, allocate
from kera_hw.cpu_gpu.machine.check import Unnamed, check_allocation
from kera_hw.cpu_gpu.machine.coalesce import coalesce
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Mark, RegClass
from kera_hw.cpu_gpu.machine.rewrite import RewriteStep, rewritten, written_registers

_POOL_ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class Machine:
    """A finished function: ``code`` with its constants behind it, position independent.

    ``instructions`` are (offset, instruction) in order; ``slots`` were needed for what found no register, of
    ``stack_bytes`` in all.
    """

    code: bytes
    instructions: tuple[tuple[int, Inst], ...]
    slots: int
    stack_bytes: int


@dataclass(frozen=True, slots=True)
class Fixup:
    """At ``place`` of an instruction's bytes is a distance to a label, counted from ``origin`` of them.

    ``form``: how it is written there, in the back end's words.
    """

    place: int
    origin: int
    label: int
    form: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a function does with the stack and the registers that are its caller's, first and last."""

    entry: Sequence[Inst]
    exit: Sequence[Inst]
    size_bytes: int


class Backend(Protocol):
    """A machine's registers, its frames and its encoding."""

    @property
    def jumps(self) -> Mapping[str, bool]:
        """Instructions that go to a label; whether they may also not."""
        ...

    @property
    def unnamed(self) -> Mapping[str, Unnamed]:
        """Instructions that touch registers which are not among their operands."""
        ...

    def files(self, spilling: bool) -> RegisterFile:
        """``spilling``: with registers set aside through which what lies on the stack passes."""
        ...

    def is_nothing(self, inst: Inst) -> bool:
        """Whether a move leaves everything as it is."""
        ...

    def fetch(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]: ...
    def put(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]: ...
    def frame(self, written: frozenset[Fixed], slots: int) -> Frame: ...

    def encode(self, inst: Inst, far: bool) -> tuple[bytes, Sequence[Fixup]]:
        """``far``: in the form that reaches any label."""
        ...

    def resolve(self, content: bytearray, fixup: Fixup, distance: int) -> bool:
        """Writes the distance down; False where this form does not reach."""
        ...


def finish(code: Code, backend: Backend) -> Machine:
    """Assigns registers, checks that, and encodes."""
    files = backend.files(spilling=False)
    coalesce(code, files.moves)
    allocation = allocate(code, files)
    if any(register.cls is not RegClass.GENERAL for register in allocation.slots):
        files = backend.files(spilling=True)
        allocation = allocate(code, files)
    steps = list(rewritten(code, allocation, files))
    fault = check_allocation(steps, allocation, backend.jumps, backend.unnamed)
    if fault is not None:
        raise AssertionError(f"the allocation is wrong: {fault}")
    slots = allocation.slot_count
    frame = backend.frame(frozenset(written_registers(steps)), slots)
    body: list[Inst | Mark] = []
    for step in steps:
        if step.moved is None:
            body += _kept(step, backend)
            continue
        assert step.register is not None
        move = backend.fetch if step.kind == "fetch" else backend.put
        body += move(step.register, allocation.slots[step.moved], slots)
    whole = [*frame.entry, *body, *frame.exit]
    content, instructions = _encoded(whole, code.pool, backend)
    return Machine(content, instructions, len(allocation.slots), frame.size_bytes)


def _kept(step: RewriteStep, backend: Backend) -> list[Inst | Mark]:
    if isinstance(step.before, Mark):
        return [step.before] if step.before.kind == "label" else []
    assert step.after is not None
    return [] if backend.is_nothing(step.after) else [step.after]


def assembled(items: Sequence[Inst | Mark], backend: Backend) -> bytes:
    """Instructions over the machine's registers, and labels, as code."""
    return _encoded(items, {}, backend)[0]


@dataclass(slots=True)
class _Piece:
    """An instruction's bytes; ``far`` where the short form does not reach."""

    inst: Inst
    content: bytes
    fixups: Sequence[Fixup]
    far: bool = False


def _encoded(
    items: Sequence[Inst | Mark], pool: Mapping[int, bytes], backend: Backend
) -> tuple[bytes, tuple[tuple[int, Inst], ...]]:
    """Jumps take their short forms, until one is seen not to reach: lengths only grow, so that this ends."""
    pieces = [
        item if isinstance(item, Mark) else _Piece(item, *backend.encode(item, False)) for item in items
    ]
    while True:
        found = _laid_out(pieces, pool, backend)
        if found is not None:
            return found


def _laid_out(
    pieces: Sequence[_Piece | Mark], pool: Mapping[int, bytes], backend: Backend
) -> tuple[bytes, tuple[tuple[int, Inst], ...]] | None:
    """None, with longer forms chosen, where a short one does not reach."""
    out = bytearray()
    labels: dict[int, int] = {}
    placed: list[tuple[int, _Piece]] = []
    for piece in pieces:
        if isinstance(piece, Mark):
            assert piece.label is not None
            labels[piece.label.number] = len(out)
        else:
            placed.append((len(out), piece))
            out += piece.content
    for label, contents in pool.items():
        out += bytes(-len(out) % _POOL_ALIGNMENT_BYTES)
        labels[label] = len(out)
        out += contents
    reached = True
    for start, piece in placed:
        if not piece.fixups:
            continue
        content = bytearray(piece.content)
        for one in piece.fixups:
            distance = labels[one.label] - start - one.origin
            if not backend.resolve(content, one, distance):
                assert not piece.far, f"{piece.inst.op} does not reach its label"
                piece.far, reached = True, False
                piece.content, piece.fixups = backend.encode(piece.inst, True)
                break
        out[start : start + len(content)] = content
    return (bytes(out), tuple((start, piece.inst) for start, piece in placed)) if reached else None

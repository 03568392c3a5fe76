"""A function in the calling convention of Python's extensions, which looks at its arguments itself.

System V Application Binary Interface, AMD64 supplement, section 3.2.3.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.cpu_gpu.doorway import (
    DATA,
    DESCR,
    DIMENSIONS,
    FLAGS,
    OBJECT_TYPE,
    RANK,
    SCALAR_VALUE,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    Door,
    Leaf,
    Named,
)
from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mark, Mem, Operand, RegClass
from kera_hw.cpu_gpu.machine.finish import assembled
from kera_hw.cpu_gpu.x86_64.encoder import form
from kera_hw.cpu_gpu.x86_64.finish import X86Backend
from kera_hw.cpu_gpu.x86_64.machine import AVX2, RAX, RCX, RDI, RDX, RSI

_R8, _PLACES = Fixed(8, RegClass.GENERAL), Fixed(11, RegClass.GENERAL)
_GIVEN = (RSI, RDX, RCX)
"""Arguments of the call, but for the first."""
_WORD_BYTES = 8
_REFUSE = Label(1)


def doorway_code(door: Door) -> bytes:
    """``(self, arguments, count)``: arguments are leaves, then the result's array, then what refuses. With
    names, ``(self, arguments, count, names)``: of the count none, by name leaves and the result's array."""
    write = _Writing()
    for register in _GIVEN:
        write("push", register)  # the stack is aligned for a call now
    if door.named is not None:
        write.check_names(door.named)
    write("movabs", _PLACES, door.places)
    for k, leaf in enumerate(door.leaves):
        write("mov", RAX, Mem(RSI, offset=_WORD_BYTES * k))
        write.check(leaf)
        write("mov", Mem(_PLACES, offset=_WORD_BYTES * k), RAX)
    *params, result = door.leaves
    write.check_apart(params, result)
    if door.kernel is not None:
        write("movi", RDI, 1, size_bits=32)
        write("mov", RSI, _PLACES)
        write("movabs", RDX, door.memory)
        write("movabs", RAX, door.kernel)
        write("call", RAX)
    write.take_given()
    write.give(len(params))
    write.items.append(Mark("label", _REFUSE))
    write.take_given()
    if door.named is None:
        write.give(len(door.leaves))
    else:
        write("movabs", RDI, door.named.otherwise)
        write("movabs", RAX, door.named.call)
        write("jump", RAX)
    return assembled(write.items, X86Backend(AVX2))


class _Writing:
    def __init__(self) -> None:
        self.items: list[Inst | Mark] = []
        self._labels = _REFUSE.number

    def __call__(self, op: str, *operands: Operand, size_bits: int = 64) -> None:
        self.items.append(Inst(op, operands, form(op, operands).roles, size_bits))

    def _refuse_unless(self, register: Fixed, address: int) -> None:
        self("movabs", _R8, address)
        self("cmp", _R8, register)
        self("jne", _REFUSE)

    def take_given(self) -> None:
        for register in reversed(_GIVEN):
            self("pop", register)

    def check_names(self, named: Named) -> None:
        """Arguments have these names, in this order, and it is nobody's turn."""
        self("test", RDX, RDX)
        self("jne", _REFUSE)
        self("test", RCX, RCX)
        self("je", _REFUSE)
        self("mov", RAX, Mem(RCX, offset=TUPLE_SIZE))
        self("cmpi", RAX, len(named.names))
        self("jne", _REFUSE)
        for k, name in enumerate(named.names):
            self("mov", RAX, Mem(RCX, offset=TUPLE_ITEMS + _WORD_BYTES * k))
            self._refuse_unless(RAX, name)
        self("movabs", RAX, named.held)
        self("movzx8", RAX, Mem(RAX), size_bits=32)
        self("test", RAX, RAX)
        self("jne", _REFUSE)

    def check(self, leaf: Leaf) -> None:
        """The object in rax is what the leaf takes; then where its elements lie."""
        self("mov", RCX, Mem(RAX, offset=OBJECT_TYPE))
        self._refuse_unless(RCX, leaf.type)
        if leaf.descr is None:
            self("addi", RAX, SCALAR_VALUE)
            return
        self("mov", RCX, Mem(RAX, offset=DESCR))
        self._refuse_unless(RCX, leaf.descr)
        self("mov", RCX, Mem(RAX, offset=RANK), size_bits=32)
        self("cmpi", RCX, len(leaf.shape), size_bits=32)
        self("jne", _REFUSE)
        self("mov", RCX, Mem(RAX, offset=DIMENSIONS))
        for axis, extent in enumerate(leaf.shape):
            self("mov", RDX, Mem(RCX, offset=_WORD_BYTES * axis))
            self("cmpi", RDX, extent)
            self("jne", _REFUSE)
        self("mov", RCX, Mem(RAX, offset=FLAGS), size_bits=32)
        self("andi", RCX, leaf.flags, size_bits=32)
        self("cmpi", RCX, leaf.flags, size_bits=32)
        self("jne", _REFUSE)
        self("mov", RAX, Mem(RAX, offset=DATA))

    def check_apart(self, params: Sequence[Leaf], result: Leaf) -> None:
        """The result, which rax leads to, lies over no parameter."""
        for k, leaf in enumerate(params):
            if leaf.descr is None:
                continue
            self._labels += 1
            apart = Label(self._labels)
            self("mov", RCX, Mem(_PLACES, offset=_WORD_BYTES * k))
            self("lea", _R8, Mem(RAX, offset=result.size_bytes))
            self("cmp", RCX, _R8)
            self("jae", apart)
            self("addi", RCX, leaf.size_bytes)
            self("cmp", RAX, RCX)
            self("jb", _REFUSE)
            self.items.append(Mark("label", apart))

    def give(self, argument: int) -> None:
        """One of the arguments back, with one more reference to it."""
        self("mov", RAX, Mem(RSI, offset=_WORD_BYTES * argument))
        self("mov", RCX, Mem(RAX))
        self("addi", RCX, 1)
        self("mov", Mem(RAX), RCX)
        self("ret")

"""Tensors that come and go in beats, and lie in cyclic banks: which element of a beat is where.

The elements of a tensor are counted by digits, as an odometer does, the fastest first: those of the axes,
and of an axis in banks its remainder before its quotient. Each digit moves the address within a bank, or the
number of the bank, by a step of its own. The elements of one beat lie in different banks at one address.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from kera_hw.rtl.emit.ports import Channel


@dataclass(frozen=True, slots=True)
class Digit:
    """Counts to ``count``; each count moves the address and the number of the bank."""

    count: int
    address_step: int
    bank_step: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where the elements of a channel's tensor lie: ``banks`` by number, ``digits`` from the fastest on.

    Elements of a beat are ``lane_step`` banks apart.
    """

    banks: tuple[str, ...]
    digits: tuple[Digit, ...]
    lanes: int = 1
    lane_step: int = 1

    def lane_of(self, bank: int) -> int:
        """The element of a beat that may lie in a bank."""
        return bank // self.lane_step % self.lanes

    def base_of(self, bank: int) -> int:
        """The bank of the first element of such a beat."""
        return bank - self.lane_of(bank) * self.lane_step


def places_of(name: str, shape: Sequence[int], banks: Mapping[int, int], lanes: int) -> Places:
    """How a tensor lies in memories named after it, cyclic in so many ``banks`` along axes.

    ``lanes`` is a divisor of the innermost axis' banks, and these are divisors of the axes.
    """
    names, counts = [name], list(banks.values())
    for count in counts:
        names = [f"{one}.{k}" for one in names for k in range(count)]
    bank_steps = {axis: prod(counts[k + 1 :]) for k, axis in enumerate(banks)}
    inside = [extent // banks.get(axis, 1) for axis, extent in enumerate(shape)]
    digits: list[Digit] = []
    share = lanes
    for axis in reversed(range(len(shape))):
        count, step = banks.get(axis, 1), bank_steps.get(axis, 0)
        assert shape[axis] % count == 0 and count % share == 0, "banks divide an axis, lanes banks"
        digits += [Digit(count // share, 0, step * share), Digit(inside[axis], prod(inside[axis + 1 :]), 0)]
        share = 1
    return Places(tuple(names), _merged(digits), lanes, max(1, bank_steps.get(len(shape) - 1, 1)))


def _merged(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """Neighbours that go on where the other ends are one."""
    found: list[Digit] = []
    for digit in digits:
        last = found[-1] if found else None
        if digit.count == 1:
            continue
        steps = digit.address_step, digit.bank_step
        if last is not None and steps == (last.address_step * last.count, last.bank_step * last.count):
            found[-1] = Digit(last.count * digit.count, last.address_step, last.bank_step)
        else:
            found.append(digit)
    return tuple(found) or (Digit(1, 1, 0),)


class Walk:
    """Counts the beats of an item: their address, the bank of their first element, whether it is the last."""

    def __init__(self, m: Module, channel: Channel, places: Places, steps: Value) -> None:
        self._m, self._name, self._digits = m, channel.name, places.digits
        self._steps = steps
        counters: list[Signal] = []
        at_last: list[Value] = []
        carry = steps
        for k, digit in enumerate(places.digits):
            stem = f"{self._name}_address" if len(places.digits) == 1 else f"{self._name}_digit{k}"
            counter = Signal(range(max(2, digit.count)), name=stem)
            last = counter == digit.count - 1
            with m.If(carry):
                m.d.sync += counter.eq(Mux(last, 0, counter + 1))
            carry = carry & last
            counters.append(counter)
            at_last.append(last)
        self._counters, self._at_last = counters, at_last
        self.last: Value = Cat(*at_last).all()
        self.address = self._sum("place", [digit.address_step for digit in places.digits])
        self.bank = self._sum("bank", [digit.bank_step for digit in places.digits])

    def _sum(self, what: str, steps: Sequence[int]) -> Value:
        """The sum of all digits, each times its step: bits side by side, or a sum kept beside the digits."""
        fields = sorted((step, k) for k, step in enumerate(steps) if step)
        parts: list[Value] = []
        low = 0
        for step, k in fields:
            gap = step.bit_length() - 1 - low
            if step & (step - 1) or gap < 0:
                return self._kept(what, steps)
            parts += [Const(0, gap), self._counters[k]] if gap else [self._counters[k]]
            low += gap + len(self._counters[k])
        return Cat(*parts) if parts else Const(0, 1)

    def _kept(self, what: str, steps: Sequence[int]) -> Value:
        """A sum that every beat moves by what the digit that goes on, and those that return, make of it."""
        m, digits = self._m, self._digits
        most = sum(step * (digit.count - 1) for step, digit in zip(steps, digits))
        total = Signal(range(most + 1), name=f"{self._name}_{what}")
        returned, moves = 0, Const(0, len(total))
        chosen: list[Value] = []
        for step, digit in zip(steps, digits):
            chosen.append(Const((step - returned) % (1 << len(total)), len(total)))
            returned += step * (digit.count - 1)
        for k in reversed(range(len(digits))):
            moves = Mux(self._at_last[k], moves, chosen[k]) if k + 1 < len(digits) else chosen[k]
        with m.If(self._steps):
            m.d.sync += total.eq(Mux(self.last, 0, (total + moves)[: len(total)]))
        return total
